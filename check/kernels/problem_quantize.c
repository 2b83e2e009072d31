/* Describes kernels that turn floats into digits: quantize_u8, quantize_u8x2, quantize_u15, quantize_panels_s8. The
 * value that digits represent is compared with the input, in half steps; scales, zero points and sums are known
 * exactly.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "check/kernels/kernel_problem.h"
#include "core/base/numbers.h"

static array_kind kind_of_output(const kernel_problem *p)
{
    return has_option(p, DAMAGED) ? ARRAY_OUTPUT_ANY : ARRAY_OUTPUT;
}

/* Returns range / steps, or 0 for a range that is too small or not finite. */
static float scale_of(float range, float steps) { return range >= 0x1p-100f && range < INFINITY ? range / steps : 0; }
static float inverse_of(float range, float steps) { return range >= 0x1p-100f && range < INFINITY ? steps / range : 0; }

static bool expect_exactly(const kernel_problem *p, const exact_judge *judge, size_t k, size_t index, double found,
                           double want)
{
    const exact_value value = {want, 1, 0, UNIT_EPS_S};
    return judge->judge(judge->context, p, k, index, found, &value);
}

/* Judges `found`, the value that digits represent with a step of `step`, against the input v. */
static bool expect_digits(const kernel_problem *p, const exact_judge *judge, size_t k, size_t index, double found,
                          double step, double v)
{
    const exact_value value = {v, 0.5 * step + 4 * EPS * fabs(v) + 0x1p-99, 1.001, UNIT_HALF_STEP};
    return judge->judge(judge->context, p, k, index, found, &value);
}

/* ------------------------------------------------------------------------------------------------------------- rows */

enum { QUANT_X, QUANT_FACTOR, QUANT_DIGITS, QUANT_SCALE, QUANT_ZERO };

static size_t padded_depth(const kernel_problem *p) { return round_up(p->depth, DIGIT_TILE_INPUTS); }
static size_t quantized_plane(const kernel_problem *p) { return round_up(p->rows, DIGIT_TILE_ROWS) * padded_depth(p); }

static void lay_out_rows(kernel_problem *p, integer_format format)
{
    if (format == FIFTEEN_BITS) p->options &= ~(unsigned)(WITH_FACTOR | DAMAGED);
    take_matrix(p, QUANT_X, "x", ARRAY_INPUT, p->rows, p->depth, 1);
    if (has_option(p, WITH_FACTOR)) take_vector(p, QUANT_FACTOR, "factor", ARRAY_INPUT, p->depth, 0);
    take_bytes(p, QUANT_DIGITS, "digits", kind_of_output(p), quantized_plane(p) * FORMAT_PLANES(format));
    take_vector(p, QUANT_SCALE, "scale", kind_of_output(p), p->rows, 0);
    take_vector(p, QUANT_ZERO, "zero", kind_of_output(p), p->rows, 0);
}

static bool is_damaged_row(const kernel_problem *p, size_t i) { return has_option(p, DAMAGED) && i % 3 == 1; }

/* Fills zeros into one row of five, and no negative numbers into another. */
static void fill_rows(kernel_problem *p)
{
    for (size_t k = 0; has_option(p, WITH_FACTOR) && k < p->depth; k++)
        given_in(p, QUANT_FACTOR)[k] = draw_uniform(p, 0.1f, 3.0f);
    for (size_t i = 0; !p->plain && i < p->rows; i++) {
        float *row = given_in(p, QUANT_X) + i * p->arrays[QUANT_X].ld;
        for (size_t k = 0; k < p->depth; k++) row[k] = i % 5 == 2 ? 0 : i % 5 == 3 ? fabsf(row[k]) : row[k];
        if (is_damaged_row(p, i)) row[draw_below(p, p->depth)] = i % 2 ? NAN : i % 4 ? INFINITY : -INFINITY;
    }
}

/* Fills probabilities from 0 to 1, with both ends, and values below half a step. */
static void fill_probabilities(kernel_problem *p)
{
    for (size_t i = 0; i < p->rows; i++)
        for (size_t k = 0; k < p->depth; k++) {
            const size_t kind = draw_below(p, 8);
            given_in(p, QUANT_X)[i * p->arrays[QUANT_X].ld + k] = kind == 0   ? 0.0f
                                                                  : kind == 1 ? 1.0f
                                                                  : kind == 2 ? draw_uniform(p, 0.0f, 2.0f / U15_TOP)
                                                                              : draw_uniform(p, 0.0f, 1.0f);
        }
}

static quantize_task quantize_task_of(const kernel_problem *p)
{
    return (quantize_task){.rows = p->rows,
                           .depth = p->depth,
                           .x = now_in(p, QUANT_X),
                           .ldx = p->arrays[QUANT_X].ld,
                           .factor = now_in(p, QUANT_FACTOR),
                           .digits = raw_in(p, QUANT_DIGITS),
                           .plane_bytes = quantized_plane(p),
                           .scale = now_in(p, QUANT_SCALE),
                           .zero = raw_in(p, QUANT_ZERO)};
}

static float input_of(const kernel_problem *p, size_t i, size_t k)
{
    const float x = given_in(p, QUANT_X)[i * p->arrays[QUANT_X].ld + k];
    return has_option(p, WITH_FACTOR) ? x * given_in(p, QUANT_FACTOR)[k] : x;
}

static double value_of_digits(const kernel_problem *p, integer_format format, size_t i, size_t k)
{
    const uint8_t *at = (const uint8_t *)raw_in(p, QUANT_DIGITS) + digit_at(padded_depth(p), i, k);
    const double scale = (double)now_in(p, QUANT_SCALE)[i];
    if (format == ONE_DIGIT) return (at[0] - ((const int32_t *)raw_in(p, QUANT_ZERO))[i]) * scale;
    if (format == FIFTEEN_BITS) return (128 * at[0] + at[quantized_plane(p)]) * scale;
    return ((at[0] - DIGIT_OFFSET) + (at[quantized_plane(p)] - DIGIT_OFFSET) / 128.0) * scale;
}

static bool expect_scale(const kernel_problem *p, const exact_judge *judge, integer_format format, size_t i)
{
    float low = 0, high = 0;
    for (size_t k = 0; k < p->depth; k++) {
        low = fminf(low, input_of(p, i, k));
        high = fmaxf(high, input_of(p, i, k));
    }
    const double found = (double)now_in(p, QUANT_SCALE)[i];
    if (format == FIFTEEN_BITS) return expect_exactly(p, judge, QUANT_SCALE, i, found, (double)(1.0f / U15_TOP));
    if (format == TWO_DIGITS)
        return expect_exactly(p, judge, QUANT_SCALE, i, found, (double)scale_of(fmaxf(-low, high), 127));
    const double zero = (double)rintf(-low * inverse_of(high - low, 255));
    return expect_exactly(p, judge, QUANT_SCALE, i, found, (double)scale_of(high - low, 255)) &&
           expect_exactly(p, judge, QUANT_ZERO, i, (double)((const int32_t *)raw_in(p, QUANT_ZERO))[i], zero);
}

static bool expect_row(const kernel_problem *p, const exact_judge *judge, integer_format format, size_t i)
{
    const double scale = (double)now_in(p, QUANT_SCALE)[i], step = format == TWO_DIGITS ? scale / 128 : scale;
    if (is_damaged_row(p, i)) return expect_exactly(p, judge, QUANT_SCALE, i, scale, NAN);
    if (!expect_scale(p, judge, format, i)) return false;
    for (size_t k = 0; k < padded_depth(p); k++) {
        const double found = value_of_digits(p, format, i, k);
        const size_t index = i * padded_depth(p) + k;
        if (k < p->depth ? !expect_digits(p, judge, QUANT_DIGITS, index, found, step, (double)input_of(p, i, k))
                         : !expect_exactly(p, judge, QUANT_DIGITS, index, found, 0))
            return false;
    }
    return true;
}

static void exact_rows(const kernel_problem *p, const exact_judge *judge, integer_format format)
{
    for (size_t i = 0; i < p->rows; i++)
        if (!expect_row(p, judge, format, i)) return;
}

/* Defines the description of one of these slots, from its format and the function that fills the rows. */
#define ROWS_OF(slot_, format_)                                                                                        \
    static void slot_##_lay_out(kernel_problem *p) { lay_out_rows(p, format_); }                                       \
    static void slot_##_exact(const kernel_problem *p, const exact_judge *judge) { exact_rows(p, judge, format_); }    \
    static void slot_##_call(const kernels *table, const kernel_problem *p)                                            \
    {                                                                                                                  \
        const quantize_task task = quantize_task_of(p);                                                                \
        table->slot_(&task);                                                                                           \
    }

ROWS_OF(quantize_u8, ONE_DIGIT)
ROWS_OF(quantize_u8x2, TWO_DIGITS)
ROWS_OF(quantize_u15, FIFTEEN_BITS)

DESCRIBE_KERNEL(quantize_u8, "quantize_u8", .fill = fill_rows, .drawn = {20, 500, 0}, .measured = {96, 768, 0},
                .optional = WITH_FACTOR, .most_depth = MAX_INTEGER_DEPTH, .moved = {0, 1.25, 0}, .elements = ROWS_DEPTH)
DESCRIBE_KERNEL(quantize_u8x2, "quantize_u8x2", .fill = fill_rows, .drawn = {20, 500, 0}, .measured = {96, 768, 0},
                .optional = WITH_FACTOR, .most_depth = MAX_INTEGER_DEPTH, .moved = {0, 1.5, 0}, .elements = ROWS_DEPTH)
DESCRIBE_KERNEL(quantize_u15, "quantize_u15", .fill = fill_probabilities, .drawn = {20, 500, 0},
                .measured = {96, 512, 0}, .most_depth = MAX_U15_DEPTH, .moved = {0, 1.5, 0}, .elements = ROWS_DEPTH)

/* ----------------------------------------------------------------------------------------------- quantize_panels_s8 */

enum { QUANT_SUM = QUANT_ZERO };

static void quantize_panels_s8_lay_out(kernel_problem *p)
{
    problem_array *x = take_vector(p, QUANT_X, "x", ARRAY_INPUT, 0, 1);
    x->blocks = p->columns / PANEL;
    x->rows = p->depth;
    x->ld = x->width = PANEL;
    x->block_stride = p->depth * PANEL + (p->plain ? 0 : draw_below(p, 40));
    count_words(x);
    if (has_option(p, WITH_FACTOR)) take_vector(p, QUANT_FACTOR, "factor", ARRAY_INPUT, p->depth, 0);
    take_bytes(p, QUANT_DIGITS, "digits", kind_of_output(p), padded_depth(p) * p->columns);
    take_vector(p, QUANT_SCALE, "scale", kind_of_output(p), p->columns, 0);
    take_vector(p, QUANT_SUM, "sum", kind_of_output(p), p->columns, 0);
}

static float *input_at(const kernel_problem *p, size_t k, size_t j)
{
    return given_in(p, QUANT_X) + j / PANEL * p->arrays[QUANT_X].block_stride + k * PANEL + j % PANEL;
}

/* Every panel gets a column of zeros. */
static void fill_columns(kernel_problem *p)
{
    for (size_t k = 0; has_option(p, WITH_FACTOR) && k < p->depth; k++)
        given_in(p, QUANT_FACTOR)[k] = draw_uniform(p, 0.1f, 3.0f);
    for (size_t j = 0; !p->plain && j < p->columns; j++) {
        for (size_t k = 0; j % PANEL == 2 && k < p->depth; k++) *input_at(p, k, j) = 0.0f;
        if (has_option(p, DAMAGED) && j % 3 == 1) *input_at(p, draw_below(p, p->depth), j) = j % 2 ? NAN : INFINITY;
    }
}

static void quantize_panels_s8_call(const kernels *table, const kernel_problem *p)
{
    const quantize_panels_task task = {.panels = p->columns / PANEL,
                                       .depth = p->depth,
                                       .x = now_in(p, QUANT_X),
                                       .x_panel_stride = p->arrays[QUANT_X].block_stride,
                                       .factor = now_in(p, QUANT_FACTOR),
                                       .digits = raw_in(p, QUANT_DIGITS),
                                       .scale = now_in(p, QUANT_SCALE),
                                       .sum = raw_in(p, QUANT_SUM)};
    table->quantize_panels_s8(&task);
}

static float factored(const kernel_problem *p, size_t k, size_t j)
{
    if (k >= p->depth) return 0;
    return has_option(p, WITH_FACTOR) ? *input_at(p, k, j) * given_in(p, QUANT_FACTOR)[k] : *input_at(p, k, j);
}

static bool expect_column(const kernel_problem *p, const exact_judge *judge, size_t j)
{
    const size_t padded = padded_depth(p);
    const int8_t *digits = (const int8_t *)raw_in(p, QUANT_DIGITS) + j / PANEL * padded * PANEL + j % PANEL * 4;
    const double scale = (double)now_in(p, QUANT_SCALE)[j];
    if (has_option(p, DAMAGED) && j % 3 == 1) return expect_exactly(p, judge, QUANT_SCALE, j, scale, NAN);
    float largest = 0;
    int32_t sum = 0;
    for (size_t k = 0; k < p->depth; k++) largest = fmaxf(largest, fabsf(factored(p, k, j)));
    if (!expect_exactly(p, judge, QUANT_SCALE, j, scale, (double)scale_of(largest, 127))) return false;
    for (size_t k = 0; k < padded; k++) {
        const int8_t digit = digits[k / 4 * (4 * PANEL) + k % 4];
        sum += digit;
        if (!expect_digits(p, judge, QUANT_DIGITS, j * padded + k, digit * scale, scale, (double)factored(p, k, j)))
            return false;
    }
    return expect_exactly(p, judge, QUANT_SUM, j, (double)((const int32_t *)raw_in(p, QUANT_SUM))[j], (double)sum);
}

static void quantize_panels_s8_exact(const kernel_problem *p, const exact_judge *judge)
{
    for (size_t j = 0; j < p->columns; j++)
        if (!expect_column(p, judge, j)) return;
}

DESCRIBE_KERNEL(quantize_panels_s8, "quantize_panels", .fill = fill_columns, .drawn = {0, 500, 3 * PANEL},
                .measured = {0, 512, 192}, .optional = WITH_FACTOR, .column_unit = PANEL,
                .most_depth = MAX_INTEGER_DEPTH, .moved = {0, 0, 1.25}, .elements = DEPTH_COLUMNS)
