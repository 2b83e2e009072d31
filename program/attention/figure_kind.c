/* Runs a kind of figure: opens its source, calls its draw function, and closes everything.
 *
 * SPDX-License-Identifier: MIT */
#include "program/attention/figure_kind.h"

#include "program/attention/figure_panels.h"

/* Draws the figure with the tokens that the options choose, or with words. */
static void draw_once(figure_source *source, const figure_kind *kind, figure_sheet *sheet)
{
    sheet_open(sheet, source);
    kind->draw(source, sheet);
}

/* Notes ablations of layers above all that are drawn: a term changes its own layer and those above it. A trace draws
 * an answer, which is above all layers. */
static void note_ablated_above(const figure_source *source)
{
    const attention_options *asked = source->asked;
    const ablation_list *ablated = &source->options->ablated;
    if (!ablated->count || !option_exists(source->options, &asked->layers) || asked->trace.parts) return;
    const size_t highest = source->layers[source->layer_count - 1];
    for (size_t k = 0; k < ablated->count; k++)
        if (ablated->items[k].layer == DEBERTA_EVERY || ablated->items[k].layer <= highest) return;
    option_note_unused(source->options, ablated,
                       options_text(source->options,
                                    "layer %zu, the highest drawn, is below all that is taken out: nothing changes",
                                    highest));
}

void figure_draw(const common_options *options, const figure_kind *kind)
{
    const attention_options *asked = (const attention_options *)options;
    figure_source source = {0};
    figure_sheet sheet;
    attention_options in_words = *asked;
    in_words.shown.words = in_words.shown.fitted = true;
    attention_options_check(asked);
    figure_style_note(options, &asked->style, options->outs.items, options->outs.count);
    source_open(&source, asked, kind->all_rows);
    note_ablated_above(&source);
    source.hidden = kind->hidden;
    draw_once(&source, kind, &sheet);
    if (sheet.wants_words) {
        in_words.shown.pieces_mm = sheet.pieces_mm;
        source_restart(&source, &in_words);
        draw_once(&source, kind, &sheet);
    }
    source_close(&source);
}

int figure_run(const common_options *options)
{
    figure_draw(options, (const figure_kind *)options->command);
    return EXIT_OK;
}
