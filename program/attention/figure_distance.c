/* `attention distance` draws statistics of a head at each distance. SPDX-License-Identifier: MIT */
#include "analysis/attention_statistics.h"
#include "program/attention/distance_curves.h"
#include "program/attention/figure_kind.h"

static void figure_distance_fill(const figure_source *source, double *const column[DISTANCE_STATISTICS], size_t first,
                                 size_t entries, const float *matrix)
{
    attention_by_distance curve;
    attention_by_distance_measure(&curve, matrix, source->view.count, source_positions(source), source_mask(source),
                                  source->asked->ribbon);
    for (size_t k = 0; k < entries; k++) {
        column[DISTANCE_COUNT][first + k] = (double)curve.count[k];
        column[DISTANCE_MEAN][first + k] = curve.mean[k];
        column[DISTANCE_MEDIAN][first + k] = curve.median[k];
        column[DISTANCE_LOW][first + k] = curve.low[k];
        column[DISTANCE_HIGH][first + k] = curve.high[k];
    }
    scope_free(&curve.memory);
}

/* Adds the curve of one matrix to its columns. Logits are drawn without the part that is constant over the keys,
 * unless --center keeps it. */
static void figure_distance_measure(const figure_source *source, distance_curves *curves, size_t index,
                                    deberta_component component)
{
    const size_t n = source->view.count, first = index * curves->entries;
    const unsigned char *mask = source_mask(source);
    const float *matrix = source_matrix(source, source_layer(source, index), source_head(source, index), component);
    if (distance_curves_centred(source, component)) {
        float *centred = options_take(source->options, n * n, sizeof *centred);
        attention_centre_rows(centred, matrix, n, mask);
        matrix = centred;
    }
    figure_distance_fill(source, curves->column[component], first, curves->entries, matrix);
}

static void figure_distance_draw(figure_source *source, figure_sheet *sheet)
{
    const size_t *positions = source_positions(source), last = source->view.count - 1;
    const bool words = source->asked->shown.words;
    distance_curves curves = distance_curves_open(source, positions ? positions[last] - positions[0] : last);
    source_encode(source);
    for (size_t k = 0; k < source_heads(source); k++)
        for (deberta_component c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
            if (source->components[c]) figure_distance_measure(source, &curves, k, c);
    sheet_caption(sheet, "Components of attention against the distance between query and key. ");
    distance_curves_draw(sheet, &curves, !words, words ? "pairs of words" : "pairs of tokens");
}

static const option part[] = {PART_ROWS, COMPONENTS_ROW, CURVES_ROWS, NO_MORE_ROWS},
                    look[] = {CENTER_ROW, LETTERS_ROW, LAYOUT_ROW, NO_MORE_ROWS};
static const option_group groups[] = FIGURE_GROUPS(part, look);

const figure_kind figure_distance = {
    FIGURE_COMMAND("distance", "each component and the probabilities against the distance of query and key",
                   FIGURE_TEXT " --layers 2 --heads 0,1 -o distance.pdf", groups, FIRST_HEAD,
                   .components = SHOW_TERMS | SHOW_PROBABILITIES),
    .draw = figure_distance_draw,
};
