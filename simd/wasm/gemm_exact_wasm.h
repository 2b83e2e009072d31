/* Implements gemm_f32 without fused multiply-add but with the same bits, and avoids rounding every sum to odd.
 *
 * Accumulators are doubles that hold floats. A step is a product, which is exact, a sum, rounded to 53 bits, and a
 * rounding to float. Two roundings differ from one only where the 53 bits lie in the middle between two floats: their
 * low 29 bits are then 2^28. Shifted left by 3, the low word is INT_MIN, which a minimum over the steps of a block
 * gathers. A block in which it occurred is repeated with sums rounded to odd.
 *
 * Subnormal and infinite results are excluded before: every |a| and |b| is 0 or within 2^-40 ... 2^40, and so is C at
 * the start. A product is then a multiple of 2^-126, and so is every sum. Any other task takes the slow path.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

enum { EXACT_STEPS = 8, EXACT_ROWS = 2, EXACT_VECTORS = 2 };

/* number of pairs of doubles for a tile row's vectors of floats */
typedef v128_t exact_sums[EXACT_ROWS][2 * EXACT_VECTORS];

VF v128_t rounded_to_float(v128_t s) { return wasm_f64x2_promote_low_f32x4(wasm_f32x4_demote_f64x2_zero(s)); }

/* Computes steps k0 <= k < k1, each sum rounded once. */
static void steps_to_odd(int rows, const float *a, size_t lda, const float *b, size_t k0, size_t k1, exact_sums x)
{
    for (size_t k = k0; k < k1; k++)
        for (int i = 0; i < rows; i++) {
            const v128_t s = wasm_f64x2_splat((double)a[(size_t)i * lda + k]);
            for (int v = 0; v < EXACT_VECTORS; v++) {
                const v128_t raw = wasm_v128_load(b + k * PANEL + (size_t)v * VF_LANES);
                x[i][2 * v] = rounded_to_float(fma_to_odd(s, low_doubles(raw), x[i][2 * v]));
                x[i][2 * v + 1] = rounded_to_float(fma_to_odd(s, high_doubles(raw), x[i][2 * v + 1]));
            }
        }
}

VF void exact_steps(const int rows, const float *a, size_t lda, const float *b, size_t k0, size_t k1, exact_sums x)
{
    exact_sums saved;
    v128_t least = wasm_i32x4_const_splat(0);
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < 2 * EXACT_VECTORS; v++) saved[i][v] = x[i][v];
    for (size_t k = k0; k < k1; k++) {
        v128_t y[2 * EXACT_VECTORS];
        UNROLL for (int v = 0; v < EXACT_VECTORS; v++)
        {
            const v128_t raw = wasm_v128_load(b + k * PANEL + v * VF_LANES);
            y[2 * v] = low_doubles(raw), y[2 * v + 1] = high_doubles(raw);
        }
        UNROLL for (int i = 0; i < rows; i++)
        {
            const v128_t s = wasm_f64x2_splat((double)a[i * lda + k]);
            UNROLL for (int v = 0; v < EXACT_VECTORS; v++)
            {
                const v128_t p = wasm_f64x2_add(wasm_f64x2_mul(s, y[2 * v]), x[i][2 * v]);
                const v128_t q = wasm_f64x2_add(wasm_f64x2_mul(s, y[2 * v + 1]), x[i][2 * v + 1]);
                least = wasm_i32x4_min(least, wasm_i32x4_shl(wasm_i32x4_shuffle(p, q, 0, 2, 4, 6), 3));
                x[i][2 * v] = rounded_to_float(p), x[i][2 * v + 1] = rounded_to_float(q);
            }
        }
    }
    if (__builtin_expect(wasm_v128_any_true(wasm_i32x4_eq(least, wasm_i32x4_const_splat(INT32_MIN))), 0)) {
        steps_to_odd(rows, a, lda, b, k0, k1, saved);
        UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < 2 * EXACT_VECTORS; v++) x[i][v] = saved[i][v];
    }
}

/* Sets lanes to all ones that are neither 0 nor of a magnitude within 2^-40 ... 2^40. */
VF v128_t lanes_out_of_range(v128_t a)
{
    const v128_t bits = wasm_v128_and(a, wasm_i32x4_const_splat(0x7fffffff));
    const v128_t outside =
        wasm_u32x4_gt(wasm_i32x4_sub(bits, wasm_i32x4_const_splat((127 - 40) << 23)), wasm_i32x4_const_splat(80 << 23));
    return wasm_v128_and(outside, wasm_i32x4_ne(bits, wasm_i32x4_const_splat(0)));
}

static _Bool all_in_range(const float *x, size_t n)
{
    v128_t out = wasm_i32x4_const_splat(0);
    size_t e = 0;
    for (; e + VF_LANES <= n; e += VF_LANES) out = wasm_v128_or(out, lanes_out_of_range(wasm_v128_load(x + e)));
    if (e < n) out = wasm_v128_or(out, lanes_out_of_range(vf_load_n(x + e, n - e, vf_zero())));
    return !wasm_v128_any_true(out);
}

static _Bool sums_in_range(const gemm_task *t)
{
    for (size_t i = 0; i < t->rows; i++)
        for (size_t p = 0; p < t->panels; p++) {
            if (!all_in_range(t->c + i * t->ldc + p * t->c_panel_stride, PANEL)) return 0;
            if (t->c_scale && !(t->c_scale[i] > 0x1p-20f && t->c_scale[i] < 0x1p20f)) return 0;
        }
    return 1;
}

static _Bool task_in_range(const gemm_task *t)
{
    for (size_t i = 0; i < t->rows; i++)
        if (!all_in_range(t->a + i * t->lda, t->depth)) return 0;
    for (size_t p = 0; p < t->panels; p++)
        if (!all_in_range(t->b + p * t->b_panel_stride, t->depth * PANEL)) return 0;
    return !t->accumulate || sums_in_range(t);
}

/* Applies the epilogue in the order of the contract (core/kernels.h) to the sums of a tile's row. */
VF void finish_row(const gemm_task *t, size_t row, size_t panel, size_t lane, float *sums)
{
    enum { WIDTH = EXACT_VECTORS * VF_LANES };
    const size_t column = panel * PANEL + lane;
    if (t->bias)
        for (size_t l = 0; l < WIDTH; l += VF_LANES)
            vf_store(sums + l, vf_add(vf_load(sums + l), vf_load(t->bias + column + l)));
    if (t->gelu) VF_NAME(gelu_values)(sums, WIDTH);
    float *c = t->c + row * t->ldc + panel * t->c_panel_stride + lane;
    for (size_t l = 0; l < WIDTH; l += VF_LANES) {
        vf y = vf_load(sums + l);
        if (t->outer_column)
            y = vf_add(y,
                       vf_add(vf_broadcast(t->outer_column + row * t->outer_ld), vf_load(t->outer_row + column + l)));
        if (t->residual)
            y = vf_add(y, vf_load(t->residual + row * t->ld_residual + panel * t->residual_panel_stride + lane + l));
        if (t->row_scale) y = vf_mul(y, vf_broadcast(t->row_scale + row));
        vf_store(c + l, y);
    }
}

VF void exact_tile(const int rows, const gemm_task *t, size_t row, size_t panel, size_t lane)
{
    exact_sums x;
    const float *c = t->c + row * t->ldc + panel * t->c_panel_stride + lane;
    const float *a = t->a + row * t->lda, *b = t->b + panel * t->b_panel_stride + lane;
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < EXACT_VECTORS; v++)
    {
        vf start = t->accumulate ? vf_load(c + i * t->ldc + v * VF_LANES) : vf_zero();
        if (t->c_scale) start = vf_mul(start, vf_broadcast(t->c_scale + row + i));
        x[i][2 * v] = low_doubles(start), x[i][2 * v + 1] = high_doubles(start);
    }
    for (size_t k = 0; k < t->depth; k += EXACT_STEPS)
        exact_steps(rows, a, t->lda, b, k, k + EXACT_STEPS < t->depth ? k + EXACT_STEPS : t->depth, x);
    for (int i = 0; i < rows; i++) {
        float sums[EXACT_VECTORS * VF_LANES];
        UNROLL for (int v = 0; v < EXACT_VECTORS; v++)
            vf_store(sums + v * VF_LANES, floats_of_doubles(x[i][2 * v], x[i][2 * v + 1]));
        finish_row(t, row + (size_t)i, panel, lane, sums);
    }
}

static void gemm_f32_exact(const gemm_task *t)
{
    if (!task_in_range(t)) {
        VF_NAME(gemm_f32)(t);
        return;
    }
    for (size_t panel = 0; panel < t->panels; panel++)
        for (size_t lane = 0; lane < PANEL; lane += EXACT_VECTORS * VF_LANES) {
            size_t row = 0;
            for (; row + EXACT_ROWS <= t->rows; row += EXACT_ROWS) exact_tile(EXACT_ROWS, t, row, panel, lane);
            for (; row < t->rows; row++) exact_tile(1, t, row, panel, lane);
        }
}
