/* Computes products and sums of the backward pass on all threads. Cutting changes no bit: an output is one chain, or
 * one tree of chains, whatever task computes it (core/kernels.h).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/parallel.h"
#include "core/model/pack.h"

/* Transposes a packed matrix into a packed matrix: Wt[input][output]. carve runs on an arena, fill after every
 * change. */
void transposed_carve(packed_matrix *transposed, arena *memory, const packed_matrix *matrix);
void transposed_fill(const packed_matrix *transposed, const packed_matrix *matrix, const kernels *table,
                     executor *executor);

/* Computes c [rows][ldc] = or += a [rows][lda] times rows [first, first + depth) of the matrix packed in `matrix` (its
 * inputs), one chain; then + residual. */
typedef struct range_product {
    const packed_matrix *matrix;
    size_t first, depth, rows;
    const float *a;
    size_t lda;
    float *c;
    size_t ldc;
    const float *residual;
    size_t ld_residual;
    bool accumulate;
} range_product;

void range_product_run(const range_product *product, const kernels *table, executor *executor);

/* Computes c [columns][ldc] = a' b over rows in parts, and the sums of a's columns: see gemm_tn_task. b has whole
 * panels of columns. */
typedef struct row_parts {
    const size_t *bounds;
    size_t count;
} row_parts;

typedef struct weight_product {
    const float *a;
    size_t lda, columns;
    const float *b;
    size_t ldb, panels;
    float *c;
    size_t ldc;
    row_parts parts;
    float *sums; /* [columns] or NULL */
} weight_product;

void weight_product_run(const weight_product *product, const kernels *table, executor *executor);

/* Computes y[j] = sum over rows r of a[r][j] b[r][j], or of a[r][j] without b: see sum_rows_task. */
typedef struct column_sum {
    const float *a, *b; /* b: may be NULL */
    size_t lda, ldb, n;
    row_parts parts;
    float *y;
} column_sum;

void column_sum_run(const column_sum *sum, const kernels *table, executor *executor);

/* Runs layernorm_backward_f32 on all threads. */
void norm_backward_run(const layernorm_backward_task *task, const kernels *table, executor *executor);
