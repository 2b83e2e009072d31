/* Weights and activations of low precision: matrices of integers, and rows that are quantized on their way to a product
 * (core/integer_kernels.h defines both layouts and the meaning of the numbers).
 *
 * Every block of inputs (pack.h) has separate scales, one per output and one per row: a block is one call of a kernel,
 * and the float32 results of the blocks are added in order.
 *
 * Inputs are multiplied by `factors` before they become integers, and weights are divided by them: otherwise channels
 * that are much larger than others would cost the others their digits (smoothing.h computes the factors).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/model/pack.h"

/* Carves as packed_matrix_carve does, for integers of 1 or 2 digits. */
void quantized_matrix_carve(packed_matrix *matrix, arena *memory, size_t outputs, size_t depth, size_t digits);

/* Stores 16 outputs, rows [16][ld_rows] of W, as one panel in all blocks; the factors are set before. For each block
 * and output, with w = W / factor:
 *     one digit    scale = max |w| / 127,  b = rint(w 127 / max |w|)
 *     two digits   scale = max |w| / 127,  q = rint(w 16256 / max |w|) as two digits
 * both 0 unless 2^-100 <= max |w|; weights are finite (weights_check). */
void quantized_matrix_store(const packed_matrix *matrix, size_t panel, const float *rows, size_t ld_rows);

/* Returns the inputs of every block but the last, rounded up to whole tiles. */
static inline size_t quantized_block_stride(const packed_matrix *matrix)
{
    return round_up(matrix->block_depth, DIGIT_TILE_INPUTS);
}

/* Returns the rounded up inputs of the block that begins at input `start`. */
static inline size_t quantized_block_depth(const packed_matrix *matrix, size_t start)
{
    return round_up(minimum(matrix->block_depth, matrix->depth - start), DIGIT_TILE_INPUTS);
}

static inline const int8_t *quantized_matrix_panel(const packed_matrix *matrix, size_t start, size_t panel)
{
    size_t block = start / matrix->block_depth;
    return matrix->integers + (block * matrix->panel_count * quantized_block_stride(matrix) +
                               panel * quantized_block_depth(matrix, start)) *
                                  matrix->digits * PANEL;
}

/* Return the first bytes of a panel, of either kind of matrix, and the end of the last. */
static inline const void *matrix_weights_at(const packed_matrix *matrix, size_t start, size_t panel)
{
    if (matrix->digits) return quantized_matrix_panel(matrix, start, panel);
    return packed_matrix_panel(matrix, start, panel);
}
static inline const void *matrix_weights_end(const packed_matrix *matrix)
{
    if (matrix->digits)
        return matrix->integers + ceiling_divide(matrix->depth, matrix->block_depth) * matrix->panel_count *
                                      quantized_block_stride(matrix) * matrix->digits * PANEL;
    return packed_matrix_end(matrix);
}

/* Quantized rows in borrowed memory, as tiles: one block of inputs after the other. */
typedef struct quantized_rows {
    uint8_t *digits;
    float *scales;  /* [block][capacity] */
    int32_t *zeros; /* [block][capacity] */
    size_t capacity /* rows, whole tiles */, block_stride, plane_bytes;
} quantized_rows;

/* Returns the bytes of `rows` rows for this matrix; 0 for a matrix of float32. Aligned to 64. */
size_t quantized_rows_bytes(const packed_matrix *matrix, size_t rows);
/* Lays out the rows in memory of that size. */
quantized_rows quantized_rows_in(void *memory, const packed_matrix *matrix, size_t rows);
/* Quantizes `rows` rows of x, from row `first` on, which begins a tile. */
void quantized_rows_fill(const quantized_rows *to, const kernels *table, const packed_matrix *matrix, const float *x,
                         size_t ldx, size_t first, size_t rows);
