/* The memory of a problem and what is in it. SPDX-License-Identifier: MIT */
#include "bench/kernel_calls.h"
#include "core/base/random.h"
#include "core/model/pack.h"
#include "core/model/positions.h"

#define COLD_BYTES ((size_t)256 << 20)

/* v3's table: what position_bias and fold_runs are measured with. */
static const position_rule rule_of_v3 = {
    .span = KERNEL_TABLE_ROWS / 2, .buckets = 256, .max_distance = 512, .clamp_distance = true};

static bool reads_two_matrices(kernel_operation operation)
{
    return operation == KERNEL_DOT_ROWS || operation == KERNEL_LAYERNORM_BACKWARD ||
           operation == KERNEL_ACTIVATE_BACKWARD || operation == KERNEL_SOFTMAX_BACKWARD || operation == KERNEL_ADAM ||
           operation == KERNEL_GEMM_TN;
}

static bool reads_depth(kernel_operation operation)
{
    return operation == KERNEL_GEMM || operation == KERNEL_PACK || operation == KERNEL_GEMM_TN ||
           operation >= KERNEL_QUANTIZE_U8;
}

/* Entries of the table of positions. */
static size_t distances_of(const kernel_problem *p)
{
    return p->operation == KERNEL_FOLD_RUNS ? p->rows + p->columns : p->rows + 2 * PANEL;
}

static size_t floats_of_b(const kernel_data *d)
{
    const kernel_problem *p = d->problem;
    if (p->operation == KERNEL_PACK) return (p->rows + PANEL - 1) / PANEL * PANEL * p->depth;
    if (p->operation == KERNEL_POSITION_BIAS) return KERNEL_TABLE_ROWS * PANEL;
    return reads_two_matrices(p->operation) ? p->rows * d->ldb : p->depth * kernel_panels(p) * PANEL;
}

void kernel_data_carve(kernel_data *d, arena *memory, bool cold)
{
    const kernel_problem *p = d->problem;
    d->lda = row_stride(reads_depth(p->operation) ? p->depth : p->columns);
    d->ldb = d->ldc = row_stride(kernel_panels(p) * PANEL);
    if (p->operation == KERNEL_POSITION_BIAS) d->lda = KERNEL_TABLE_ROWS + PANEL;
    if (p->operation == KERNEL_FOLD_RUNS) d->ldc = KERNEL_TABLE_ROWS + PANEL;
    const size_t out_rows = p->operation == KERNEL_GEMM_TN ? p->depth : p->rows;
    d->b_floats = floats_of_b(d);
    d->copies = 1;
    if (cold && p->operation == KERNEL_GEMM) d->copies = COLD_BYTES / (d->b_floats * sizeof(float)) + 1;
    d->a = arena_take(memory, p->rows * d->lda, sizeof(float));
    d->b = arena_take(memory, d->copies * d->b_floats, sizeof(float));
    d->c = arena_take(memory, out_rows * (d->ldc > PANEL ? d->ldc : PANEL), sizeof(float));
    d->d = arena_take(memory, p->rows * d->ldc, sizeof(float));
    d->row = arena_take(memory, d->ldc, sizeof(float));
    d->second_row = arena_take(memory, d->ldc, sizeof(float));
    d->state = arena_take(memory, 3 * p->rows, sizeof(float));
    d->rows = arena_take(memory, distances_of(p), sizeof(int32_t));
    d->positions = arena_take(memory, p->rows + 2 * PANEL, sizeof(int32_t));
    d->places = arena_take(memory, p->rows, sizeof *d->places);
    if (p->operation < KERNEL_QUANTIZE_U8) return;
    const size_t columns = kernel_panels(p) * PANEL, digits = 2; /* the most */
    d->digits = arena_take(memory, digits * kernel_plane_bytes(p), 1);
    d->weights = arena_take(memory, digits * columns * p->depth, 1);
    d->zeros = arena_take(memory, p->rows, sizeof(int32_t));
    d->sums = arena_take(memory, digits * columns, sizeof(int32_t));
    d->row_scales = arena_take(memory, p->rows, sizeof(float));
    d->column_scales = arena_take(memory, columns, sizeof(float));
}

/* Numbers in [-1, 1): no subnormals, no runs of equal values. */
static void fill(float *x, size_t count)
{
    uint64_t state = 12345;
    for (size_t i = 0; i < count; i++) x[i] = (float)(2 * random_fraction(&state) - 1);
}

/* Any digits do: products of integers take the same time whatever they are. */
static void fill_digits(kernel_data *d)
{
    const kernel_problem *p = d->problem;
    const size_t columns = kernel_panels(p) * PANEL;
    uint64_t state = 12345;
    for (size_t i = 0; i < 2 * kernel_plane_bytes(p); i++) d->digits[i] = (uint8_t)random_below(&state, 256);
    for (size_t i = 0; i < 2 * columns * p->depth; i++) d->weights[i] = (int8_t)((int)random_below(&state, 255) - 127);
    for (size_t i = 0; i < 2 * columns; i++) d->sums[i] = 0;
    for (size_t i = 0; i < p->rows; i++) d->zeros[i] = 128, d->row_scales[i] = 1;
    for (size_t i = 0; i < columns; i++) d->column_scales[i] = 1;
}

void kernel_data_fill(kernel_data *d)
{
    const kernel_problem *p = d->problem;
    const bool folds = p->operation == KERNEL_FOLD_RUNS;
    if (p->operation >= KERNEL_QUANTIZE_U8) fill_digits(d);
    for (size_t i = 0; i < p->rows; i++) d->places[i] = (dropout_row){.place = (uint32_t)i};
    fill(d->a, p->rows * d->lda);
    fill(d->b, d->copies * d->b_floats);
    fill(d->row, d->ldc);
    fill(d->second_row, d->ldc);
    /* Of rows whose largest logit is 1, and of squares of gradients. */
    for (size_t i = 0; i < 3 * p->rows; i++) d->state[i] = 1;
    for (size_t i = 0; p->operation == KERNEL_ADAM && i < d->b_floats; i++) d->b[i] *= d->b[i];
    if (p->operation == KERNEL_ADAM || folds) fill(d->c, p->rows * d->ldc);
    if (p->operation == KERNEL_ADAM) fill(d->d, p->rows * d->ldc);
    /* Index PANEL is query 0 and key lane 0; of fold_runs the last query's is. */
    const ptrdiff_t zero = folds ? (ptrdiff_t)p->rows - 1 : PANEL, count = (ptrdiff_t)distances_of(p);
    for (ptrdiff_t i = 0; i < count; i++) d->rows[i] = (int32_t)position_row(&rule_of_v3, p->distance + i - zero);
    for (ptrdiff_t i = 0; !folds && i < count; i++) d->positions[count - 1 - i] = KERNEL_TABLE_ROWS - 1 - d->rows[i];
}
