/* Kernels of the backward pass and of the optimiser that work row by row or number by number. Sums have the 16 partials of
 * row_tmpl.h. SPDX-License-Identifier: MIT */
#ifndef SIMD_TMPL_TRAINING_ROW_TMPL_H
#define SIMD_TMPL_TRAINING_ROW_TMPL_H

VF float dot_row(const float *a, const float *b, size_t n)
{
    vf sums[PARTIALS];
    UNROLL for (size_t v = 0; v < PARTIALS; v++) sums[v] = vf_zero();
    for (size_t e = 0; e < n; e += PANEL)
        UNROLL for (size_t v = 0; v < PARTIALS; v++) {
            const size_t at = e + v * VF_LANES, here = lanes_left(n, at);
            if (here == 0) break;
            sums[v] = vf_fma(vf_load_n(a + at, here, vf_zero()), vf_load_n(b + at, here, vf_zero()), sums[v]);
        }
    return sum_of_partials(sums);
}

static void VF_NAME(dot_rows_f32)(float *y, const float *a, size_t lda, const float *b, size_t ldb, size_t rows, size_t n)
{
    for (size_t row = 0; row < rows; row++) y[row] = dot_row(a + row * lda, b + row * ldb, n);
}

typedef struct row_statistics {
    float mean, r;
} row_statistics;

/* As layernorm_f32 has them. */
VF row_statistics statistics_of(const float *x, size_t n, float eps)
{
    vf sums[PARTIALS];
    UNROLL for (size_t v = 0; v < PARTIALS; v++) sums[v] = vf_zero();
    for (size_t e = 0; e < n; e += PANEL)
        UNROLL for (size_t v = 0; v < PARTIALS; v++) {
            const size_t at = e + v * VF_LANES, here = lanes_left(n, at);
            if (here == 0) break;
            sums[v] = vf_add(sums[v], vf_load_n(x + at, here, vf_zero()));
        }
    const float mean = sum_of_partials(sums) / (float)n;
    const vf mu = vf_set1(mean);
    UNROLL for (size_t v = 0; v < PARTIALS; v++) sums[v] = vf_zero();
    for (size_t e = 0; e < n; e += PANEL)
        UNROLL for (size_t v = 0; v < PARTIALS; v++) {
            const size_t at = e + v * VF_LANES, here = lanes_left(n, at);
            if (here == 0) break;
            const vf d = vf_sub(vf_load_n(x + at, here, mu), mu);
            sums[v] = vf_fma(d, d, sums[v]);
        }
    const float variance = sum_of_partials(sums) / (float)n;
    return (row_statistics){mean, 1.0f / __builtin_sqrtf(variance + eps)};
}

VF vf scaled_gradient(const layernorm_backward_task *task, const float *dy, size_t e, size_t here)
{
    const vf y = vf_load_n(dy + e, here, vf_zero());
    return task->gamma ? vf_mul(vf_load_n(task->gamma + e, here, vf_zero()), y) : y;
}

static void VF_NAME(layernorm_backward_f32)(const layernorm_backward_task *task)
{
    const size_t n = task->n;
    for (size_t row = 0; row < task->rows; row++) {
        const float *x = task->x + row * task->ldx, *dy = task->dy + row * task->lddy;
        float *dx = task->dx + row * task->lddx, *normal = task->normal + row * task->ld_normal;
        const row_statistics statistics = statistics_of(x, n, task->eps);
        const vf mu = vf_set1(statistics.mean), r = vf_set1(statistics.r);
        vf sums[PARTIALS], products[PARTIALS];
        UNROLL for (size_t v = 0; v < PARTIALS; v++) sums[v] = products[v] = vf_zero();
        for (size_t e = 0; e < n; e += PANEL)
            UNROLL for (size_t v = 0; v < PARTIALS; v++) {
                const size_t at = e + v * VF_LANES, here = lanes_left(n, at);
                if (here == 0) break;
                const vf u = scaled_gradient(task, dy, at, here);
                const vf y = vf_mul(vf_sub(vf_load_n(x + at, here, mu), mu), r);
                vf_store_n(normal + at, here, y);
                sums[v] = vf_add(sums[v], u);
                products[v] = vf_fma(u, y, products[v]);
            }
        const vf a = vf_set1(sum_of_partials(sums) / (float)n), b = vf_set1(sum_of_partials(products) / (float)n);
        for (size_t e = 0; e < n; e += VF_LANES) {
            const size_t here = lanes_left(n, e);
            const vf u = vf_sub(scaled_gradient(task, dy, e, here), a);
            vf_store_n(dx + e, here, vf_mul(r, vf_fnma(vf_load_n(normal + e, here, vf_zero()), b, u)));
        }
    }
}

/* The function and its derivative have most of their work in common, which the compiler sees. */
#define ACTIVATE_BACKWARD_CASE(name, function, derivative)                                                             \
    case name:                                                                                                         \
        if (y)                                                                                                         \
            for (; e + VF_LANES <= n; e += VF_LANES) {                                                                 \
                const vf u = vf_load(x + e);                                                                           \
                vf_store(y + e, function(u));                                                                          \
                vf_store(dy + e, vf_mul(vf_load(dy + e), derivative(u)));                                              \
            }                                                                                                          \
        for (; e < n; e += VF_LANES) {                                                                                 \
            const size_t here = lanes_left(n, e);                                                                      \
            const vf u = vf_load_n(x + e, here, vf_zero());                                                            \
            if (y) vf_store_n(y + e, here, function(u));                                                               \
            vf_store_n(dy + e, here, vf_mul(vf_load_n(dy + e, here, vf_zero()), derivative(u)));                       \
        }                                                                                                              \
        break;

static void VF_NAME(activate_backward_f32)(float *dy, float *y, const float *x, size_t n, kernel_activation function)
{
    size_t e = 0;
    switch (function) {
        ACTIVATE_BACKWARD_CASE(KERNEL_GELU, vf_gelu, vf_gelu_derivative)
        ACTIVATE_BACKWARD_CASE(KERNEL_GELU_TANH, vf_gelu_tanh, vf_gelu_tanh_derivative)
        ACTIVATE_BACKWARD_CASE(KERNEL_GELU_QUICK, vf_gelu_quick, vf_gelu_quick_derivative)
        ACTIVATE_BACKWARD_CASE(KERNEL_RELU, vf_relu, vf_relu_derivative)
        ACTIVATE_BACKWARD_CASE(KERNEL_SILU, vf_silu, vf_silu_derivative)
        ACTIVATE_BACKWARD_CASE(KERNEL_TANH, vf_tanh, vf_tanh_derivative)
        ACTIVATE_BACKWARD_CASE(KERNEL_SIGMOID, vf_sigmoid, vf_sigmoid_derivative)
        ACTIVATE_BACKWARD_CASE(KERNEL_EXP, vf_exp_any, vf_exp_any)
    }
}

static void VF_NAME(softmax_backward_f32)(const softmax_backward_task *task)
{
    for (size_t row = 0; row < task->rows; row++) {
        float *s = task->s + row * task->lds, *dp = task->dp + row * task->lddp;
        const float maximum = task->maximum[row];
        const vf shift = vf_set1(maximum == -__builtin_inff() ? 0.0f : maximum), inverse = vf_set1(task->inverse_total[row]);
        for (size_t j = 0; j < task->keys; j += VF_LANES) {
            const size_t here = lanes_left(task->keys, j);
            vf x = vf_load_n(s + j, here, vf_zero());
            if (task->key_bias) x = vf_add(x, vf_load_n(task->key_bias + j, here, vf_zero()));
            vf_store_n(s + j, here, vf_mul(vf_exp(vf_sub(x, shift)), inverse));
        }
        const vf delta = vf_set1(task->delta ? task->delta[row] : dot_row(s, dp, task->keys));
        for (size_t j = 0; j < task->keys; j += VF_LANES) {
            const size_t here = lanes_left(task->keys, j);
            const vf difference = vf_sub(vf_load_n(dp + j, here, vf_zero()), delta);
            vf_store_n(dp + j, here, vf_mul(vf_load_n(s + j, here, vf_zero()), difference));
        }
    }
}

/* 16 neighbours that go to 16 places, to one, or anywhere. */
VF void fold_sixteen(const float *s, const int32_t *place_of, int32_t first, float *strip, bool unit_steps)
{
    float *x = strip + (place_of[0] - first);
    const int32_t steps = place_of[PANEL - 1] - place_of[0];
    if (unit_steps && steps == PANEL - 1) {
        UNROLL for (size_t v = 0; v < PARTIALS; v++)
            vf_store(x + v * VF_LANES, vf_add(vf_load(x + v * VF_LANES), vf_load(s + v * VF_LANES)));
    } else if (unit_steps && steps == 0) {
        float sum = *x;
        for (size_t j = 0; j < PANEL; j++) sum = sum + s[j];
        *x = sum;
    } else {
        for (size_t j = 0; j < PANEL; j++) strip[place_of[j] - first] = strip[place_of[j] - first] + s[j];
    }
}

static void VF_NAME(fold_runs_f32)(const fold_runs_task *task)
{
    for (size_t row = 0; row < task->rows; row++) {
        const float *s = task->s + row * task->lds;
        const int32_t *place_of = task->place_of - row;
        float *strip = task->strip + row * task->ld_strip;
        size_t j = 0;
        for (; j + PANEL <= task->columns; j += PANEL, s += task->s_panel_stride)
            fold_sixteen(s, place_of + j, task->first, strip, task->unit_steps);
        for (size_t l = 0; j < task->columns; j++, l++)
            strip[place_of[j] - task->first] = strip[place_of[j] - task->first] + s[l];
    }
}

static void VF_NAME(adam_f32)(const adam_task *task)
{
    const vf scale = vf_set1(task->scale), b1 = vf_set1(task->b1), c1 = vf_set1(task->c1), b2 = vf_set1(task->b2), c2 = vf_set1(task->c2);
    const vf eps = vf_set1(task->eps), rate = vf_set1(task->rate), root = vf_set1(task->inverse_root), keep = vf_set1(task->keep);
    const vf decay = vf_set1(task->decay), zero = vf_zero();
    for (size_t e = 0; e < task->n; e += VF_LANES) {
        const size_t here = lanes_left(task->n, e);
        const vf g = vf_mul(scale, vf_load_n(task->g + e, here, zero)), w = vf_load_n(task->w + e, here, zero);
        const vf m = vf_fma(b1, vf_load_n(task->m + e, here, zero), vf_mul(c1, g));
        const vf v = vf_fma(b2, vf_load_n(task->v + e, here, zero), vf_mul(vf_mul(c2, g), g));
        vf_store_n(task->m + e, here, m);
        vf_store_n(task->v + e, here, v);
        const vf deviation = vf_sqrt(v);
        if (task->coupled)
            vf_store_n(task->w + e, here, vf_fma(rate, vf_add(vf_div(m, vf_add(deviation, eps)), vf_mul(decay, w)), w));
        else
            vf_store_n(task->w + e, here, vf_fma(rate, vf_div(m, vf_fma(deviation, root, eps)), vf_mul(keep, w)));
    }
}

#endif
