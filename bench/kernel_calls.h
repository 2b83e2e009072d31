/* One call of a kernel on the data of a problem, and what that is in work.
 *
 * SPDX-License-Identifier: MIT */
#ifndef BENCH_KERNEL_CALLS_H
#define BENCH_KERNEL_CALLS_H

#include "bench/kernel_problems.h"
#include "core/base/arena.h"
#include "core/kernels.h"

/* The data of one problem. What a kernel writes in place is refilled where it would else run away. */
typedef struct kernel_data {
    const kernel_problem *problem;
    float *a, *b, *c, *d; /* inputs; outputs */
    float *row, *second_row, *state;
    int32_t *rows, *positions;
    dropout_row *places;
    uint8_t *digits; /* of low precision: activations, weights, sums and scales */
    int8_t *weights;
    int32_t *zeros, *sums;
    float *row_scales, *column_scales;
    size_t lda, ldb, ldc;
    size_t b_floats, copies, call; /* of gemm with other weights at each call */
} kernel_data;

enum { KERNEL_TABLE_ROWS = 512 }; /* of the relative table that position_bias and fold_runs are measured with */

static inline size_t kernel_panels(const kernel_problem *p) { return (p->columns + PANEL - 1) / PANEL; }
/* From a plane of digits to the next. */
static inline size_t kernel_plane_bytes(const kernel_problem *p)
{
    return (p->rows + DIGIT_TILE_ROWS - 1) / DIGIT_TILE_ROWS * DIGIT_TILE_ROWS * p->depth;
}

/* Of one call, at least; what is refilled before it counts. gflop 0: not counted in those. */
typedef struct kernel_work {
    double gflop, bytes, elements;
} kernel_work;

/* Run twice (arena.h). cold: other weights for gemm at each call, more of them than caches hold. */
void kernel_data_carve(kernel_data *data, arena *memory, bool cold);
void kernel_data_fill(kernel_data *data);
void kernel_call(const kernels *table, kernel_data *data);
/* What the table says of the slot. */
const char *kernel_implementation(const kernels *table, kernel_operation operation);
kernel_work kernel_work_of(const kernel_problem *problem);

#endif
