/* `attention entropy` draws the spread and the reach of each head's attention.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "analysis/attention_statistics.h"
#include "program/attention/figure_kind.h"
#include "program/attention/head_map.h"

/* Returns the number of shown tokens that are queries and keys: those outside the mask are neither. */
static size_t kept_tokens(const figure_source *source)
{
    const unsigned char *mask = source_mask(source);
    size_t kept = 0;
    for (size_t k = 0; k < source->view.count; k++) kept += !mask || mask[k];
    return kept;
}

static void figure_entropy_draw(figure_source *source, figure_sheet *sheet)
{
    double *entropy = head_numbers(source), *distance = head_numbers(source), *offset = head_numbers(source);
    const size_t count = source->view.count, kept = kept_tokens(source);
    const double evenly = log2((double)kept); /* entropy in bits of uniform attention */
    const char *unit = source->asked->shown.words ? "words" : "tokens";
    attention_figure figure;
    source_encode(source);
    for (size_t k = 0; k < source_heads(source); k++) {
        const float *matrix =
            source_matrix(source, source_layer(source, k), source_head(source, k), DEBERTA_PROBABILITIES);
        const attention_summary summary =
            attention_summarize(matrix, count, source_positions(source), source_mask(source));
        entropy[k] = summary.entropy;
        distance[k] = summary.distance;
        offset[k] = summary.offset;
    }
    sheet_note(sheet,
               "Means over %zu %s; a positive direction is to the left; attention spread evenly has an entropy of %.2f "
               "bits. ",
               kept, kept == 1 ? "query" : "queries", evenly);
    if (!source->view.whole) sheet_note(sheet, "Rows are divided by their sums over what is shown. ");
    sheet_caption(sheet, "Entropy of the attention of each head, and the distance and direction it looks. ");
    head_map_open(sheet, &figure);
    const attention_panel panels[3] = {head_map_panel(source, "direction", HEATMAP_SIGNED, offset),
                                       head_map_panel(source, "distance", HEATMAP_POSITIVE, distance),
                                       head_map_panel(source, "entropy", HEATMAP_RANGE, entropy)};
    figure.panels = panels;
    figure.grid_columns = 3;
    figure.units[HEATMAP_SIGNED] = options_text(source->options, "i \u2212 j (%s)", unit);
    figure.units[HEATMAP_POSITIVE] = options_text(source->options, "|i \u2212 j| (%s)", unit);
    figure.units[HEATMAP_RANGE] = "entropy (bits)";
    /* the same colours as the distance beside it */
    if (!figure.palettes[HEATMAP_RANGE]) figure.palettes[HEATMAP_RANGE] = "blues";
    panels_begin_at_zero(&figure, evenly);
    head_map_column(sheet, "entropy_bits", entropy);
    head_map_column(sheet, "mean_distance", distance);
    head_map_column(sheet, "mean_offset", offset);
    panels_finish(sheet, &figure);
}

static const option part[] = {PART_ROWS, NO_MORE_ROWS};
static const option look[] = {SCALE_ROW,   PALETTE_ROW, SIGNED_PALETTE_ROW, ANNOTATE_ROW,
                              LETTERS_ROW, LAYOUT_ROW,  NO_MORE_ROWS};
static const option_group groups[] = FIGURE_GROUPS(part, look);

const figure_kind figure_entropy = {
    FIGURE_COMMAND("entropy", "entropy, mean distance and direction of the attention of each head",
                   FIGURE_TEXT " -o entropy.pdf", groups, EVERY_HEAD, .components = SHOW_PROBABILITIES),
    .draw = figure_entropy_draw,
};
