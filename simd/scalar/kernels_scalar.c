/* Implements the scalar tier: every kernel of core/kernels.h in plain C, written to be read beside its contract. Tests
 * compare the templates with it, so it shares no line with them.
 *
 * Compiled twice: as kernels_init_scalar for any processor, where fmaf is a function of the C library, and with
 * SCALAR_FMA and hardware fmaf as kernels_init_scalar_fma. Same bits; only the speed differs. Automatic vectorisation
 * is off, so that "speed-up over scalar" means something.
 *
 * SPDX-License-Identifier: MIT */
#include "core/kernels.h"
#include "simd/scalar/math_scalar.h"

#include <assert.h>

#ifdef SCALAR_FMA
#define KERNELS_INIT   kernels_init_scalar_fma
#define SUFFIXED(name) name##_scalar_fma
#define ISA_NAME       "scalar_fma"
#else
#define KERNELS_INIT   kernels_init_scalar
#define SUFFIXED(name) name##_scalar
#define ISA_NAME       "scalar"
#endif

/* Returns the sum of 16 partial sums by the one tree: halves, quarters, eighths, pairs. */
static float sum_of_partials(const float partials[PANEL])
{
    float s[PANEL];
    memcpy(s, partials, sizeof s);
    for (size_t half = PANEL / 2; half > 0; half /= 2)
        for (size_t l = 0; l < half; l++) s[l] = s[l] + s[l + half];
    return s[0];
}

/* --------------------------------------------------------------------------------------------------------- gemm_f32 */

/* Sets x before the products: 0, C, or C scaled. */
static void gemm_start(const gemm_task *task, size_t i, const float *c, float x[PANEL])
{
    for (size_t l = 0; l < PANEL; l++) {
        if (!task->accumulate)
            x[l] = 0.0f;
        else if (task->c_scale)
            x[l] = c[l] * task->c_scale[i];
        else
            x[l] = c[l];
    }
}

static void gemm_epilogue(const gemm_task *task, size_t i, size_t p, float x[PANEL])
{
    for (size_t l = 0; l < PANEL; l++) {
        if (task->bias) x[l] = x[l] + task->bias[p * PANEL + l];
        if (task->gelu) x[l] = scalar_gelu(x[l]);
        if (task->outer_column) x[l] = x[l] + (task->outer_column[i * task->outer_ld] + task->outer_row[p * PANEL + l]);
        if (task->residual) x[l] = x[l] + task->residual[i * task->ld_residual + p * task->residual_panel_stride + l];
        if (task->row_scale) x[l] = x[l] * task->row_scale[i];
    }
}

static void SUFFIXED(gemm_f32)(const gemm_task *task)
{
    gemm_task_assert(task);
    for (size_t p = 0; p < task->panels; p++) {
        for (size_t i = 0; i < task->rows; i++) {
            const float *a = task->a + i * task->lda;
            const float *b = task->b + p * task->b_panel_stride;
            float *c = task->c + i * task->ldc + p * task->c_panel_stride;
            float x[PANEL];
            gemm_start(task, i, c, x);
            for (size_t k = 0; k < task->depth; k++)
                for (size_t l = 0; l < PANEL; l++) x[l] = fmaf(a[k], b[k * PANEL + l], x[l]);
            gemm_epilogue(task, i, p, x);
            memcpy(c, x, sizeof x);
        }
    }
}

/* -------------------------------------------------------------------------------------------------- pack_panels_f32 */

static void SUFFIXED(pack_panels_f32)(float *panels, size_t panel_stride, const float *x, size_t ldx, size_t rows,
                                      size_t depth)
{
    for (size_t first = 0; first < rows; first += PANEL) {
        float *panel = panels + first / PANEL * panel_stride;
        for (size_t k = 0; k < depth; k++)
            for (size_t l = 0; l < PANEL; l++)
                panel[k * PANEL + l] = first + l < rows ? x[(first + l) * ldx + k] : 0.0f;
    }
}

/* ------------------------------------------------------------------------------------------------ position_bias_f32 */

/* unit_steps only permits shortcuts; looking every entry up needs none. */
static void SUFFIXED(position_bias_f32)(const position_bias_task *task)
{
    position_bias_task_assert(task);
    for (size_t i = 0; i < task->rows; i++) {
        for (size_t l = 0; l < PANEL; l++) {
            const int32_t t = task->row_of[(ptrdiff_t)i - (ptrdiff_t)l];
            float *bias = &task->bias[i * PANEL + l];
            const float *c2p = NULL, *p2c = NULL;
            if (task->c2p) c2p = &task->c2p[i * task->ld_c2p + ((size_t)(task->last_row - t) - task->c2p_first)];
            if (task->p2c) p2c = &task->p2c[((size_t)t - task->p2c_first) * PANEL + l];
            *bias = c2p && p2c ? *c2p + *p2c : c2p ? *c2p : *p2c;
        }
    }
}

/* ------------------------------------------------------------------------------------------------------ softmax_f32 */

/* Adds the key bias in place and returns the maximum, not below `maximum`. A NaN is never the maximum. */
static float softmax_maximum(float *s, const float *key_bias, size_t keys, float maximum)
{
    for (size_t j = 0; j < keys; j++) {
        if (key_bias) s[j] = s[j] + key_bias[j];
        maximum = maximum < s[j] ? s[j] : maximum;
    }
    return maximum;
}

static float softmax_exponentials(float *s, size_t keys, float maximum)
{
    float partials[PANEL] = {0};
    for (size_t j = 0; j < keys; j++) {
        s[j] = scalar_exp(s[j] - maximum);
        partials[j % PANEL] = partials[j % PANEL] + s[j];
    }
    return sum_of_partials(partials);
}

static void SUFFIXED(softmax_f32)(const softmax_task *task)
{
    softmax_task_assert(task);
    for (size_t i = 0; i < task->rows; i++) {
        float *s = task->s + i * task->lds;
        const float old = task->first ? -INFINITY : task->maximum[i];
        const float maximum = softmax_maximum(s, task->key_bias, task->keys, old);
        task->maximum[i] = maximum;
        /* With 0, a row of masked keys alone gives exp(-inf - 0) = 0 and not exp(-inf + inf). */
        const float shift = maximum == -INFINITY ? 0.0f : maximum;
        const float sum = softmax_exponentials(s, task->keys, shift);
        if (task->first) {
            task->total[i] = sum;
        } else {
            const float factor = scalar_exp(old - shift);
            task->rescale[i] = factor;
            task->total[i] = fmaf(task->total[i], factor, sum);
        }
    }
}

/* ---------------------------------------------------------------------------------------------------- layernorm_f32 */

static float mean_of(const float *x, size_t n)
{
    float partials[PANEL] = {0};
    for (size_t e = 0; e < n; e++) partials[e % PANEL] = partials[e % PANEL] + x[e];
    return sum_of_partials(partials) / (float)n;
}

static float variance_of(const float *x, size_t n, float mean)
{
    float partials[PANEL] = {0};
    for (size_t e = 0; e < n; e++) {
        const float d = x[e] - mean;
        partials[e % PANEL] = fmaf(d, d, partials[e % PANEL]);
    }
    return sum_of_partials(partials) / (float)n;
}

static void SUFFIXED(layernorm_f32)(float *y, size_t ldy, const float *x, size_t ldx, const float *gamma,
                                    const float *beta, size_t rows, size_t n, float eps)
{
    assert(n >= 1);
    for (size_t i = 0; i < rows; i++) {
        const float *x_row = x + i * ldx;
        float *y_row = y + i * ldy;
        const float mean = mean_of(x_row, n);
        const float r = 1.0f / sqrtf(variance_of(x_row, n, mean) + eps);
        for (size_t e = 0; e < n; e++) {
            const float d = x_row[e] - mean;
            y_row[e] = fmaf(d * r, gamma[e], beta[e]);
        }
    }
}

/* ----------------------------------------------------------------------------------------------------- activate_f32 */

static float activation_of(float x, activation function)
{
    switch (function) {
    case ACTIVATION_NONE: break;
#define VALUE(NAME, name, ...)                                                                                         \
    case ACTIVATION_##NAME: return scalar_##name(x);
        ACTIVATIONS(VALUE)
#undef VALUE
    case ACTIVATION_EXP: return scalar_exp(x);
    }
    assert(!"an activation of the list");
    return x;
}

static void SUFFIXED(activate_f32)(float *x, size_t n, activation function)
{
    for (size_t e = 0; e < n; e++) x[e] = activation_of(x[e], function);
}

#ifndef KERNELS_WITHOUT_TRAINING
#include "simd/scalar/training_scalar.h"
#endif
#include "simd/scalar/integer_scalar.h"

/* -------------------------------------------------------------------------------------------------------- the table */

void KERNELS_INIT(kernels *table)
{
    /* Rows and panels are independent here: any block is as good as another. */
    table->tile_rows = 1;
    table->tile_panels = 1;
#define X(name, parameters)                                                                                            \
    table->name = SUFFIXED(name);                                                                                      \
    table->name##_isa = ISA_NAME;
    INFERENCE_KERNEL_LIST(X)
    BUILT_TRAINING_KERNEL_LIST(X)
    QUANTIZE_KERNEL_LIST(X)
    INTEGER_GEMM_KERNEL_LIST(X)
#undef X
}
