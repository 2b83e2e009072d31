/* SPDX-License-Identifier: MIT */
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

static void round_quantize(verify_rounds *k, int digits)
{
    const size_t rows = rounds_size(k, MOST_ROWS), depth = rounds_size(k, 500);
    const size_t padded = (depth + DIGIT_TILE_INPUTS - 1) / DIGIT_TILE_INPUTS * DIGIT_TILE_INPUTS;
    const size_t plane = (rows + DIGIT_TILE_ROWS - 1) / DIGIT_TILE_ROWS * DIGIT_TILE_ROWS * padded;
    const size_t floats = 2 * rows + plane * (size_t)digits / sizeof(float);
    rounds_fill(k, k->a, rows * depth);
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
        if (digits == 1)
            k->tables[t].quantize_u8(&task);
        else
            k->tables[t].quantize_u8x2(&task);
    }
    rounds_compare(k, floats);
    for (size_t i = 0; i < rows; i++)
        for (size_t e = 0; e < depth; e++) {
            const double v = (double)k->a[i * depth + e];
            EACH_TIER(t)
            {
                const quantized of = quantized_in(k->out[t], rows);
                const uint8_t *at = of.digits + digit_at(padded, i, e);
                const double scale = (double)of.scale[i];
                const double found = digits == 1
                                         ? (at[0] - of.zero[i]) * scale
                                         : ((at[0] - DIGIT_OFFSET) + (at[plane] - DIGIT_OFFSET) / 128.0) * scale;
                if (scale == 0 && fabs(v) > 1) continue; /* the range is infinite: the row counts as zeros */
                verify_errors_add(&k->errors[t], found, v,
                                  scale * (digits == 1 ? 0.5 : 0.5 / 128) + 4 * FLT_EPSILON * fabs(v) + 0x1p-99,
                                  "row %zu, input %zu", i, e);
            }
        }
}

void round_quantize_u8(verify_rounds *k) { round_quantize(k, 1); }
void round_quantize_u8x2(verify_rounds *k) { round_quantize(k, 2); }

/* ------------------------------------------------------------------------------------------------------------- gemm */

typedef struct integer_problem {
    int digits;
    size_t rows, depth, panels, a_plane;
    uint8_t *a;
    int8_t *b;
    float *a_scale, *b_scale, *bias;
    int32_t *zero, *sum;
} integer_problem;

static int weight_at(const integer_problem *p, int digit, size_t e, size_t j)
{
    const size_t plane = p->depth * PANEL, panel = j / PANEL * (size_t)p->digits + (size_t)digit;
    return p->b[panel * plane + e / 4 * (4 * PANEL) + j % PANEL * 4 + e % 4];
}

/* Digits of any size, scales near 1; `extra` holds A and its scales, `b` the weights and theirs. */
static integer_problem make_problem(verify_rounds *k, int digits)
{
    integer_problem p = {.digits = digits,
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
    for (size_t e = 0; e < p.a_plane * (size_t)digits; e++)
        p.a[e] = (uint8_t)(e < p.a_plane ? rounds_below(k, 256) : 64 + rounds_below(k, 128));
    for (size_t e = 0; e < columns * p.depth * (size_t)digits; e++)
        p.b[e] = (int8_t)(e / (p.depth * PANEL) % (size_t)digits ? (int)rounds_below(k, 128) - 64
                                                                 : (int)rounds_below(k, 255) - 127);
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
        int32_t *at = p.sum + j / PANEL * (size_t)digits * PANEL + j % PANEL;
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
        const int a = at[0] - (p->digits == 1 ? p->zero[i] : DIGIT_OFFSET), b = weight_at(p, 0, e, j);
        sum += a * b;
        if (p->digits == 2) sum += (a * weight_at(p, 1, e, j) + (at[p->a_plane] - DIGIT_OFFSET) * b) / 128.0;
    }
    return sum * (double)p->a_scale[i] * (double)p->b_scale[j];
}

static void round_integer_gemm(verify_rounds *k, int digits)
{
    const integer_problem p = make_problem(k, digits);
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
        if (digits == 1)
            k->tables[t].gemm_u8(&task);
        else
            k->tables[t].gemm_u8x2(&task);
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

void round_gemm_u8(verify_rounds *k) { round_integer_gemm(k, 1); }
void round_gemm_u8x2(verify_rounds *k) { round_integer_gemm(k, 2); }
