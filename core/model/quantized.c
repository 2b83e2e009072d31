/* Quantizes weights to digits of 8 bits, with a scale for every output and block of inputs, and packs them in the order
 * in which they are multiplied; quantizes rows of activations by the kernels.
 *
 * SPDX-License-Identifier: MIT */
#include "core/model/quantized.h"

#include <string.h>

void quantized_matrix_carve(packed_matrix *matrix, arena *memory, size_t outputs, size_t depth, size_t digits)
{
    size_t blocks = ceiling_divide(depth, packed_block_depth(depth)), panel_bytes = 0, bytes = 0;
    *matrix = (packed_matrix){
        .outputs = outputs,
        .depth = depth,
        .panel_count = ceiling_divide(outputs, PANEL),
        .block_depth = packed_block_depth(depth),
        .digits = digits,
    };
    size_t lanes = blocks * matrix->panel_count * PANEL;
    if (!size_multiply(blocks * quantized_block_stride(matrix), digits * PANEL, &panel_bytes) ||
        !size_multiply(panel_bytes, matrix->panel_count, &bytes))
        memory->overflow = true;
    matrix->integers = arena_take(memory, bytes, 1);
    matrix->scales = arena_take(memory, lanes, sizeof *matrix->scales);
    matrix->sums = arena_take(memory, lanes * digits, sizeof *matrix->sums);
    matrix->factors = arena_take(memory, depth, sizeof *matrix->factors);
    matrix->bias = arena_take(memory, matrix->panel_count * PANEL, sizeof *matrix->bias);
}

/* Weights of one output's block. The loops over them are written so that compilers vectorize them. */
typedef struct output_block {
    float w[PACKED_MAX_BLOCK]; /* W / factor */
    int8_t high[PACKED_MAX_BLOCK], low[PACKED_MAX_BLOCK];
} output_block;

/* Divides by the factors. Returns the largest |w|. */
static float divide_weights(output_block *block, const float *restrict w, const float *restrict factors, size_t depth)
{
    float *restrict to = block->w;
    int32_t most = 0;
    for (size_t k = 0; k < depth; k++) {
        to[k] = w[k] / factors[k];
        const int32_t bits = magnitude_bits(to[k]);
        most = most < bits ? bits : most;
    }
    return magnitude_of_bits(most);
}

static void make_digits(output_block *block, float inverse, size_t depth, int32_t *sums)
{
    const float *restrict w = block->w;
    int8_t *restrict high = block->high;
    int32_t sum = 0;
    for (size_t k = 0; k < depth; k++) {
        const int32_t q = (int32_t)whole_number(w[k] * inverse);
        high[k] = (int8_t)q;
        sum += q;
    }
    sums[0] += sum;
}

/* Splits integers into two digits. The largest weight may be rounded to a little more than 16256. */
static void make_two_digits(output_block *block, float inverse, size_t depth, int32_t *sums)
{
    const float *restrict w = block->w;
    int8_t *restrict high = block->high, *restrict low = block->low;
    int32_t sum = 0, both = 0;
    for (size_t k = 0; k < depth; k++) {
        const int32_t q = (int32_t)whole_number(w[k] * inverse);
        const int32_t first = (q + 64 + 128 * 128) / 128 - 128; /* rounded down */
        high[k] = (int8_t)first;
        low[k] = (int8_t)(q - 128 * first);
        sum += first;
        both += q - 127 * first;
    }
    sums[0] += sum;
    sums[PANEL] += both;
}

/* Stores quads, 16 outputs apart. Whole ones are copied with a constant size, so that each copy is one move. */
static void store_quads(int8_t *to, const int8_t *digits, size_t depth)
{
    const size_t whole = depth / 4 * 4;
    for (size_t k = 0; k < whole; k += 4) memcpy(to + k * PANEL, digits + k, 4);
    memcpy(to + whole * PANEL, digits + whole, depth - whole);
}

/* Stores one output of one block; lane: its index in the panel. */
static void store_output(const packed_matrix *m, size_t start, size_t panel, size_t lane, const float *w)
{
    const size_t depth = minimum(m->block_depth, m->depth - start), padded = quantized_block_depth(m, start);
    const size_t block = start / m->block_depth, at = (block * m->panel_count + panel) * PANEL;
    int8_t *to = m->integers + (quantized_matrix_panel(m, start, panel) - m->integers) + lane * 4;
    int32_t *sums = m->sums + at * m->digits + lane;
    output_block weights;
    const float largest = divide_weights(&weights, w, m->factors + start, depth);
    const bool usable = largest >= 0x1p-100f;
    const float inverse = usable ? (m->digits == 1 ? 127.0f : 16256.0f) / largest : 0.0f;
    m->scales[at + lane] = usable ? largest / 127.0f : 0.0f;
    if (m->digits == 1) {
        make_digits(&weights, inverse, depth, sums);
    } else {
        make_two_digits(&weights, inverse, depth, sums);
        store_quads(to + padded * PANEL, weights.low, depth);
    }
    store_quads(to, weights.high, depth);
}

void quantized_matrix_store(const packed_matrix *matrix, size_t panel, const float *rows, size_t ld_rows)
{
    for (size_t start = 0; start < matrix->depth; start += matrix->block_depth)
        for (size_t lane = 0; lane < PANEL; lane++)
            store_output(matrix, start, panel, lane, rows + lane * ld_rows + start);
}

/* ------------------------------------------------------------------------------------------------------------- rows */

static size_t block_count(const packed_matrix *matrix) { return ceiling_divide(matrix->depth, matrix->block_depth); }

size_t quantized_rows_bytes(const packed_matrix *matrix, size_t rows)
{
    if (matrix->digits == 0) return 0;
    size_t capacity = round_up(rows, DIGIT_TILE_ROWS);
    return capacity * block_count(matrix) *
           (quantized_block_stride(matrix) * matrix->digits + sizeof(float) + sizeof(int32_t));
}

quantized_rows quantized_rows_in(void *memory, const packed_matrix *matrix, size_t rows)
{
    size_t capacity = round_up(rows, DIGIT_TILE_ROWS), lanes = capacity * block_count(matrix);
    quantized_rows to = {.digits = memory, .capacity = capacity, .block_stride = quantized_block_stride(matrix)};
    to.plane_bytes = lanes * to.block_stride;
    to.scales = (float *)(void *)(to.digits + to.plane_bytes * matrix->digits);
    to.zeros = (int32_t *)(void *)(to.scales + lanes);
    return to;
}

void quantized_rows_fill(const quantized_rows *to, const kernels *table, const packed_matrix *matrix, const float *x,
                         size_t ldx, size_t first, size_t rows)
{
    for (size_t start = 0, block = 0; start < matrix->depth; start += matrix->block_depth, block++) {
        quantize_task task = {
            .rows = rows,
            .depth = minimum(matrix->block_depth, matrix->depth - start),
            .x = x + start,
            .ldx = ldx,
            .factor = matrix->factors + start,
            .digits =
                to->digits + block * to->capacity * to->block_stride + first * quantized_block_depth(matrix, start),
            .plane_bytes = to->plane_bytes,
            .scale = to->scales + block * to->capacity + first,
            .zero = to->zeros + block * to->capacity + first,
        };
        if (matrix->digits == 1)
            table->quantize_u8(&task);
        else
            table->quantize_u8x2(&task);
    }
}
