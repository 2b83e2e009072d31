/* Implements the kernels of core/integer_kernels.h in plain C: the same formulas, number by number.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

/* -------------------------------------------------------------------------------------------- quantize_u8, quantize_u8x2 */

static float quantized_value(const quantize_task *task, size_t i, size_t k)
{
    if (k >= task->depth) return 0.0f;
    const float x = task->x[i * task->ldx + k];
    return task->factor ? x * task->factor[k] : x;
}

/* Finds the range of a row; poison becomes a NaN if a value is not finite. A NaN is never the lowest or highest. */
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

/* Rounds a number of a row within the range of int: the digits of a NaN do not matter. */
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
            const int32_t first = (q + 64 + 128 * 128) / 128 - 128; /* quotient rounded down, whatever the sign of q */
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

/* Three digits share one 64-bit word, 21 bits each, those of B in reverse: with X = 2^21
 *
 *     (a0 + a1 X + a2 X^2) (b2 + b1 X + b0 X^2) = ... + (a0 b0 + a1 b1 + a2 b2) X^2 + ...   mod 2^64
 *
 * so one multiplication computes three products and their sum. Eight such words add up before a lane is full: 8 * 3 *
 * 255^2 < 2^21. Terms above X^2 overflow at the top or are masked. B is stored as b + 128, which is not negative, and
 * 128 times the sum of A is subtracted again. All of it is exact, so the order changes nothing. The three digits of a
 * word are the same input of three neighbouring tiles, of which the last chunk may lack some. */
enum { LANE_BITS = 21, LANES = 3, LANE_WORDS = 8, LANE_ROWS = 32, LANE_PART = 8, CHUNK_WORDS = DIGIT_TILE_INPUTS };

/* Packs the inputs of B's panel from `first` on. */
static void pack_lanes_b(uint64_t packed[CHUNK_WORDS][PANEL], const int8_t *b, size_t first, size_t tiles)
{
    memset(packed, 0, CHUNK_WORDS * sizeof packed[0]);
    for (size_t tile = 0; tile < tiles; tile++) {
        const unsigned shift = (unsigned)(LANES - 1 - tile) * LANE_BITS;
        const int8_t *digits = b + (first + tile * CHUNK_WORDS) * PANEL;
        for (size_t w = 0; w < CHUNK_WORDS; w++)
            for (size_t l = 0; l < PANEL; l++)
                packed[w][l] |= (uint64_t)(digits[w / 4 * (4 * PANEL) + 4 * l + w % 4] + 128) << shift;
    }
}

/* Packs the inputs of row i of A in their order; returns the sum of its digits. */
static uint32_t pack_lanes_a(uint64_t packed[CHUNK_WORDS], const integer_gemm_task *task, const uint8_t *a, size_t i,
                             size_t first, size_t tiles)
{
    static const uint8_t nothing[CHUNK_WORDS];
    const uint8_t *digits[LANES];
    uint32_t sum = 0;
    for (size_t tile = 0; tile < LANES; tile++)
        digits[tile] = tile < tiles ? a + digit_at(task->depth, i, first + tile * CHUNK_WORDS) : nothing;
    for (size_t w = 0; w < CHUNK_WORDS; w++) {
        const uint32_t d0 = digits[0][w], d1 = digits[1][w], d2 = digits[2][w];
        packed[w] = d0 | (uint64_t)d1 << LANE_BITS | (uint64_t)d2 << 2 * LANE_BITS;
        sum += d0 + d1 + d2;
    }
    return sum;
}

/* Multiplies LANE_PART outputs, so that their sums stay in registers. */
static void multiply_lanes(uint32_t *sums, const uint64_t a[CHUNK_WORDS], uint64_t b[CHUNK_WORDS][PANEL], size_t output)
{
    const uint32_t lane = (1u << LANE_BITS) - 1;
    for (size_t block = 0; block < CHUNK_WORDS / LANE_WORDS; block++) {
        uint64_t products[LANE_PART] = {0};
        for (size_t w = block * LANE_WORDS; w < (block + 1) * LANE_WORDS; w++)
            for (size_t l = 0; l < LANE_PART; l++) products[l] += a[w] * b[w][output + l];
        for (size_t l = 0; l < LANE_PART; l++)
            sums[output + l] += (uint32_t)(products[l] >> (LANES - 1) * LANE_BITS) & lane;
    }
}

/* Adds the sums of one digit of A's rows [row, row + rows) times one of B's panel, for its 16 outputs. */
static void dot_rows(const integer_gemm_task *task, const uint8_t *a, size_t row, size_t rows, const int8_t *b,
                     int32_t sums[LANE_ROWS][PANEL])
{
    uint64_t packed_a[CHUNK_WORDS], packed_b[CHUNK_WORDS][PANEL];
    for (size_t first = 0; first < task->depth; first += LANES * CHUNK_WORDS) {
        const size_t left = (task->depth - first) / CHUNK_WORDS, tiles = left < LANES ? left : LANES;
        pack_lanes_b(packed_b, b, first, tiles);
        for (size_t i = 0; i < rows; i++) {
            uint32_t dots[PANEL] = {0};
            const uint32_t offset = 128 * pack_lanes_a(packed_a, task, a, row + i, first, tiles);
            for (size_t output = 0; output < PANEL; output += LANE_PART)
                multiply_lanes(dots, packed_a, packed_b, output);
            for (size_t l = 0; l < PANEL; l++) sums[i][l] += (int32_t)(dots[l] - offset);
        }
    }
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

static size_t rows_from(const integer_gemm_task *task, size_t row)
{
    return task->rows - row < LANE_ROWS ? task->rows - row : LANE_ROWS;
}

static void SUFFIXED(gemm_u8)(const integer_gemm_task *task)
{
    integer_gemm_task_assert(task);
    for (size_t p = 0; p < task->panels; p++) {
        for (size_t row = 0; row < task->rows; row += LANE_ROWS) {
            const size_t rows = rows_from(task, row);
            int32_t n[LANE_ROWS][PANEL] = {{0}};
            float x[PANEL];
            dot_rows(task, task->a, row, rows, task->b + p * task->depth * PANEL, n);
            for (size_t i = 0; i < rows; i++) {
                for (size_t l = 0; l < PANEL; l++)
                    x[l] = (float)(n[i][l] - task->a_zero[row + i] * task->b_sum[p * PANEL + l]);
                integer_epilogue(task, row + i, p, x);
            }
        }
    }
}

static void SUFFIXED(gemm_u15)(const integer_gemm_task *task)
{
    integer_gemm_task_assert(task);
    for (size_t p = 0; p < task->panels; p++) {
        const int8_t *b = task->b + p * task->depth * PANEL;
        for (size_t row = 0; row < task->rows; row += LANE_ROWS) {
            const size_t rows = rows_from(task, row);
            int32_t high[LANE_ROWS][PANEL] = {{0}}, low[LANE_ROWS][PANEL] = {{0}};
            float x[PANEL];
            dot_rows(task, task->a, row, rows, b, high);
            dot_rows(task, task->a + task->a_plane_bytes, row, rows, b, low);
            for (size_t i = 0; i < rows; i++) {
                for (size_t l = 0; l < PANEL; l++) x[l] = (float)(high[i][l] * 128 + low[i][l]);
                integer_epilogue(task, row + i, p, x);
            }
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
        for (size_t row = 0; row < task->rows; row += LANE_ROWS) {
            const size_t rows = rows_from(task, row);
            int32_t high[LANE_ROWS][PANEL] = {{0}}, mixed[LANE_ROWS][PANEL] = {{0}};
            float x[PANEL];
            dot_rows(task, task->a, row, rows, high_digits, high);
            dot_rows(task, task->a, row, rows, low_digits, mixed);
            dot_rows(task, task->a + task->a_plane_bytes, row, rows, high_digits, mixed);
            for (size_t i = 0; i < rows; i++) {
                for (size_t l = 0; l < PANEL; l++) {
                    high[i][l] -= DIGIT_OFFSET * sums[l];
                    mixed[i][l] -= DIGIT_OFFSET * sums[PANEL + l];
                    x[l] = fmaf((float)mixed[i][l], 0x1p-7f, (float)high[i][l]);
                }
                integer_epilogue(task, row + i, p, x);
            }
        }
    }
}
