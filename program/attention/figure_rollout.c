/* `attention rollout` draws attention rollout, from the input to each chosen layer. SPDX-License-Identifier: MIT */
#include "analysis/attention_statistics.h"
#include "program/attention/figure_kind.h"
#include "program/attention/figure_panels.h"

/* Up to five layers are drawn side by side, more of them in lines of four, since twelve panels in a line are too
 * small. */
enum { MOST_ABREAST = 5, FEW_ABREAST = 4 };

/* Encodes all layers up to `last`, because rollout multiplies the layers from the first one on, whichever are
 * drawn. */
static void encode_up_to(figure_source *source, size_t last)
{
    size_t *const chosen = source->layers, count = source->layer_count;
    source->layers = options_take(source->options, last + 1, sizeof *source->layers);
    source->layer_count = last + 1;
    for (size_t l = 0; l <= last; l++) source->layers[l] = l;
    source_encode(source);
    source->layers = chosen;
    source->layer_count = count;
}

/* Advances the rollout by one layer. */
static void step(const figure_source *source, double *rollout, size_t layer)
{
    const float **heads = options_take(source->options, source->head_count, sizeof *heads);
    for (size_t a = 0; a < source->head_count; a++)
        heads[a] = capture_matrix(&source->capture, layer, source->heads[a], DEBERTA_PROBABILITIES, 0);
    attention_rollout_step(rollout, heads, source->head_count, source->view.span[1], source_text_mask(source));
}

static attention_panel add_panel(figure_sheet *sheet, const double *rollout, size_t layer)
{
    const figure_source *source = sheet->source;
    const size_t cells = source->view.span[1] * source->view.span[1];
    panel_column column = component_column(source, DEBERTA_PROBABILITIES);
    float *whole = options_take(source->options, cells, sizeof *whole);
    for (size_t c = 0; c < cells; c++) whole[c] = (float)rollout[c];
    column.name = "rollout";
    column.title = options_text(source->options, "layer %zu", layer);
    return panels_add(sheet, &column, layer, no_index, whole);
}

static void figure_rollout_fill(figure_source *source, figure_sheet *sheet, attention_panel *panels)
{
    const size_t n = source->view.span[1], last = source->layers[source->layer_count - 1];
    double *rollout = options_take(source->options, n * n, sizeof *rollout);
    encode_up_to(source, last);
    attention_rollout_begin(rollout, n);
    for (size_t layer = 0, drawn = 0; layer <= last; layer++) {
        step(source, rollout, layer);
        if (source->layers[drawn] == layer) panels[drawn++] = add_panel(sheet, rollout, layer);
    }
}

static void figure_rollout_draw(figure_source *source, figure_sheet *sheet)
{
    attention_panel *panels = options_take(source->options, source->layer_count, sizeof *panels);
    attention_figure figure;
    sheet_note(sheet,
               "Attention rollout (Abnar and Zuidema 2020) up to the layer: the product of 0.5 A + 0.5 I, A the mean "
               "over %zu %s. ",
               source->head_count, source->head_count == 1 ? "head" : "heads");
    sheet_caption(sheet, "Attention rollout (Abnar and Zuidema 2020): how much of each input token is in each "
                         "position, if attention and residual connections were all there is. ");
    panels_open(sheet, &figure);
    figure.panels = panels;
    figure.grid_rows = 1;
    figure.grid_columns = source->layer_count;
    if (!figure.columns && source->layer_count > MOST_ABREAST) figure.columns = FEW_ABREAST;
    figure.units[HEATMAP_POSITIVE] = figure.units[HEATMAP_LOG] = "share of the input token";
    figure.key_axis = "input token";
    figure.query_axis = "position";
    figure_rollout_fill(source, sheet, panels);
    panels_finish(sheet, &figure);
}

static const option part[] = {PART_ROWS, NO_MORE_ROWS};
/* Each panel has its own scale by default: later layers are pale beside the first, which is half diagonal. */
static const option look[] = {SCALE_ROW, PALETTE_ROW, LOG_ROW,    ANNOTATE_ROW,
                              MARK_ROW,  LETTERS_ROW, LAYOUT_ROW, NO_MORE_ROWS};
static const option_group groups[] = FIGURE_GROUPS(part, look);

const figure_kind figure_rollout = {
    FIGURE_COMMAND(
        "rollout", "attention rollout (Abnar and Zuidema 2020) from the input to each chosen layer",
        FIGURE_TEXT " --layers 0,2,4 -o rollout.pdf", groups, EVERY_HEAD, .components = SHOW_PROBABILITIES,
        .scales = {[HEATMAP_POSITIVE] = {.policy = HEATMAP_PANEL}, [HEATMAP_LOG] = {.policy = HEATMAP_PANEL}}),
    .draw = figure_rollout_draw,
};
