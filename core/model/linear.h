/* Multiplies by packed weights: C = A W' + b, with an optional gelu or residual, cut over blocks of inputs and over
 * threads.
 *
 * Cutting does not change the result: every output is one chain of additions, whatever block it is in (kernels.h).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/parallel.h"
#include "core/model/quantized.h"

/* Multiplies a range of panels of a matrix by some rows. Panel p of the matrix goes, with q = p - first_panel, to
 *     c + row ldc + (q / group_panels) group_stride + (q % group_panels) panel_stride
 * so one product can scatter heads; group_panels 0 means a single group. */
typedef struct linear_product {
    const packed_matrix *matrix;
    size_t first_panel, panels;
    size_t rows;
    const float *a;
    size_t lda;
    float *c;
    size_t ldc, panel_stride, group_panels, group_stride;
    const float
        *residual; /* [rows][ld_residual], columns as in a row-major C, or NULL. Not C unless depth <= one block */
    size_t ld_residual;
    /* Memory for the quantized rows of low precision. It holds all rows (quantized_rows_bytes) for linear_run_parallel,
     * else LINEAR_MAX_ROWS. */
    void *scratch;
    /* The matrix that the same threads multiply next, so that its first weights are requested early; NULL: unknown. */
    const packed_matrix *follows;
    bool gelu;
    quantized_rows quantized; /* quantized rows, set while the product runs, and the current row */
    size_t quantized_row;
} linear_product;

/* Describes the product with the whole matrix into a row-major C. */
linear_product linear_plain(const packed_matrix *matrix, size_t rows, const float *a, size_t lda, float *c, size_t ldc);

/* Runs the product on the calling thread. */
void linear_run(const kernels *table, const linear_product *product);

enum {
    LINEAR_MAX_ROWS = 192, /* rows at a time: their inputs stay in a near cache while the weights go by. A prototype of
                              v3-base, 512 tokens, one Zen 3 core: 1126 ms with 96, 1130 with 192, 1192 with 260 */
    LINEAR_ROW_SPLIT = 96, /* from this many rows a thread on, threads get rows; below, columns, so that weights are
                            * read once */
};

/* Below the split all threads share inner rows that are planned for LINEAR_MAX_ROWS a thread (session_create.c). */
_Static_assert(LINEAR_MAX_ROWS >= LINEAR_ROW_SPLIT, "rows of a thread below the split fit its block");

/* Runs several products over the same rows on all threads, as if their panels were one matrix. */
void linear_run_parallel(const kernels *table, executor *by, const linear_product *products, size_t count);

/* Returns the beginning of part `index` of `parts` balanced parts. */
static inline size_t part_start(size_t total, size_t parts, size_t index)
{
    return total / parts * index + total % parts * index / parts;
}
