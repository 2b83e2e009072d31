/* The kernels of core/integer_kernels.h in plain C: the same formulas, number by number. SPDX-License-Identifier: MIT
 */
#ifndef SIMD_SCALAR_INTEGER_SCALAR_H
#define SIMD_SCALAR_INTEGER_SCALAR_H

/* -------------------------------------------------------------------------------------------- quantize_u8, quantize_u8x2 */

static float quantized_value(const quantize_task *task, size_t i, size_t k)
{
    if (k >= task->depth) return 0.0f;
    const float x = task->x[i * task->ldx + k];
    return task->factor ? x * task->factor[k] : x;
}

/* The range of a row; poison becomes a NaN if a value is not finite. A NaN is never the lowest or highest. */
static void find_range(const quantize_task *task, size_t i, float *low, float *high, float *poison)
{
    *low = *high = *poison = 0.0f;
    for (size_t k = 0; k < task->depth; k++) {
        const float v = quantized_value(task, i, k);
        *low = v < *low ? v : *low;
        *high = v > *high ? v : *high;
        *poison = *poison + v * 0.0f;
    }
}

static float inverse_of(float top, float range) { return range >= 0x1p-100f && range < INFINITY ? top / range : 0.0f; }

/* rint of a number of a row, as far as an int goes: what is no number has no digits that matter. */
static int32_t rounded(float v) { return v > -65536.0f && v < 65536.0f ? (int32_t)rintf(v) : 0; }

static void SUFFIXED(quantize_u8)(const quantize_task *task)
{
    const size_t depth = (task->depth + DIGIT_TILE_INPUTS - 1) / DIGIT_TILE_INPUTS * DIGIT_TILE_INPUTS;
    for (size_t i = 0; i < task->rows; i++) {
        float low, high, poison;
        find_range(task, i, &low, &high, &poison);
        const float range = high - low, inverse = inverse_of(255.0f, range);
        task->scale[i] = (inverse > 0 ? range / 255.0f : 0.0f) + poison;
        task->zero[i] = rounded(-low * inverse);
        for (size_t k = 0; k < depth; k++) {
            const int32_t digit = rounded(quantized_value(task, i, k) * inverse) + task->zero[i];
            task->digits[digit_at(depth, i, k)] = (uint8_t)(digit < 0 ? 0 : digit > 255 ? 255 : digit);
        }
    }
}

static void SUFFIXED(quantize_u8x2)(const quantize_task *task)
{
    const size_t depth = (task->depth + DIGIT_TILE_INPUTS - 1) / DIGIT_TILE_INPUTS * DIGIT_TILE_INPUTS;
    for (size_t i = 0; i < task->rows; i++) {
        float low, high, poison;
        find_range(task, i, &low, &high, &poison);
        const float range = high < -low ? -low : high, inverse = inverse_of(16256.0f, range);
        task->scale[i] = (inverse > 0 ? range / 127.0f : 0.0f) + poison;
        for (size_t k = 0; k < depth; k++) {
            const int32_t q = rounded(quantized_value(task, i, k) * inverse);
            const int32_t first = (q + 64 + 128 * 128) / 128 - 128; /* rounded down, whatever the sign of q */
            uint8_t *to = task->digits + digit_at(depth, i, k);
            to[0] = (uint8_t)(first + DIGIT_OFFSET);
            to[task->plane_bytes] = (uint8_t)(q - 128 * first + DIGIT_OFFSET);
        }
    }
}

static void SUFFIXED(quantize_u15)(const quantize_task *task)
{
    const size_t depth = (task->depth + DIGIT_TILE_INPUTS - 1) / DIGIT_TILE_INPUTS * DIGIT_TILE_INPUTS;
    for (size_t i = 0; i < task->rows; i++) {
        task->scale[i] = 1.0f / U15_TOP;
        for (size_t k = 0; k < depth; k++) {
            const int32_t q = rounded(quantized_value(task, i, k) * U15_TOP);
            uint8_t *to = task->digits + digit_at(depth, i, k);
            to[0] = (uint8_t)(q / 128);
            to[task->plane_bytes] = (uint8_t)(q % 128);
        }
    }
}

static float column_value(const quantize_panels_task *task, const float *x, size_t k)
{
    return task->factor ? x[k * PANEL] * task->factor[k] : x[k * PANEL];
}

static void SUFFIXED(quantize_panels_s8)(const quantize_panels_task *task)
{
    const size_t depth = (task->depth + DIGIT_TILE_INPUTS - 1) / DIGIT_TILE_INPUTS * DIGIT_TILE_INPUTS;
    for (size_t j = 0; j < task->panels * PANEL; j++) {
        const float *x = task->x + j / PANEL * task->x_panel_stride + j % PANEL;
        int8_t *to = task->digits + j / PANEL * depth * PANEL + j % PANEL * 4;
        float largest = 0.0f, poison = 0.0f;
        for (size_t k = 0; k < task->depth; k++) {
            const float v = column_value(task, x, k), size = fabsf(v);
            largest = size > largest ? size : largest;
            poison = poison + v * 0.0f;
        }
        const float inverse = inverse_of(127.0f, largest);
        task->scale[j] = (inverse > 0 ? largest / 127.0f : 0.0f) + poison;
        task->sum[j] = 0;
        for (size_t k = 0; k < depth; k++) {
            const int32_t digit = k < task->depth ? rounded(column_value(task, x, k) * inverse) : 0;
            to[k / 4 * (4 * PANEL) + k % 4] = (int8_t)digit;
            task->sum[j] += digit;
        }
    }
}

/* ------------------------------------------------------------------------------------------ gemm_u8, gemm_u8x2, gemm_u15 */

/* Sum of one digit of A's row i times one of B's panel, for its 16 outputs. */
static void dot_quads(const integer_gemm_task *task, const uint8_t *a, size_t i, const int8_t *b, int32_t sums[PANEL])
{
    for (size_t k = 0; k < task->depth; k++)
        for (size_t l = 0; l < PANEL; l++)
            sums[l] += a[digit_at(task->depth, i, k)] * b[k / 4 * (4 * PANEL) + l * 4 + k % 4];
}

static void integer_epilogue(const integer_gemm_task *task, size_t i, size_t p, const float x[PANEL])
{
    float *c = task->c + i * task->ldc + p * task->c_panel_stride;
    for (size_t l = 0; l < PANEL; l++) {
        float start = task->accumulate ? c[l] : task->bias ? task->bias[p * PANEL + l] : 0.0f;
        if (task->c_scale) start = start * task->c_scale[i];
        float y = fmaf(x[l], task->a_scale[i] * task->b_scale[p * PANEL + l], start);
        if (task->gelu) y = scalar_gelu(y);
        if (task->outer_column) y = y + (task->outer_column[i * task->outer_ld] + task->outer_row[p * PANEL + l]);
        if (task->residual) y = y + task->residual[i * task->ld_residual + p * task->residual_panel_stride + l];
        if (task->row_scale) y = y * task->row_scale[i];
        c[l] = y;
    }
}

static void SUFFIXED(gemm_u8)(const integer_gemm_task *task)
{
    integer_gemm_task_assert(task);
    for (size_t p = 0; p < task->panels; p++) {
        for (size_t i = 0; i < task->rows; i++) {
            int32_t n[PANEL] = {0};
            float x[PANEL];
            dot_quads(task, task->a, i, task->b + p * task->depth * PANEL, n);
            for (size_t l = 0; l < PANEL; l++) x[l] = (float)(n[l] - task->a_zero[i] * task->b_sum[p * PANEL + l]);
            integer_epilogue(task, i, p, x);
        }
    }
}

static void SUFFIXED(gemm_u15)(const integer_gemm_task *task)
{
    integer_gemm_task_assert(task);
    for (size_t p = 0; p < task->panels; p++) {
        for (size_t i = 0; i < task->rows; i++) {
            const int8_t *b = task->b + p * task->depth * PANEL;
            int32_t high[PANEL] = {0}, low[PANEL] = {0};
            float x[PANEL];
            dot_quads(task, task->a, i, b, high);
            dot_quads(task, task->a + task->a_plane_bytes, i, b, low);
            for (size_t l = 0; l < PANEL; l++) x[l] = (float)(high[l] * 128 + low[l]);
            integer_epilogue(task, i, p, x);
        }
    }
}

static void SUFFIXED(gemm_u8x2)(const integer_gemm_task *task)
{
    integer_gemm_task_assert(task);
    const size_t plane = task->depth * PANEL;
    for (size_t p = 0; p < task->panels; p++) {
        const int8_t *high_digits = task->b + 2 * p * plane, *low_digits = high_digits + plane;
        const int32_t *sums = task->b_sum + 2 * p * PANEL;
        for (size_t i = 0; i < task->rows; i++) {
            int32_t high[PANEL] = {0}, mixed[PANEL] = {0};
            float x[PANEL];
            dot_quads(task, task->a, i, high_digits, high);
            dot_quads(task, task->a, i, low_digits, mixed);
            dot_quads(task, task->a + task->a_plane_bytes, i, high_digits, mixed);
            for (size_t l = 0; l < PANEL; l++) {
                high[l] -= DIGIT_OFFSET * sums[l];
                mixed[l] -= DIGIT_OFFSET * sums[PANEL + l];
                x[l] = fmaf((float)mixed[l], 0x1p-7f, (float)high[l]);
            }
            integer_epilogue(task, i, p, x);
        }
    }
}

#endif
