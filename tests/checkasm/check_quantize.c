/* quantize_*: digits bit for bit, and what they stand for against float64. SPDX-License-Identifier: MIT */
#include "tests/checkasm/check_integer.h"

#include <math.h>

/* --------------------------------------------------------------------------------------------------------- quantize */

typedef struct quantize_case {
    integer_format format;
    size_t rows, depth;
    bool factor, damaged; /* damaged: some rows hold what is no number, and are compared apart */
    value_kind distribution;
    float scale;

    /* chosen by the body */
    size_t ldx, plane_bytes;
    test_buffer *x, *factors, *stored, *scales, *zeros;
} quantize_case;

static void call_quantize_u8(const kernels *table, const void *task) { table->quantize_u8(task); }
static void call_quantize_u8x2(const kernels *table, const void *task) { table->quantize_u8x2(task); }

static void call_quantize_u15(const kernels *table, const void *task) { table->quantize_u15(task); }

static const void *quantize_task_for(void *context, int copy)
{
    static quantize_task task;
    const quantize_case *c = context;
    task = (quantize_task){
        .rows = c->rows,
        .depth = c->depth,
        .x = c->x->copy[copy],
        .ldx = c->ldx,
        .factor = optional(c->factors, copy),
        .digits = (uint8_t *)c->stored->copy[copy],
        .plane_bytes = c->plane_bytes,
        .scale = c->scales->copy[copy],
        .zero = (int32_t *)c->zeros->copy[copy],
    };
    return &task;
}

/* What the digits of an input stand for, in float64. */
static double value_of_digits(const quantize_case *c, int copy, size_t i, size_t k)
{
    const uint8_t *at = (const uint8_t *)c->stored->copy[copy] + digit_at(round_up(c->depth, DIGIT_TILE_INPUTS), i, k);
    const double scale = (double)c->scales->copy[copy][i];
    if (c->format == ONE_DIGIT) return (at[0] - ((const int32_t *)c->zeros->copy[copy])[i]) * scale;
    if (c->format == FIFTEEN_BITS) return (128 * at[0] + at[c->plane_bytes]) * scale;
    return ((at[0] - DIGIT_OFFSET) + (at[c->plane_bytes] - DIGIT_OFFSET) / 128.0) * scale;
}

static bool damaged_row(const quantize_case *c, size_t i) { return c->damaged && i % 3 == 1; }

static void compare_values(test_run *run, const quantize_case *c)
{
    for (size_t i = 0; i < c->rows; i++) {
        const float scale = c->scales->copy[COPY_TESTED][i];
        if (damaged_row(c, i)) {
            if (!isnan(scale)) run_fail(run, "scale[%zu]: got %g of a row with an infinity or NaN", i, (double)scale);
            continue;
        }
        if (c->damaged && scale != c->scales->copy[COPY_EXPECTED][i])
            run_fail(run, "scale[%zu]: got %g, expected %g", i, (double)scale,
                     (double)c->scales->copy[COPY_EXPECTED][i]);
        const double step = (double)scale * (c->format == TWO_DIGITS ? 1 / 128.0 : 1);
        for (size_t k = 0; k < c->depth; k++) {
            const float x = c->x->copy[COPY_INITIAL][i * c->ldx + k];
            const float v = c->factors ? x * c->factors->copy[COPY_INITIAL][k] : x;
            const double size = 0.5 * step + 4 * EPS * fabs((double)v) + 0x1p-99;
            if (!run_error(run, "value", i * c->depth + k, value_of_digits(c, COPY_TESTED, i, k), v, UNIT_EPS_S, size,
                           1.001))
                return;
        }
        for (size_t k = c->depth; k < round_up(c->depth, DIGIT_TILE_INPUTS); k++)
            if (value_of_digits(c, COPY_TESTED, i, k) != 0) run_fail(run, "row %zu, behind it %zu: not 0", i, k);
    }
}

/* From 0 to 1, with both ends, and what lies below half a step. */
static void fill_probabilities(test_run *run, const quantize_case *c)
{
    float *x = c->x->copy[COPY_INITIAL];
    for (size_t i = 0; i < c->rows; i++)
        for (size_t k = 0; k < c->depth; k++) {
            const size_t kind = random_index(run, 8);
            x[i * c->ldx + k] = kind == 0   ? 0.0f
                                : kind == 1 ? 1.0f
                                : kind == 2 ? random_uniform(run, 0.0f, 2.0f / U15_TOP)
                                            : random_uniform(run, 0.0f, 1.0f);
        }
}

static void fill_rows(test_run *run, const quantize_case *c)
{
    float *x = c->x->copy[COPY_INITIAL];
    fill_matrix(run, x, c->rows, c->depth, c->ldx, c->distribution, c->scale);
    for (size_t i = 0; i < c->rows; i++) {
        if (i % 5 == 2) fill_matrix(run, x + i * c->ldx, 1, c->depth, c->ldx, DIST_BELL, 0); /* zeros */
        if (i % 5 == 3)
            for (size_t k = 0; k < c->depth; k++) x[i * c->ldx + k] = fabsf(x[i * c->ldx + k]); /* one-sided */
        if (damaged_row(c, i)) x[i * c->ldx + random_index(run, c->depth)] = i % 2 ? NAN : i % 4 ? INFINITY : -INFINITY;
    }
}

static void quantize_body(test_run *run, const void *parameters)
{
    quantize_case c = *(const quantize_case *)parameters;
    const size_t depth = round_up(c.depth, DIGIT_TILE_INPUTS);
    const buffer_kind kind = c.damaged ? BUFFER_OUTPUT_ANY : BUFFER_OUTPUT;
    c.ldx = random_ld(run, c.depth);
    c.plane_bytes = round_up(c.rows, DIGIT_TILE_ROWS) * depth;
    c.x = run_buffer(run, "x", matrix_span(c.rows, c.depth, c.ldx), BUFFER_INPUT);
    if (c.factor) {
        c.factors = run_buffer(run, "factor", c.depth, BUFFER_INPUT);
        for (size_t k = 0; k < c.depth; k++) c.factors->copy[COPY_INITIAL][k] = random_uniform(run, 0.1f, 3.0f);
    }
    c.stored = byte_buffer_of(run, "digits", c.plane_bytes * FORMAT_PLANES(c.format), kind);
    c.scales = run_buffer(run, "scale", c.rows, kind);
    c.zeros = run_buffer(run, "zero", c.rows, kind);
    if (c.format == FIFTEEN_BITS)
        fill_probabilities(run, &c);
    else
        fill_rows(run, &c);
    static void (*const calls[])(const kernels *, const void *) = {call_quantize_u8, call_quantize_u8x2,
                                                                   call_quantize_u15};
    if (run_kernels(run, calls[c.format], quantize_task_for, &c)) compare_values(run, &c);
}

static void walk_quantize(test_run *run, integer_format format)
{
    static const size_t depths[] = {1, 3, 15, 16, 17, 63, 64, 65, 100, 128, 511, 768, 1024};
    static const value_kind kinds[] = {DIST_BELL, DIST_WIDE, DIST_EXACT};
    const bool any = format != FIFTEEN_BITS; /* numbers, factors and depths */
    for (size_t d = 0; d < sizeof depths / sizeof *depths && (any || depths[d] <= MAX_U15_DEPTH); d++)
        for (size_t rows = 0; rows <= 35; rows += rows < 18 ? 1 : 8) {
            const quantize_case c = {.format = format,
                                     .rows = rows,
                                     .depth = depths[d],
                                     .factor = any && (rows + d) % 2,
                                     .damaged = any && rows % 4 == 2,
                                     .distribution = kinds[(rows + d) % 3],
                                     .scale = rows % 7 == 6   ? 0x1p-120f
                                              : rows % 7 == 5 ? 0x1p90f
                                                              : 1};
            run_case(run, 20, quantize_body, &c, "rows %zu, depth %zu%s%s, scale %g", c.rows, c.depth,
                     c.factor ? ", factor" : "", c.damaged ? ", damaged" : "", (double)c.scale);
        }
}

void check_quantize_u8(test_run *run) { walk_quantize(run, ONE_DIGIT); }
void check_quantize_u8x2(test_run *run) { walk_quantize(run, TWO_DIGITS); }
void check_quantize_u15(test_run *run) { walk_quantize(run, FIFTEEN_BITS); }

/* -------------------------------------------------------------------------------------------------- quantize_panels */

typedef struct panels_case {
    size_t panels, depth;
    bool factor, damaged; /* damaged: every third column holds what is no number */
    value_kind distribution;
    float scale;

    /* chosen by the body */
    size_t stride;
    test_buffer *x, *factors, *stored, *scales, *sums;
} panels_case;

static void call_quantize_panels(const kernels *table, const void *task) { table->quantize_panels_s8(task); }

static const void *panels_task_for(void *context, int copy)
{
    static quantize_panels_task task;
    const panels_case *c = context;
    task = (quantize_panels_task){
        .panels = c->panels,
        .depth = c->depth,
        .x = c->x->copy[copy],
        .x_panel_stride = c->stride,
        .factor = optional(c->factors, copy),
        .digits = (int8_t *)c->stored->copy[copy],
        .scale = c->scales->copy[copy],
        .sum = (int32_t *)c->sums->copy[copy],
    };
    return &task;
}

static void compare_column(test_run *run, const panels_case *c, size_t j)
{
    const size_t padded = round_up(c->depth, DIGIT_TILE_INPUTS);
    const int8_t *digits = (const int8_t *)c->stored->copy[COPY_TESTED] + j / PANEL * padded * PANEL + j % PANEL * 4;
    const float *x = c->x->copy[COPY_INITIAL] + j / PANEL * c->stride + j % PANEL,
                scale = c->scales->copy[COPY_TESTED][j];
    if (c->damaged && j % 3 == 1) {
        if (!isnan(scale)) run_fail(run, "scale[%zu]: got %g of a column with an infinity or NaN", j, (double)scale);
        return;
    }
    int32_t sum = 0;
    for (size_t k = 0; k < padded; k++) {
        const int8_t digit = digits[k / 4 * (4 * PANEL) + k % 4];
        const float v = k >= c->depth ? 0.0f
                        : c->factors  ? x[k * PANEL] * c->factors->copy[COPY_INITIAL][k]
                                      : x[k * PANEL];
        const double size = 0.5 * (double)scale + 4 * EPS * fabs((double)v) + 0x1p-99;
        sum += digit;
        if (!run_error(run, "value", j * padded + k, digit * (double)scale, (double)v, UNIT_EPS_S, size, 1.001)) return;
    }
    const int32_t found = ((const int32_t *)c->sums->copy[COPY_TESTED])[j];
    if (found != sum) run_fail(run, "sum[%zu]: got %d, expected %d", j, found, sum);
}

static void panels_body(test_run *run, const void *parameters)
{
    panels_case c = *(const panels_case *)parameters;
    const size_t columns = c.panels * PANEL;
    const buffer_kind kind = c.damaged ? BUFFER_OUTPUT_ANY : BUFFER_OUTPUT;
    c.stride = c.depth * PANEL + random_index(run, 40);
    c.x = run_buffer(run, "x", (c.panels - 1) * c.stride + c.depth * PANEL, BUFFER_INPUT);
    if (c.factor) {
        c.factors = run_buffer(run, "factor", c.depth, BUFFER_INPUT);
        for (size_t k = 0; k < c.depth; k++) c.factors->copy[COPY_INITIAL][k] = (float)random_index(run, 2);
    }
    c.stored = byte_buffer_of(run, "digits", round_up(c.depth, DIGIT_TILE_INPUTS) * columns, kind);
    c.scales = run_buffer(run, "scale", columns, kind);
    c.sums = run_buffer(run, "sum", columns, kind);
    float *x = c.x->copy[COPY_INITIAL];
    for (size_t p = 0; p < c.panels; p++) {
        fill_matrix(run, x + p * c.stride, c.depth, PANEL, PANEL, c.distribution, c.scale);
        for (size_t k = 0; k < c.depth; k++) x[p * c.stride + k * PANEL + 2] = 0.0f; /* a column of zeros */
    }
    for (size_t j = 1; c.damaged && j < columns; j += 3)
        x[j / PANEL * c.stride + random_index(run, c.depth) * PANEL + j % PANEL] = j % 2 ? NAN : INFINITY;
    if (!run_kernels(run, call_quantize_panels, panels_task_for, &c)) return;
    for (size_t j = 0; j < columns; j++) compare_column(run, &c, j);
}

void check_quantize_panels_s8(test_run *run)
{
    static const size_t depths[] = {1, 3, 4, 15, 16, 63, 64, 65, 100, 128, 511, 512, 1024};
    static const value_kind kinds[] = {DIST_BELL, DIST_WIDE, DIST_EXACT};
    for (size_t d = 0; d < sizeof depths / sizeof *depths; d++)
        for (size_t panels = 1; panels <= 5; panels++) {
            const panels_case c = {.panels = panels,
                                   .depth = depths[d],
                                   .factor = (panels + d) % 2,
                                   .damaged = panels % 4 == 2,
                                   .distribution = kinds[(panels + d) % 3],
                                   .scale = panels == 5   ? 0x1p-120f
                                            : panels == 4 ? 0x1p90f
                                                          : 1};
            run_case(run, 20, panels_body, &c, "panels %zu, depth %zu%s%s, scale %g", c.panels, c.depth,
                     c.factor ? ", factor" : "", c.damaged ? ", damaged" : "", (double)c.scale);
        }
}
