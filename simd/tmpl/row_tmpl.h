/* Implements the kernels that work row by row: softmax_f32, layernorm_f32, activate_f32. Their sums have 16 partials
 * whatever the vector length, combined by the tree of core/kernels.h.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#define PARTIALS (PANEL / VF_LANES) /* number of vectors that hold 16 partial sums */

/* s[l] + s[l + 8] first, then the remaining lanes */
VF float sum_of_partials(const vf s[PARTIALS])
{
#if VF_LANES == 16
    return vf_sum_lanes(s[0]);
#elif VF_LANES == 8
    return vf_sum_lanes(vf_add(s[0], s[1]));
#else
    return vf_sum_lanes(vf_add(vf_add(s[0], s[2]), vf_add(s[1], s[3])));
#endif
}

/* Returns how many of the elements that begin at e vector v of a 16-element step holds: 0 ... VF_LANES. */
VF size_t lanes_left(size_t n, size_t e) { return e >= n ? 0 : n - e < VF_LANES ? n - e : VF_LANES; }

VF float exp_one(float x)
{
    float lanes[VF_LANES];
    vf_store(lanes, vf_exp(vf_set1(x)));
    return lanes[0];
}

VF void softmax_row(const bool masked, const softmax_task *task, size_t row)
{
    float *s = task->s + row * task->lds;
    const size_t keys = task->keys, whole = keys / PANEL * PANEL;
    const vf lowest = vf_set1(-__builtin_inff());

    vf m[PARTIALS];
    UNROLL for (size_t v = 0; v < PARTIALS; v++) m[v] = lowest;
    for (size_t j = 0; j < whole; j += PANEL)
        UNROLL for (size_t v = 0; v < PARTIALS; v++) {
            vf x = vf_load(s + j + v * VF_LANES);
            if (masked) {
                x = vf_add(x, vf_load(task->key_bias + j + v * VF_LANES));
                vf_store(s + j + v * VF_LANES, x);
            }
            m[v] = vf_max(m[v], x);
        }
    for (size_t j = whole; j < keys; j += VF_LANES) {
        const size_t n = lanes_left(keys, j);
        vf x = vf_load_n(s + j, n, lowest);
        if (masked) {
            x = vf_add(x, vf_load_n(task->key_bias + j, n, vf_zero()));
            vf_store_n(s + j, n, x);
        }
        m[0] = vf_max(m[0], x);
    }
    UNROLL for (size_t v = 1; v < PARTIALS; v++) m[0] = vf_max(m[0], m[v]);
    float maximum = vf_max_lanes(m[0]);
    const float old = task->maximum[row];
    if (!task->first && old > maximum) maximum = old;
    const float base = maximum == -__builtin_inff() ? 0.0f : maximum;

    const vf minus = vf_set1(base);
    const vs minus_all = vs_set1(base);
    vf sums[PARTIALS];
    UNROLL for (size_t v = 0; v < PARTIALS; v++) sums[v] = vf_zero();
    size_t j = 0;
    for (; j + VS_LANES <= whole; j += VS_LANES) {
        const vs e = vs_exp(vs_sub(vs_load(s + j), minus_all));
        vs_store(s + j, e);
        UNROLL for (int k = 0; k < AT_ONCE; k++) sums[k % PARTIALS] = vf_add(sums[k % PARTIALS], e.v[k]);
    }
    for (; j < whole; j += PANEL)
        UNROLL for (size_t v = 0; v < PARTIALS; v++) {
            const vf e = vf_exp(vf_sub(vf_load(s + j + v * VF_LANES), minus));
            vf_store(s + j + v * VF_LANES, e);
            sums[v] = vf_add(sums[v], e);
        }
    UNROLL for (size_t v = 0; v < PARTIALS; v++) { /* absent elements add exp(-inf) = 0, which changes nothing */
        const size_t at = whole + v * VF_LANES, n = lanes_left(keys, at);
        if (n == 0) break;
        const vf e = vf_exp(vf_sub(vf_load_n(s + at, n, lowest), minus));
        vf_store_n(s + at, n, e);
        sums[v] = vf_add(sums[v], e);
    }
    const float sum = sum_of_partials(sums);

    task->maximum[row] = maximum;
    if (task->first) {
        task->total[row] = sum;
    } else {
        const float factor = old == -__builtin_inff() ? 0.0f : exp_one(old - base);
        task->rescale[row] = factor;
        task->total[row] = __builtin_fmaf(task->total[row], factor, sum);
    }
}

static void VF_NAME(softmax_f32)(const softmax_task *task)
{
    softmax_task_assert(task);
    if (task->key_bias)
        for (size_t row = 0; row < task->rows; row++) softmax_row(true, task, row);
    else
        for (size_t row = 0; row < task->rows; row++) softmax_row(false, task, row);
}

static void VF_NAME(layernorm_f32)(float *y, size_t ldy, const float *x, size_t ldx, const float *gamma, const float *beta,
                                   size_t rows, size_t n, float eps)
{
    const size_t whole = n / PANEL * PANEL;
    for (size_t row = 0; row < rows; row++, x += ldx, y += ldy) {
        vf sums[PARTIALS];
        UNROLL for (size_t v = 0; v < PARTIALS; v++) sums[v] = vf_zero();
        for (size_t e = 0; e < whole; e += PANEL)
            UNROLL for (size_t v = 0; v < PARTIALS; v++) sums[v] = vf_add(sums[v], vf_load(x + e + v * VF_LANES));
        UNROLL for (size_t v = 0; v < PARTIALS; v++) {
            const size_t e = whole + v * VF_LANES;
            sums[v] = vf_add(sums[v], vf_load_n(x + e, lanes_left(n, e), vf_zero()));
        }
        const float mean = sum_of_partials(sums) / (float)n;

        const vf mu = vf_set1(mean);
        UNROLL for (size_t v = 0; v < PARTIALS; v++) sums[v] = vf_zero();
        for (size_t e = 0; e < whole; e += PANEL)
            UNROLL for (size_t v = 0; v < PARTIALS; v++) {
                const vf d = vf_sub(vf_load(x + e + v * VF_LANES), mu);
                sums[v] = vf_fma(d, d, sums[v]);
            }
        UNROLL for (size_t v = 0; v < PARTIALS; v++) {
            const size_t e = whole + v * VF_LANES;
            const vf d = vf_sub(vf_load_n(x + e, lanes_left(n, e), mu), mu); /* absent elements differ from the mean by 0 */
            sums[v] = vf_fma(d, d, sums[v]);
        }
        const float variance = sum_of_partials(sums) / (float)n;

        const vf r = vf_set1(1.0f / __builtin_sqrtf(variance + eps));
        for (size_t e = 0; e < n; e += VF_LANES) {
            const size_t here = lanes_left(n, e);
            if (here == VF_LANES) {
                const vf d = vf_mul(vf_sub(vf_load(x + e), mu), r);
                vf_store(y + e, vf_fma(d, vf_load(gamma + e), vf_load(beta + e)));
            } else {
                const vf d = vf_mul(vf_sub(vf_load_n(x + e, here, mu), mu), r);
                vf_store_n(y + e, here, vf_fma(d, vf_load_n(gamma + e, here, mu), vf_load_n(beta + e, here, mu)));
            }
        }
    }
}

#define ACTIVATE_CASE(NAME, name, ...)                                                                                 \
    case ACTIVATION_##NAME:                                                                                            \
        for (; e + VS_LANES <= n; e += VS_LANES) vs_store(x + e, vs_##name(vs_load(x + e)));                           \
        for (; e + VF_LANES <= n; e += VF_LANES) vf_store(x + e, vf_##name(vf_load(x + e)));                           \
        if (e < n) vf_store_n(x + e, n - e, vf_##name(vf_load_n(x + e, n - e, vf_zero())));                            \
        break;

static void VF_NAME(activate_f32)(float *x, size_t n, activation function)
{
    size_t e = 0;
    switch (function) {
    case ACTIVATION_NONE: break;
        ACTIVATIONS(ACTIVATE_CASE)
        ACTIVATE_CASE(EXP, exp_any, "")
    }
}
