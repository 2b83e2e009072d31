/* Centres matrices of a head, pools them if they are large, and packs them as floats or bytes.
 *
 * SPDX-License-Identifier: MIT */
#include "program/report/explorer_cells.h"

#include <math.h>
#include <string.h>

enum {
    POOLED_CELLS = 128,            /* most cells on a side */
    EXACT_BUDGET_BYTES = 4u << 20, /* texts whose heads need no more in total are kept exactly */
};

static bool is_stored(const cell_layout *layout, int component)
{
    return layout->has[component] && component != DEBERTA_LOGITS;
}

size_t cell_layout_bytes(const cell_layout *layout)
{
    const size_t terms = 1u + layout->has[DEBERTA_C2P] + layout->has[DEBERTA_P2C];
    const size_t area = layout->cells * layout->cells;
    return terms * layout->cells * sizeof(float) + (terms + 1) * area * (layout->exact ? sizeof(float) : 1) +
           (layout->pool > 1 ? 2 * (terms + 2) * area : 0);
}

bool cell_layout_all_bytes(const cell_layout *layout, size_t layers, size_t heads, size_t *bytes)
{
    return size_multiply(layers, heads, bytes) && size_multiply(*bytes, cell_layout_bytes(layout), bytes);
}

static bool fits(const cell_layout *layout, size_t heads, size_t budget_bytes)
{
    size_t bytes;
    return cell_layout_all_bytes(layout, 1, heads, &bytes) && bytes <= budget_bytes;
}

cell_layout cell_layout_choose(size_t n, bool has_c2p, bool has_p2c, size_t heads, size_t budget_bytes)
{
    cell_layout layout = {.n = n, .pool = 1, .cells = n, .exact = true, .has = {true, has_c2p, has_p2c, true, true}};
    const size_t exact_budget = budget_bytes < EXACT_BUDGET_BYTES ? budget_bytes : EXACT_BUDGET_BYTES;
    if (n <= PLAIN_CELLS && fits(&layout, heads, exact_budget)) return layout;
    layout.exact = false;
    if (n <= PLAIN_CELLS && fits(&layout, heads, budget_bytes)) return layout;
    do {
        layout.pool++;
        layout.cells = (n + layout.pool - 1) / layout.pool;
    } while (layout.cells > 1 && (layout.cells > POOLED_CELLS || !fits(&layout, heads, budget_bytes)));
    return layout;
}

/* -------------------------------------------------------------------------------------------- ----------- row means */

/* Subtracts the mean of its finite values from a row and returns it. */
static double centre_row(float *row, size_t n)
{
    double sum = 0;
    size_t finite = 0;
    for (size_t j = 0; j < n; j++)
        if (isfinite(row[j])) {
            sum += (double)row[j];
            finite++;
        }
    const double mean = finite ? sum / (double)finite : 0;
    for (size_t j = 0; j < n; j++) row[j] = (float)((double)row[j] - mean);
    return mean;
}

static void take_means(const cell_layout *layout, float *matrix, float *means)
{
    memset(means, 0, layout->cells * sizeof *means);
    for (size_t i = 0; i < layout->n; i++) {
        const size_t cell = i / layout->pool, first = cell * layout->pool;
        const size_t rows = layout->n - first < layout->pool ? layout->n - first : layout->pool;
        means[cell] += (float)(centre_row(matrix + i * layout->n, layout->n) / (double)rows);
    }
}

/* ------------------------------------------------------------------------------------------------------------- cells */

typedef struct cell {
    double mean, least, greatest; /* NaN if a value of the cell is not finite */
} cell;

static cell pool_cell(const cell_layout *layout, const float *matrix, size_t I, size_t J)
{
    const size_t n = layout->n, pool = layout->pool;
    const double only = (double)matrix[I * pool * n + J * pool];
    if (pool == 1) return isfinite(only) ? (cell){only, only, only} : (cell){NAN, NAN, NAN};
    const size_t last_i = (I + 1) * pool < n ? (I + 1) * pool : n, last_j = (J + 1) * pool < n ? (J + 1) * pool : n;
    cell found = {0, INFINITY, -INFINITY};
    size_t count = 0;
    for (size_t i = I * pool; i < last_i; i++)
        for (size_t j = J * pool; j < last_j; j++, count++) {
            const double value = (double)matrix[i * n + j];
            if (!isfinite(value)) return (cell){NAN, NAN, NAN};
            found.mean += value;
            found.least = fmin(found.least, value);
            found.greatest = fmax(found.greatest, value);
        }
    found.mean /= (double)count;
    return found;
}

/* Measures the scales, of which every byte is a fraction, before packing. */
static void explorer_cells_measure(const cell_layout *layout, float *const matrices[], const float *const means[],
                                   cell_scales *scales)
{
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++) {
        if (!layout->has[c]) continue;
        for (size_t I = 0; I < layout->cells; I++) {
            double row_mean = 0;
            for (int term = DEBERTA_C2C; term <= DEBERTA_P2C; term++)
                if (means[term] && (c == term || c == DEBERTA_LOGITS)) row_mean += (double)means[term][I];
            for (size_t J = 0; J < layout->cells; J++) {
                const cell found = pool_cell(layout, matrices[c], I, J);
                scales->not_finite += isnan(found.mean);
                scales->scale[c] = fmax(scales->scale[c], fabs(found.mean));
                scales->range[c] = fmax(scales->range[c], fmax(fabs(found.least), fabs(found.greatest)));
                if (c != DEBERTA_PROBABILITIES)
                    scales->largest_plain = fmax(scales->largest_plain, fabs(found.mean + row_mean));
            }
        }
        if (c != DEBERTA_PROBABILITIES) scales->largest_centred = fmax(scales->largest_centred, scales->scale[c]);
    }
}

static uint8_t as_byte(int component, double value, double scale)
{
    if (component == DEBERTA_PROBABILITIES)
        return isnan(value) ? 255 : scale > 0 ? (uint8_t)lround(254 * sqrt(fmax(value, 0) / scale)) : 0;
    return (uint8_t)(int8_t)(isnan(value) ? -128 : scale > 0 ? lround(127 * value / scale) : 0);
}

static uint8_t *put_values(const cell_layout *layout, int component, const float *matrix, double scale, uint8_t *at)
{
    if (layout->exact) {
        const size_t size_bytes = layout->n * layout->n * sizeof *matrix;
        memcpy(at, matrix, size_bytes);
        return at + size_bytes;
    }
    for (size_t I = 0; I < layout->cells; I++)
        for (size_t J = 0; J < layout->cells; J++)
            *at++ = as_byte(component, pool_cell(layout, matrix, I, J).mean, scale);
    return at;
}

static uint8_t *put_range(const cell_layout *layout, int component, const float *matrix, double range, uint8_t *at)
{
    const size_t area = layout->cells * layout->cells;
    for (size_t I = 0; I < layout->cells; I++)
        for (size_t J = 0; J < layout->cells; J++, at++) {
            const cell found = pool_cell(layout, matrix, I, J);
            at[0] = as_byte(component, found.least, range);
            at[area] = as_byte(component, found.greatest, range);
        }
    return at + area;
}

void cells_pack(const cell_layout *layout, float *const matrices[DEBERTA_COMPONENT_COUNT], uint8_t *bytes,
                cell_scales *scales)
{
    *scales = (cell_scales){0};
    const float *means[3] = {NULL};
    uint8_t *at = bytes;
    for (int c = DEBERTA_C2C; c <= DEBERTA_P2C; c++) {
        if (!layout->has[c]) continue;
        take_means(layout, matrices[c], (float *)(void *)at);
        means[c] = (const float *)(const void *)at;
        at += layout->cells * sizeof(float);
    }
    for (size_t i = 0; i < layout->n; i++) centre_row(matrices[DEBERTA_LOGITS] + i * layout->n, layout->n);
    explorer_cells_measure(layout, matrices, means, scales);
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
        if (is_stored(layout, c)) at = put_values(layout, c, matrices[c], scales->scale[c], at);
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
        if (layout->has[c] && layout->pool > 1) at = put_range(layout, c, matrices[c], scales->range[c], at);
}
