/* Describes products of digits: gemm_u8, gemm_u8x2, gemm_u15. Sums of integers are exact; errors are those of the few
 * roundings after them.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "check/kernels/activations.h"
#include "core/base/numbers.h"

enum {
    INT_A,
    INT_A_SCALE,
    INT_A_ZERO,
    INT_B,
    INT_B_SCALE,
    INT_B_SUM,
    INT_C,
    INT_C_SCALE,
    INT_BIAS,
    INT_OUTER_COLUMN,
    INT_OUTER_ROW,
    INT_RESIDUAL,
    INT_ROW_SCALE
};

static size_t digits_plane(const kernel_problem *p) { return round_up(p->rows, DIGIT_TILE_ROWS) * p->depth; }

static void lay_out_digits(kernel_problem *p, integer_format format)
{
    const size_t panels = p->columns / PANEL;
    if (has_option(p, ACCUMULATE)) p->options &= ~(unsigned)WITH_BIAS;
    if (!has_option(p, ACCUMULATE)) p->options &= ~(unsigned)WITH_C_SCALE;
    if (has_option(p, RESIDUAL_IN_C)) p->options &= ~(unsigned)WITH_RESIDUAL;
    take_bytes(p, INT_A, "a", ARRAY_INPUT, digits_plane(p) * FORMAT_PLANES(format));
    take_vector(p, INT_A_SCALE, "a_scale", ARRAY_INPUT, p->rows, 0);
    take_vector(p, INT_A_ZERO, "a_zero", ARRAY_INPUT, p->rows, 0);
    take_bytes(p, INT_B, "b", ARRAY_INPUT, p->depth * p->columns * FORMAT_DIGITS(format));
    take_vector(p, INT_B_SCALE, "b_scale", ARRAY_INPUT, p->columns, 0);
    take_vector(p, INT_B_SUM, "b_sum", ARRAY_INPUT, p->columns * FORMAT_DIGITS(format), 0);
    take_panels(p, INT_C, "c", ARRAY_OUTPUT, p->rows, panels, has_option(p, ACCUMULATE | RESIDUAL_IN_C) ? 1 : 0);
    if (has_option(p, WITH_C_SCALE)) take_vector(p, INT_C_SCALE, "c_scale", ARRAY_INPUT, p->rows, 1);
    if (has_option(p, WITH_BIAS)) take_vector(p, INT_BIAS, "bias", ARRAY_INPUT, p->columns, 1);
    if (has_option(p, WITH_OUTER)) {
        take_matrix(p, INT_OUTER_COLUMN, "outer_column", ARRAY_INPUT, p->rows, 1, 1);
        take_vector(p, INT_OUTER_ROW, "outer_row", ARRAY_INPUT, p->columns, 1);
    }
    if (has_option(p, WITH_RESIDUAL)) take_panels(p, INT_RESIDUAL, "residual", ARRAY_INPUT, p->rows, panels, 1);
    if (has_option(p, WITH_ROW_SCALE)) take_vector(p, INT_ROW_SCALE, "row_scale", ARRAY_INPUT, p->rows, 1);
}

static int weight_digit(const kernel_problem *p, integer_format format, int digit, size_t k, size_t j)
{
    const int8_t *b = raw_given(p, INT_B);
    const size_t plane = p->depth * PANEL;
    return b[(j / PANEL * FORMAT_DIGITS(format) + (size_t)digit) * plane + k / 4 * (4 * PANEL) + j % PANEL * 4 + k % 4];
}

static int row_digit(const kernel_problem *p, int digit, size_t i, size_t k)
{
    const uint8_t *a = raw_given(p, INT_A);
    return a[(size_t)digit * digits_plane(p) + digit_at(p->depth, i, k)];
}

static void fill_row_digits(kernel_problem *p, integer_format format)
{
    uint8_t *a = raw_given(p, INT_A);
    int32_t *zero = raw_given(p, INT_A_ZERO);
    const bool two = format == TWO_DIGITS, largest = has_option(p, LARGEST);
    for (size_t e = 0; e < digits_plane(p) * FORMAT_PLANES(format); e++) {
        const bool low = e >= digits_plane(p);
        const int least = low && two ? 64 : 0; /* least value of a low digit */
        const int random = low ? least + (int)draw_below(p, 128) : (int)draw_below(p, 255 + !two);
        a[e] = (uint8_t)(largest ? (low ? least + 127 : 255) : random + (two && !low));
    }
    for (size_t i = 0; i < p->rows; i++) {
        zero[i] = largest ? (int32_t)(i % 2) * 255 : (int32_t)draw_below(p, 256);
        given_in(p, INT_A_SCALE)[i] = draw_uniform(p, 0.001f, 0.1f);
    }
}

static void fill_weight_digits(kernel_problem *p, integer_format format)
{
    int8_t *b = raw_given(p, INT_B);
    int32_t *sums = raw_given(p, INT_B_SUM);
    const bool two = format == TWO_DIGITS, largest = has_option(p, LARGEST);
    const size_t plane = p->depth * PANEL;
    for (size_t e = 0; e < p->depth * p->columns * FORMAT_DIGITS(format); e++) {
        const bool low = two && e / plane % 2 == 1;
        const int random = low ? (int)draw_below(p, 128) - 64 : (int)draw_below(p, 255) - 127;
        /* Whole columns get the largest digits, so that their sums are largest. */
        const int sign = format == FIFTEEN_BITS ? e / plane % 2 : e % 3 > 0;
        b[e] = (int8_t)(largest ? (low ? -64 : sign ? 127 : -127) : random);
    }
    for (size_t j = 0; j < p->columns; j++) {
        int32_t first = 0, both = 0;
        for (size_t k = 0; k < p->depth; k++) {
            first += weight_digit(p, format, 0, k, j);
            both += weight_digit(p, format, 0, k, j) + (two ? weight_digit(p, format, 1, k, j) : 0);
        }
        int32_t *at = sums + j / PANEL * FORMAT_DIGITS(format) * PANEL + j % PANEL;
        at[0] = first;
        if (two) at[PANEL] = both;
        given_in(p, INT_B_SCALE)[j] = draw_uniform(p, 0.001f, 0.1f);
    }
}

static integer_gemm_task integer_task_of(const kernel_problem *p)
{
    const bool adds_residual = has_option(p, WITH_RESIDUAL | RESIDUAL_IN_C);
    const size_t residual = has_option(p, RESIDUAL_IN_C) ? INT_C : INT_RESIDUAL;
    return (integer_gemm_task){.rows = p->rows,
                               .depth = p->depth,
                               .panels = p->columns / PANEL,
                               .a = raw_in(p, INT_A),
                               .a_plane_bytes = digits_plane(p),
                               .a_scale = now_in(p, INT_A_SCALE),
                               .a_zero = raw_in(p, INT_A_ZERO),
                               .b = raw_in(p, INT_B),
                               .b_scale = now_in(p, INT_B_SCALE),
                               .b_sum = raw_in(p, INT_B_SUM),
                               .c = now_in(p, INT_C),
                               .ldc = p->arrays[INT_C].ld,
                               .c_panel_stride = p->arrays[INT_C].block_stride,
                               .c_scale = now_in(p, INT_C_SCALE),
                               .bias = now_in(p, INT_BIAS),
                               .outer_column = now_in(p, INT_OUTER_COLUMN),
                               .outer_ld = p->arrays[INT_OUTER_COLUMN].ld,
                               .outer_row = now_in(p, INT_OUTER_ROW),
                               .residual = adds_residual ? now_in(p, residual) : NULL,
                               .ld_residual = p->arrays[residual].ld,
                               .residual_panel_stride = p->arrays[residual].block_stride,
                               .row_scale = now_in(p, INT_ROW_SCALE),
                               .accumulate = has_option(p, ACCUMULATE),
                               .gelu = has_option(p, WITH_GELU),
                               .next = has_option(p, FETCH_NEXT) ? raw_in(p, INT_B) : NULL};
}

/* Computes the result before the scales. */
static double exact_product(const kernel_problem *p, integer_format format, size_t i, size_t j)
{
    int64_t high = 0, mixed = 0;
    const int32_t zero = ((const int32_t *)raw_given(p, INT_A_ZERO))[i];
    for (size_t k = 0; k < p->depth; k++) {
        const int b = weight_digit(p, format, 0, k, j);
        if (format == FIFTEEN_BITS) {
            high += (128 * row_digit(p, 0, i, k) + row_digit(p, 1, i, k)) * b;
            continue;
        }
        const int a = row_digit(p, 0, i, k) - (format == ONE_DIGIT ? zero : DIGIT_OFFSET);
        high += a * b;
        if (format == TWO_DIGITS)
            mixed += a * weight_digit(p, format, 1, k, j) + (row_digit(p, 1, i, k) - DIGIT_OFFSET) * b;
    }
    return (double)high + (double)mixed / 128;
}

static exact_sum exact_digits_element(const kernel_problem *p, integer_format format, size_t i, size_t j)
{
    exact_sum x = {0};
    add_term(&x, exact_product(p, format, i, j) * given(p, INT_A_SCALE, 0, i) * given(p, INT_B_SCALE, 0, j));
    if (has_option(p, ACCUMULATE))
        add_term(&x, given(p, INT_C, i, j) * (has_option(p, WITH_C_SCALE) ? given(p, INT_C_SCALE, 0, i) : 1));
    if (has_option(p, WITH_BIAS)) add_term(&x, given(p, INT_BIAS, 0, j));
    if (has_option(p, WITH_GELU)) x.value = exact_activation(x.value, ACTIVATION_GELU);
    if (has_option(p, WITH_OUTER)) {
        add_term(&x, given(p, INT_OUTER_COLUMN, i, 0));
        add_term(&x, given(p, INT_OUTER_ROW, 0, j));
    }
    if (has_option(p, WITH_RESIDUAL)) add_term(&x, given(p, INT_RESIDUAL, i, j));
    if (has_option(p, RESIDUAL_IN_C)) add_term(&x, given(p, INT_C, i, j));
    if (has_option(p, WITH_ROW_SCALE)) {
        x.value *= given(p, INT_ROW_SCALE, 0, i);
        x.terms *= fabs(given(p, INT_ROW_SCALE, 0, i));
    }
    return x;
}

static void exact_digits(const kernel_problem *p, const exact_judge *judge, integer_format format)
{
    const double limit = has_option(p, WITH_GELU) ? 12 : 6;
    for (size_t i = 0; i < p->rows; i++)
        for (size_t j = 0; j < p->columns; j++)
            if (!expect_sum(p, judge, INT_C, place_in(&p->arrays[INT_C], i, j), exact_digits_element(p, format, i, j),
                            limit))
                return;
}

#define PRODUCTS_OF(slot_, format_)                                                                                    \
    static void slot_##_lay_out(kernel_problem *p) { lay_out_digits(p, format_); }                                     \
    static void slot_##_exact(const kernel_problem *p, const exact_judge *judge) { exact_digits(p, judge, format_); }  \
    static void slot_##_fill(kernel_problem *p)                                                                        \
    {                                                                                                                  \
        fill_row_digits(p, format_);                                                                                   \
        fill_weight_digits(p, format_);                                                                                \
    }                                                                                                                  \
    static void slot_##_call(const kernels *table, const kernel_problem *p)                                            \
    {                                                                                                                  \
        const integer_gemm_task task = integer_task_of(p);                                                             \
        table->slot_(&task);                                                                                           \
    }

PRODUCTS_OF(gemm_u8, ONE_DIGIT)
PRODUCTS_OF(gemm_u8x2, TWO_DIGITS)
PRODUCTS_OF(gemm_u15, FIFTEEN_BITS)

#define INTEGER_EPILOGUES                                                                                              \
    (WITH_BIAS | WITH_GELU | WITH_OUTER | WITH_RESIDUAL | RESIDUAL_IN_C | WITH_ROW_SCALE | ACCUMULATE | WITH_C_SCALE | \
     FETCH_NEXT | LARGEST)

DESCRIBE_KERNEL(gemm_u8, "gemm_u8", .fill = gemm_u8_fill, .drawn = {20, 192, 3 * PANEL}, .measured = {96, 768, 192},
                .optional = INTEGER_EPILOGUES, .column_unit = PANEL, .depth_unit = DIGIT_TILE_INPUTS,
                .most_depth = MAX_INTEGER_DEPTH, .multiplies = true, .byte_products = 1, .moved = {1, 0.25, 0.25})
DESCRIBE_KERNEL(gemm_u8x2, "gemm_u8x2", .fill = gemm_u8x2_fill, .drawn = {20, 192, 3 * PANEL},
                .measured = {96, 768, 192}, .optional = INTEGER_EPILOGUES, .column_unit = PANEL,
                .depth_unit = DIGIT_TILE_INPUTS, .most_depth = MAX_INTEGER_DEPTH, .multiplies = true,
                .byte_products = 3, .moved = {1, 0.5, 0.5})
DESCRIBE_KERNEL(gemm_u15, "gemm_u15", .fill = gemm_u15_fill, .drawn = {20, 192, 3 * PANEL}, .measured = {96, 512, 192},
                .optional = INTEGER_EPILOGUES, .column_unit = PANEL, .depth_unit = DIGIT_TILE_INPUTS,
                .most_depth = MAX_U15_DEPTH, .multiplies = true, .byte_products = 2, .moved = {1, 0.5, 0.25})
