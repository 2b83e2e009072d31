/* Kernels of training with one deliberate fault each (checkasm_broken.c).
 *
 * SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm_broken.h"

#include <math.h>

/* ------------------------------------------------------------------------------------------------------------- sums */

static void gemm_tn_without_a_tree(const gemm_tn_task *t)
{
    gemm_tn_task changed = *t;
    if (t->bounds) changed.rows = t->bounds[t->parts];
    changed.bounds = NULL;
    sound.gemm_tn_f32(&changed);
}

static void gemm_tn_starts_from_zero(const gemm_tn_task *t)
{
    gemm_tn_task changed = *t;
    changed.accumulate = false;
    sound.gemm_tn_f32(&changed);
}

static void gemm_tn_misses_last_row(const gemm_tn_task *t)
{
    size_t bounds[MAX_ROW_PARTS + 1];
    gemm_tn_task changed = *t;
    if (t->bounds) {
        for (size_t i = 0; i <= t->parts; i++) bounds[i] = t->bounds[i];
        if (bounds[t->parts] > bounds[t->parts - 1]) bounds[t->parts]--;
        changed.bounds = bounds;
    }
    changed.rows -= t->rows > 0;
    sound.gemm_tn_f32(&changed);
}

static void sum_rows_without_products(const sum_rows_task *t)
{
    sum_rows_task changed = *t;
    changed.b = NULL;
    sound.sum_rows_f32(&changed);
}

static void dot_rows_in_one_sum(float *y, const float *a, size_t lda, const float *b, size_t ldb, size_t rows, size_t n)
{
    for (size_t i = 0; i < rows; i++) {
        float sum = 0;
        for (size_t e = 0; e < n; e++) sum = fmaf(a[i * lda + e], b[i * ldb + e], sum);
        y[i] = sum;
    }
}

static void fold_runs_from_the_right(const fold_runs_task *t)
{
    for (size_t i = 0; i < t->rows; i++)
        for (size_t j = t->columns; j-- > 0;)
            t->strip[i * t->ld_strip + (size_t)(t->place_of[(ptrdiff_t)j - (ptrdiff_t)i] - t->first)] +=
                t->s[i * t->row_step + j * t->column_step];
}

static void fold_runs_misses_last_column(const fold_runs_task *t)
{
    fold_runs_task changed = *t;
    changed.columns -= t->columns > 0;
    sound.fold_runs_f32(&changed);
}

/* ------------------------------------------------------------------------------------------------------- row kernels */

static void layernorm_backward_with_constant_statistics(const layernorm_backward_task *t)
{
    sound.layernorm_backward_f32(t);
    for (size_t i = 0; i < t->rows; i++) {
        const float *normal = t->normal + i * t->ld_normal;
        float a = 0, b = 0;
        for (size_t e = 0; e < t->n; e++) a += normal[e], b += normal[e] * normal[e];
        for (size_t e = 0; e < t->n; e++) t->dx[i * t->lddx + e] += 0.1f * (a + normal[e] * b) / (float)t->n;
    }
}

static void layernorm_backward_without_gamma(const layernorm_backward_task *t)
{
    layernorm_backward_task changed = *t;
    changed.gamma = NULL;
    sound.layernorm_backward_f32(&changed);
}

static void activate_backward_by_tanh(float *dy, float *y, const float *x, size_t n, kernel_activation function)
{
    sound.activate_backward_f32(dy, y, x, n, function == KERNEL_GELU ? KERNEL_GELU_TANH : function);
}

static void softmax_backward_without_delta(const softmax_backward_task *t)
{
    static const float zeros[64];
    softmax_backward_task changed = *t;
    changed.delta = zeros;
    sound.softmax_backward_f32(&changed);
}

static void softmax_backward_without_mask(const softmax_backward_task *t)
{
    softmax_backward_task changed = *t;
    changed.key_bias = NULL;
    sound.softmax_backward_f32(&changed);
}

static void adam_with_the_other_decay(const adam_task *t)
{
    adam_task changed = *t;
    changed.coupled = !t->coupled;
    sound.adam_f32(&changed);
}

static void dropout_of_another_step(const dropout_task *t)
{
    dropout_task changed = *t;
    changed.step++;
    sound.dropout_f32(&changed);
}

static void dropout_without_scale(const dropout_task *t)
{
    dropout_task changed = *t;
    changed.scale = 1;
    sound.dropout_f32(&changed);
}

#define FAULTS(X)                                                                                                      \
    X(gemm_tn_f32, BITS, gemm_tn_without_a_tree)                                                                       \
    X(gemm_tn_f32, GROSS, gemm_tn_starts_from_zero)                                                                    \
    X(gemm_tn_f32, GROSS, gemm_tn_misses_last_row)                                                                     \
    X(sum_rows_f32, GROSS, sum_rows_without_products)                                                                  \
    X(dot_rows_f32, BITS, dot_rows_in_one_sum)                                                                         \
    X(fold_runs_f32, BITS, fold_runs_from_the_right)                                                                   \
    X(fold_runs_f32, GROSS, fold_runs_misses_last_column)                                                              \
    X(layernorm_backward_f32, GROSS, layernorm_backward_with_constant_statistics)                                      \
    X(layernorm_backward_f32, GROSS, layernorm_backward_without_gamma)                                                 \
    X(activate_backward_f32, GROSS, activate_backward_by_tanh)                                                         \
    X(softmax_backward_f32, GROSS, softmax_backward_without_delta)                                                     \
    X(softmax_backward_f32, GROSS, softmax_backward_without_mask)                                                      \
    X(adam_f32, GROSS, adam_with_the_other_decay)                                                                      \
    X(dropout_f32, GROSS, dropout_of_another_step)                                                                     \
    X(dropout_f32, GROSS, dropout_without_scale)

FAULTS(PLANT_FAULT)

const broken_kernel training_faults[] = {FAULTS(FAULT_ENTRY)};
const size_t training_fault_count = sizeof training_faults / sizeof *training_faults;
