/* Kernels of integers are compared with exact values, because their sums have no rounding.
 *
 * SPDX-License-Identifier: MIT */
#include "check/verify_integer.h"

#include <float.h>
#include <math.h>

enum { MOST_ROWS = 20, MOST_PANELS = 3, MOST_TILES = 3 };

/* --------------------------------------------------------------------------------------------------------- quantize */

/* The output of a tier: scales, zero points, digits. */
typedef struct quantized {
    float *scale;
    int32_t *zero;
    uint8_t *digits;
} quantized;

static quantized quantized_in(float *out, size_t rows)
{
    return (quantized){out, (int32_t *)(void *)(out + rows), (uint8_t *)(out + 2 * rows)};
}

static void call_quantize(const kernels *table, integer_format format, const quantize_task *task)
{
    if (format == ONE_DIGIT)
        table->quantize_u8(task);
    else if (format == TWO_DIGITS)
        table->quantize_u8x2(task);
    else
        table->quantize_u15(task);
}

/* What the digits of an input stand for; at: the byte of the first plane. */
static double value_of(integer_format format, const uint8_t *at, size_t plane, double scale, const int32_t *zero)
{
    if (format == ONE_DIGIT) return (at[0] - *zero) * scale;
    if (format == FIFTEEN_BITS) return (128 * at[0] + at[plane]) * scale;
    return ((at[0] - DIGIT_OFFSET) + (at[plane] - DIGIT_OFFSET) / 128.0) * scale;
}

static void round_quantize(verify_rounds *k, integer_format format)
{
    const double step = format == TWO_DIGITS ? 0.5 / 128 : 0.5; /* what an error is measured in, of a scale */
    const size_t rows = rounds_size(k, MOST_ROWS), depth = rounds_size(k, 500);
    const size_t padded = (depth + DIGIT_TILE_INPUTS - 1) / DIGIT_TILE_INPUTS * DIGIT_TILE_INPUTS;
    const size_t plane = (rows + DIGIT_TILE_ROWS - 1) / DIGIT_TILE_ROWS * DIGIT_TILE_ROWS * padded;
    const size_t floats = 2 * rows + plane * (size_t)FORMAT_PLANES(format) / sizeof(float);
    rounds_fill(k, k->a, rows * depth);
    for (size_t e = 0; format == FIFTEEN_BITS && e < rows * depth; e++) /* of no other numbers than probabilities */
        k->a[e] = (float)rounds_below(k, 1 << 20) / (1 << 20);
    rounds_start(k, floats);
    EACH_TIER(t)
    {
        const quantized to = quantized_in(k->out[t], rows);
        const quantize_task task = {.rows = rows,
                                    .depth = depth,
                                    .x = k->a,
                                    .ldx = depth,
                                    .digits = to.digits,
                                    .plane_bytes = plane,
                                    .scale = to.scale,
                                    .zero = to.zero};
        call_quantize(&k->tables[t], format, &task);
    }
    rounds_compare(k, floats);
    for (size_t i = 0; i < rows; i++)
        for (size_t e = 0; e < depth; e++) {
            const double v = (double)k->a[i * depth + e];
            EACH_TIER(t)
            {
                const quantized of = quantized_in(k->out[t], rows);
                const double scale = (double)of.scale[i];
                const double found = value_of(format, of.digits + digit_at(padded, i, e), plane, scale, &of.zero[i]);
                if (scale == 0 && fabs(v) > 1) continue; /* the range is infinite: the row counts as zeros */
                verify_errors_add(&k->errors[t], found, v, scale * step + 4 * FLT_EPSILON * fabs(v) + 0x1p-99,
                                  "row %zu, input %zu", i, e);
            }
        }
}

void round_quantize_u8(verify_rounds *k) { round_quantize(k, ONE_DIGIT); }
void round_quantize_u8x2(verify_rounds *k) { round_quantize(k, TWO_DIGITS); }
void round_quantize_u15(verify_rounds *k) { round_quantize(k, FIFTEEN_BITS); }

/* Scales, then sums, then digits, each [panels][16]. */
void round_quantize_panels_s8(verify_rounds *k)
{
    const size_t depth = rounds_size(k, 500), columns = (1 + rounds_below(k, MOST_PANELS)) * PANEL;
    const size_t padded = (depth + DIGIT_TILE_INPUTS - 1) / DIGIT_TILE_INPUTS * DIGIT_TILE_INPUTS;
    const size_t floats = 2 * columns + columns * padded / sizeof(float);
    rounds_fill(k, k->a, depth * columns);
    rounds_start(k, floats);
    EACH_TIER(t)
    {
        const quantize_panels_task task = {.panels = columns / PANEL,
                                           .depth = depth,
                                           .x = k->a,
                                           .x_panel_stride = depth * PANEL,
                                           .digits = (int8_t *)(k->out[t] + 2 * columns),
                                           .scale = k->out[t],
                                           .sum = (int32_t *)(void *)(k->out[t] + columns)};
        k->tables[t].quantize_panels_s8(&task);
    }
    rounds_compare(k, floats);
    for (size_t j = 0; j < columns; j++)
        for (size_t e = 0; e < depth; e++) {
            const size_t panel = j / PANEL, lane = j % PANEL;
            const double v = (double)k->a[(panel * depth + e) * PANEL + lane];
            EACH_TIER(t)
            {
                const int8_t *digits = (const int8_t *)(k->out[t] + 2 * columns) + panel * padded * PANEL;
                const double scale = (double)k->out[t][j],
                             found = digits[e / 4 * (4 * PANEL) + lane * 4 + e % 4] * scale;
                verify_errors_add(&k->errors[t], found, v, scale / 2 + 4 * FLT_EPSILON * fabs(v) + 0x1p-99,
                                  "input %zu, column %zu", e, j);
            }
        }
}

/* ------------------------------------------------------------------------------------------------------------- gemm */

typedef struct integer_problem {
    integer_format format;
    size_t rows, depth, panels, a_plane;
    uint8_t *a;
    int8_t *b;
    float *a_scale, *b_scale, *bias;
    int32_t *zero, *sum;
} integer_problem;

static int weight_at(const integer_problem *p, int digit, size_t e, size_t j)
{
    const size_t plane = p->depth * PANEL, panel = j / PANEL * FORMAT_DIGITS(p->format) + (size_t)digit;
    return p->b[panel * plane + e / 4 * (4 * PANEL) + j % PANEL * 4 + e % 4];
}

/* Digits of any size, scales near 1; `extra` holds A and its scales, `b` the weights and theirs. */
static integer_problem make_problem(verify_rounds *k, integer_format format)
{
    const size_t digits = FORMAT_DIGITS(format);
    integer_problem p = {.format = format,
                         .rows = rounds_size(k, MOST_ROWS),
                         .depth = DIGIT_TILE_INPUTS * (1 + rounds_below(k, MOST_TILES)),
                         .panels = 1 + rounds_below(k, MOST_PANELS)};
    const size_t columns = p.panels * PANEL;
    p.a_plane = (p.rows + DIGIT_TILE_ROWS - 1) / DIGIT_TILE_ROWS * DIGIT_TILE_ROWS * p.depth;
    p.a_scale = k->extra, p.a = (uint8_t *)(k->extra + p.rows);
    p.b_scale = k->b, p.b = (int8_t *)(k->b + columns);
    p.bias = k->a;
    p.zero = k->table, p.sum = k->table + MOST_ROWS;
    rounds_fill(k, p.bias, columns);
    for (size_t e = 0; e < p.a_plane * (size_t)FORMAT_PLANES(format); e++)
        p.a[e] = (uint8_t)(e < p.a_plane ? rounds_below(k, 256) : (digits == 2 ? 64 : 0) + rounds_below(k, 128));
    for (size_t e = 0; e < columns * p.depth * digits; e++)
        p.b[e] =
            (int8_t)(e / (p.depth * PANEL) % digits ? (int)rounds_below(k, 128) - 64 : (int)rounds_below(k, 255) - 127);
    for (size_t i = 0; i < p.rows; i++) {
        p.a_scale[i] = 0.5f + 0.01f * (float)rounds_below(k, 100);
        p.zero[i] = (int32_t)rounds_below(k, 256);
    }
    for (size_t j = 0; j < columns; j++) {
        int32_t first = 0, both = 0;
        for (size_t e = 0; e < p.depth; e++) {
            first += weight_at(&p, 0, e, j);
            both += weight_at(&p, 0, e, j) + (digits == 2 ? weight_at(&p, 1, e, j) : 0);
        }
        p.b_scale[j] = 0.5f + 0.01f * (float)rounds_below(k, 100);
        int32_t *at = p.sum + j / PANEL * digits * PANEL + j % PANEL;
        at[0] = first;
        if (digits == 2) at[PANEL] = both;
    }
    return p;
}

static double exact_product(const integer_problem *p, size_t i, size_t j)
{
    double sum = 0;
    for (size_t e = 0; e < p->depth; e++) {
        const uint8_t *at = p->a + digit_at(p->depth, i, e);
        const int b = weight_at(p, 0, e, j);
        if (p->format == FIFTEEN_BITS) {
            sum += (128 * at[0] + at[p->a_plane]) * b;
            continue;
        }
        const int a = at[0] - (p->format == ONE_DIGIT ? p->zero[i] : DIGIT_OFFSET);
        sum += a * b;
        if (p->format == TWO_DIGITS) sum += (a * weight_at(p, 1, e, j) + (at[p->a_plane] - DIGIT_OFFSET) * b) / 128.0;
    }
    return sum * (double)p->a_scale[i] * (double)p->b_scale[j];
}

static void round_integer_gemm(verify_rounds *k, integer_format format)
{
    const integer_problem p = make_problem(k, format);
    const size_t columns = p.panels * PANEL;
    rounds_start(k, p.rows * columns);
    EACH_TIER(t)
    {
        const integer_gemm_task task = {.rows = p.rows,
                                        .depth = p.depth,
                                        .panels = p.panels,
                                        .a = p.a,
                                        .a_plane_bytes = p.a_plane,
                                        .a_scale = p.a_scale,
                                        .a_zero = p.zero,
                                        .b = p.b,
                                        .b_scale = p.b_scale,
                                        .b_sum = p.sum,
                                        .c = k->out[t],
                                        .ldc = columns,
                                        .c_panel_stride = PANEL,
                                        .bias = p.bias};
        if (format == ONE_DIGIT)
            k->tables[t].gemm_u8(&task);
        else if (format == TWO_DIGITS)
            k->tables[t].gemm_u8x2(&task);
        else
            k->tables[t].gemm_u15(&task);
    }
    rounds_compare(k, p.rows * columns);
    for (size_t i = 0; i < p.rows; i++)
        for (size_t j = 0; j < columns; j++) {
            const double product = exact_product(&p, i, j), bias = (double)p.bias[j];
            EACH_TIER(t)
            verify_errors_add(&k->errors[t], (double)k->out[t][i * columns + j], product + bias,
                              FLT_EPSILON * (fabs(product) + fabs(bias)) + FLT_TRUE_MIN, "row %zu, column %zu", i, j);
        }
}

void round_gemm_u8(verify_rounds *k) { round_integer_gemm(k, ONE_DIGIT); }
void round_gemm_u8x2(verify_rounds *k) { round_integer_gemm(k, TWO_DIGITS); }
void round_gemm_u15(verify_rounds *k) { round_integer_gemm(k, FIFTEEN_BITS); }
