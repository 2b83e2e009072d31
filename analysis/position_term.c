/* The term is computed from the folded projections of the model, a table entry a distance.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/position_term.h"

#include <stdlib.h>

#include "core/model/model.h"

/* Element k of PK's row: the table lies in panels of 16 rows, the last row first (core/model/model.h). */
static float position_key(const deberta_model *model, size_t layer, size_t head, size_t row, size_t k)
{
    const size_t d = model->head_size, panels = ceiling_divide(model->relative_rows, PANEL);
    const size_t reversed = model->relative_rows - 1 - row;
    return model->layers[layer].position_keys[((head * panels + reversed / PANEL) * d + k) * PANEL + reversed % PANEL];
}

static float product(const deberta_model *model, size_t layer, size_t head, size_t query_row, size_t key_row)
{
    const float *query =
        model->layers[layer].position_queries + (head * model->relative_rows + query_row) * model->padded_head;
    double sum = 0;
    for (size_t k = 0; k < model->head_size; k++)
        sum += (double)query[k] * (double)position_key(model, layer, head, key_row, k);
    return (float)sum;
}

/* A distance of every row: the nearest to 0, or any where the texts never meet the row. */
static void find_distances(const deberta_model *model, size_t reach, ptrdiff_t *distance_of)
{
    for (size_t row = 0; row < model->relative_rows; row++) distance_of[row] = 0;
    for (ptrdiff_t r = (ptrdiff_t)reach; r > 0; r--) {
        distance_of[position_row(&model->rule, r)] = r;
        distance_of[position_row(&model->rule, -r)] = -r;
    }
    distance_of[position_row(&model->rule, 0)] = 0;
}

static void fill(position_term *term, const deberta_model *model, position_term_index index,
                 const ptrdiff_t *distance_of)
{
    const ptrdiff_t reach = (ptrdiff_t)term->reach;
    for (size_t layer = 0; layer < model->config.layers; layer++)
        for (size_t head = 0; head < term->heads; head++) {
            float *by_row = term->by_row + (layer * term->heads + head) * term->rows;
            float *by_distance = term->by_distance + (layer * term->heads + head) * (2 * term->reach + 1);
            for (size_t row = 0; row < term->rows; row++) {
                const size_t other = index == POSITION_TERM_PAPER ? position_row(&model->rule, -distance_of[row]) : row;
                by_row[row] = product(model, layer, head, other, row);
            }
            for (ptrdiff_t r = -reach; r <= reach; r++) by_distance[r + reach] = by_row[position_row(&model->rule, r)];
        }
}

deberta_status position_term_make(position_term *term, const deberta_model *model, position_term_index index,
                                  size_t tokens, deberta_error *err)
{
    *term = (position_term){.heads = model->config.heads, .rows = model->relative_rows, .reach = tokens};
    if (!model->has_c2p || !model->has_p2c)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s has not both c2p and p2c, of which p2p would be made",
                     model->name);
    const size_t heads = model->config.layers * model->config.heads;
    ptrdiff_t *distance_of = malloc(term->rows * sizeof *distance_of);
    term->by_row = calloc(heads, term->rows * sizeof *term->by_row);
    term->by_distance = calloc(heads, (2 * tokens + 1) * sizeof *term->by_distance);
    const bool fits = distance_of && term->by_row && term->by_distance;
    if (fits) {
        find_distances(model, tokens, distance_of);
        fill(term, model, index, distance_of);
    }
    free(distance_of);
    if (!fits) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the position-to-position term");
    return DEBERTA_OK;
}

void position_term_free(position_term *term)
{
    free(term->by_row);
    free(term->by_distance);
    *term = (position_term){0};
}
