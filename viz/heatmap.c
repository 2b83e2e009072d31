/* Prepares, scales and draws the cells of heat maps. Values are double until they are stored as the float that is
 * drawn; a colour is one table look-up.
 *
 * SPDX-License-Identifier: MIT */
#include "viz/heatmap.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "output/scope.h"
#include "viz/ticks.h"

/* ------------------------------------------------------------------------------------------------------ preparing */

/* Returns the mean without masked keys (-inf), which take no part in a softmax. */
static double finite_mean(const float *row, size_t count)
{
    double sum = 0;
    size_t finite = 0;
    for (size_t j = 0; j < count; j++) {
        if (!isfinite(row[j])) continue;
        sum += row[j];
        finite++;
    }
    return finite ? sum / (double)finite : 0;
}

static bool showable(float value, bool positive) { return isfinite(value) && (!positive || value > 0); }

/* Counts values in the matrix, not in the pooled cells, because the note describes the data. */
static void count_values(heatmap_cells *cells, const heatmap_matrix *matrix, bool positive)
{
    for (size_t i = 0; i < matrix->rows; i++) {
        for (size_t j = 0; j < matrix->columns; j++) {
            float value = matrix->values[i * matrix->stride + j];
            if (isnan(value))
                cells->not_a_number++;
            else if (isinf(value))
                cells->infinite++;
            else if (!showable(value, positive))
                cells->not_positive++;
            else if (fabsf(value) > cells->magnitude)
                cells->magnitude = fabsf(value);
        }
    }
}

/* Adds one row of the matrix to the sums of the drawn row it belongs to. A value that cannot be shown makes the sum
 * NaN. */
static void heatmap_add_row(double *sums, const float *row, size_t columns, double offset, bool positive,
                            size_t column_pool)
{
    for (size_t first = 0; first < columns; first += column_pool, sums++) {
        const size_t end = first + column_pool < columns ? first + column_pool : columns;
        for (size_t j = first; j < end; j++) *sums += showable(row[j], positive) ? row[j] - offset : (double)NAN;
    }
}

void heatmap_prepare(heatmap_cells *cells, const heatmap_matrix *matrix, heatmap_kind kind, bool centre,
                     size_t row_pool, size_t column_pool)
{
    centre = centre && kind == HEATMAP_SIGNED;
    assert(row_pool > 0 && column_pool > 0 && matrix->rows > 0 && matrix->columns > 0 &&
           matrix->stride >= matrix->columns);
    size_t rows = (matrix->rows - 1) / row_pool + 1, columns = (matrix->columns - 1) / column_pool + 1;
    *cells = (heatmap_cells){.rows = rows, .columns = columns, .row_pool = row_pool, .column_pool = column_pool};
    cells->values = memory_take(rows, columns * sizeof *cells->values);
    double *sums = memory_take(columns, sizeof *sums);
    bool positive = kind == HEATMAP_LOG;
    count_values(cells, matrix, positive);
    /* Rounding errors of a row whose cells are all equal must not be scaled up to full colour. */
    double dust = centre ? 1e-6 * cells->magnitude : 0;
    for (size_t i = 0; i < rows; i++) {
        size_t first = i * row_pool, last = first + row_pool < matrix->rows ? first + row_pool : matrix->rows;
        for (size_t j = 0; j < columns; j++) sums[j] = 0;
        for (size_t k = first; k < last; k++) {
            const float *row = matrix->values + k * matrix->stride;
            heatmap_add_row(sums, row, matrix->columns, centre ? finite_mean(row, matrix->columns) : 0, positive,
                            column_pool);
        }
        for (size_t j = 0; j < columns; j++) {
            size_t left = j * column_pool,
                   right = left + column_pool < matrix->columns ? left + column_pool : matrix->columns;
            double mean = sums[j] / (double)((last - first) * (right - left));
            cells->values[i * columns + j] = fabs(mean) < dust ? 0 : (float)mean;
        }
    }
    free(sums);
    cells->whole = true;
    for (size_t k = 0; k < rows * columns; k++)
        cells->whole &= !(cells->values[k] != rintf(cells->values[k])) || isnan(cells->values[k]);
}

void heatmap_cells_free(heatmap_cells *cells)
{
    free(cells->values);
    *cells = (heatmap_cells){0};
}

size_t heatmap_pool(double cell, double pixel)
{
    const double pooled = cell > 0 ? ceil(pixel / cell - 1e-9) : INFINITY;
    return cell >= pixel ? 1 : pooled < 1e9 ? (size_t)pooled : (size_t)1000000000;
}

/* ---------------------------------------------------------------------------------------------------------- scale */

deberta_status heatmap_check_choice(const heatmap_choice *choice, heatmap_kind kind, deberta_error *err)
{
    if (choice->policy == HEATMAP_FIXED) {
        if (!(isfinite(choice->low) && isfinite(choice->high) && choice->low < choice->high))
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "colour scale from %g to %g: the first must be the smaller",
                         choice->low, choice->high);
        if (kind == HEATMAP_LOG && choice->low <= 0)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "logarithmic colour scale from %g: it must be positive", choice->low);
    }
    if (!(choice->percentile >= 0 && choice->percentile <= 100))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "colour scale percentile %g, expected 0 to 100", choice->percentile);
    return DEBERTA_OK;
}

typedef struct value_range {
    double low, high;
    size_t finite;
} value_range;

/* Returns the range of all cells that share a scale; low > high if there is no finite value. */
static value_range range_of(const heatmap_cells *const *panels, size_t count)
{
    value_range range = {INFINITY, -INFINITY, 0};
    for (size_t p = 0; p < count; p++) {
        for (size_t k = 0; k < panels[p]->rows * panels[p]->columns; k++) {
            double value = panels[p]->values[k];
            if (isnan(value)) continue;
            range.low = fmin(range.low, value);
            range.high = fmax(range.high, value);
            range.finite++;
        }
    }
    return range;
}

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Replaces the range by percentiles: of |value| for the signed kind, on both sides otherwise. */
static void robust_range(value_range *range, heatmap_kind kind, double percentile, const heatmap_cells *const *panels,
                         size_t count)
{
    float *sorted = memory_take((range->finite ? range->finite : 1), sizeof *sorted);
    size_t used = 0;
    for (size_t p = 0; p < count; p++)
        for (size_t k = 0; k < panels[p]->rows * panels[p]->columns; k++) {
            float value = panels[p]->values[k];
            if (!isnan(value)) sorted[used++] = kind == HEATMAP_SIGNED ? fabsf(value) : value;
        }
    qsort(sorted, used, sizeof *sorted, compare_floats);
    if (used > 0) {
        double high = sorted[(size_t)ceil(percentile / 100 * (double)(used - 1))];
        double low = sorted[(size_t)floor((1 - percentile / 100) * (double)(used - 1))];
        /* If almost all cells are equal, percentiles mean nothing, and the extremes are kept. */
        if (kind == HEATMAP_SIGNED ? high > 0 : high > low)
            *range = (value_range){kind == HEATMAP_SIGNED ? -high : low, high, used};
    }
    free(sorted);
}

/* Counts clipped cells; those at the very limit are not clipped. */
static void count_clipped(heatmap_scale *scale, const heatmap_cells *const *panels, size_t count)
{
    for (size_t p = 0; p < count; p++)
        for (size_t k = 0; k < panels[p]->rows * panels[p]->columns; k++) {
            double value = panels[p]->values[k];
            scale->below += value < scale->low;
            scale->above += value > scale->high;
        }
}

void heatmap_choose(heatmap_scale *scale, heatmap_kind kind, const heatmap_choice *choice,
                    const heatmap_cells *const *panels, size_t count)
{
    value_range range = range_of(panels, count);
    if (choice->policy == HEATMAP_ROBUST && range.finite)
        robust_range(&range, kind, choice->percentile > 0 ? choice->percentile : 99, panels, count);
    if (range.finite == 0) range = (value_range){0, 0, 0};
    double largest = fmax(fabs(range.low), fabs(range.high));
    if (kind == HEATMAP_SIGNED || (kind == HEATMAP_RANGE && choice->symmetric))
        range = (value_range){-largest, largest, range.finite};
    if (kind == HEATMAP_POSITIVE) range.low = fmin(0, range.low);
    if (!(range.low < range.high)) { /* all values are equal, so the scale is some range around them */
        static const double below[] = {[HEATMAP_SIGNED] = 1, [HEATMAP_POSITIVE] = 0, [HEATMAP_RANGE] = 0.5};
        static const double above[] = {[HEATMAP_SIGNED] = 1, [HEATMAP_POSITIVE] = 1, [HEATMAP_RANGE] = 0.5};
        double middle = range.low;
        if (kind == HEATMAP_LOG && middle <= 0) middle = 1; /* there is no cell */
        range.low = kind == HEATMAP_LOG ? middle / 2 : middle - below[kind];
        range.high = kind == HEATMAP_LOG ? middle * 2 : middle + above[kind];
        /* a quantity without negative values may have none by nature */
        if (kind == HEATMAP_RANGE && middle >= 0 && !choice->symmetric) range.low = fmax(0, range.low);
    }
    if (choice->policy == HEATMAP_FIXED) range = (value_range){choice->low, choice->high, 0};
    *scale = (heatmap_scale){.low = range.low, .high = range.high, .logarithmic = kind == HEATMAP_LOG};
    count_clipped(scale, panels, count);
}

double heatmap_position(const heatmap_scale *scale, bool diverging, double value)
{
    value = fmin(fmax(value, scale->low), scale->high);
    if (scale->logarithmic) return log(value / scale->low) / log(scale->high / scale->low);
    if (!diverging) return (value - scale->low) / (scale->high - scale->low);
    double reach = fmax(fabs(scale->low), fabs(scale->high));
    return 0.5 + 0.5 * value / reach;
}

draw_colour heatmap_colour(const heatmap_scale *scale, const palette *map, double value)
{
    draw_colour table[PALETTE_LEVELS_MAX];
    size_t levels = palette_table(map, table);
    return table[palette_level(levels, heatmap_position(scale, palette_is_diverging(map), value))];
}

/* -------------------------------------------------------------------------------------------------------- drawing */

static const draw_colour unknown_fill = {225, 225, 225, 255};

/* Fills the colours row by row from the top, as images are stored. */
static void cell_colours(uint8_t *rgb, const heatmap_cells *cells, const heatmap_scale *scale, const palette *map)
{
    draw_colour table[PALETTE_LEVELS_MAX];
    size_t levels = palette_table(map, table);
    bool diverging = palette_is_diverging(map);
    for (size_t k = 0; k < cells->rows * cells->columns; k++, rgb += 3) {
        double value = cells->values[k];
        draw_colour colour =
            isnan(value) ? unknown_fill : table[palette_level(levels, heatmap_position(scale, diverging, value))];
        rgb[0] = colour.r;
        rgb[1] = colour.g;
        rgb[2] = colour.b;
    }
}

/* Returns true if row i has exactly the run [from, to) of unknown cells. */
static bool same_run(const heatmap_cells *cells, size_t i, size_t from, size_t to)
{
    const float *row = cells->values + i * cells->columns;
    if ((from > 0 && isnan(row[from - 1])) || (to < cells->columns && isnan(row[to]))) return false;
    for (size_t j = from; j < to; j++)
        if (!isnan(row[j])) return false;
    return true;
}

/* Hatches unknown cells run by run; runs that repeat below are one rectangle. */
static void hatch_unknown(draw_list *list, draw_rect rect, double cell_width, double cell_height,
                          const heatmap_cells *cells)
{
    const draw_pen pen = {{110, 110, 110, 255}, 0.3, DRAW_SOLID};
    double spacing = fmax(0.6, fmin(1.2, cell_width / 2));
    for (size_t i = 0; i < cells->rows; i++) {
        const float *row = cells->values + i * cells->columns;
        for (size_t from = 0, to; from < cells->columns; from = to) {
            to = from + 1;
            if (!isnan(row[from])) continue;
            while (to < cells->columns && isnan(row[to])) to++;
            if (i > 0 && same_run(cells, i - 1, from, to)) continue; /* drawn with the row where it began */
            size_t bottom = i + 1;
            while (bottom < cells->rows && same_run(cells, bottom, from, to)) bottom++;
            draw_rect run = {rect.x + (double)from * cell_width, rect.y + (double)i * cell_height,
                             (double)(to - from) * cell_width, (double)(bottom - i) * cell_height};
            run.width = fmin(run.width, rect.x + rect.width - run.x);
            run.height = fmin(run.height, rect.y + rect.height - run.y);
            draw_hatch(list, run, spacing, &pen);
        }
    }
}

void heatmap_draw(draw_list *list, draw_rect rect, const heatmap_cells *cells, size_t matrix_rows,
                  size_t matrix_columns, const heatmap_scale *scale, const palette *map)
{
    uint8_t *rgb = memory_take(cells->rows * cells->columns, 3);
    cell_colours(rgb, cells, scale, map);
    double cell_width = rect.width / (double)matrix_columns * (double)cells->column_pool;
    double cell_height = rect.height / (double)matrix_rows * (double)cells->row_pool;
    draw_rect image = {rect.x, rect.y, cell_width * (double)cells->columns, cell_height * (double)cells->rows};
    bool sticks_out = matrix_columns % cells->column_pool || matrix_rows % cells->row_pool;
    if (sticks_out) draw_clip(list, rect);
    draw_image(list, image, rgb, cells->rows, cells->columns);
    if (sticks_out) draw_unclip(list);
    free(rgb);
    hatch_unknown(list, rect, cell_width, cell_height, cells);
}

void heatmap_unit_text(const char *unit, heatmap_kind kind, bool keep_row_mean, char text[HEATMAP_UNIT_BYTES])
{
    static const char *const defaults[] = {"logit", "probability", "value", "value"};
    bool centred = kind == HEATMAP_SIGNED && !keep_row_mean;
    snprintf(text, HEATMAP_UNIT_BYTES, "%s%s", unit ? unit : defaults[kind], centred ? ", row mean subtracted" : "");
}
