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
