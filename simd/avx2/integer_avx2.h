/* Implements gemm_u8, gemm_u8x2 and gemm_u15 on AVX2, which has no exact product of bytes: maddubs saturates at 16
 * bits. So both sides are widened to 16 bits: A with its zero point subtracted, once for 48 rows, and a half panel of B
 * into L1. madd then adds two exact products to a 32-bit lane. For 15 bits, the two planes are joined to one 16-bit
 * number.
 *
 * The other exact method multiplies absolute values by maddubs, with the sign moved to the weights. It reached 129
 * GOP/s where this one reaches 151 (16 rows of 768 x 768, one core of a Zen 4; a Xeon with AMX: 132 and 130 to 157).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

/* Numbers of rows and inputs that are widened at a time: 48 x 768 x 2 bytes of A stay in L2, 384 x 16 x 2 of B in L1.
 */
enum { WIDE_ROWS = 48, WIDE_DEPTH = 384, WIDE_TILE_ROWS = 6 };

#define INTEGER_MAX_ROWS    WIDE_ROWS
#define INTEGER_MAX_VECTORS VECTORS
#include "simd/tmpl/integer_finish_tmpl.h"

/* Widens one digit's inputs of a row, less `zero`, from tiles into [depth]. */
VF void widen_row(const integer_gemm_task *task, const uint8_t *plane, size_t row, int16_t zero, int16_t *wide)
{
    const uint8_t *a = plane + digit_at(task->depth, row, 0);
    for (size_t k = 0; k < task->depth; k += DIGIT_TILE_INPUTS, a += DIGIT_TILE_INPUTS * DIGIT_TILE_ROWS)
        UNROLL for (int e = 0; e < DIGIT_TILE_INPUTS; e += 16)
        {
            const __m256i v = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(a + e)));
            _mm256_storeu_si256((__m256i *)(wide + k + (size_t)e), _mm256_sub_epi16(v, _mm256_set1_epi16(zero)));
        }
}

/* Widens a row of 15 bits, which lies in two planes. */
VF void widen_row_of_planes(const integer_gemm_task *task, size_t row, int16_t *wide)
{
    const uint8_t *a = task->a + digit_at(task->depth, row, 0);
    for (size_t k = 0; k < task->depth; k += DIGIT_TILE_INPUTS, a += DIGIT_TILE_INPUTS * DIGIT_TILE_ROWS)
        UNROLL for (int e = 0; e < DIGIT_TILE_INPUTS; e += 16)
        {
            const __m256i high = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(a + e)));
            const __m256i low = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(a + task->a_plane_bytes + e)));
            _mm256_storeu_si256((__m256i *)(wide + k + (size_t)e), _mm256_add_epi16(_mm256_slli_epi16(high, 7), low));
        }
}

/* Widens quads [16 outputs][4] to pairs [16 outputs][2], first and second pair of each quad apart: [pair][16][2]. */
VF void widen_panel(const int8_t *b, size_t depth, int16_t *wide)
{
    for (size_t k = 0; k < depth; k += 4, b += 4 * PANEL, wide += 4 * PANEL) UNROLL for (int half = 0; half < 2; half++)
        {
            const __m256 first =
                _mm256_castsi256_ps(_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(b + 32 * half))));
            const __m256 second =
                _mm256_castsi256_ps(_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(b + 32 * half + 16))));
            const __m256i even = _mm256_castps_si256(_mm256_shuffle_ps(first, second, 0x88));
            const __m256i odd = _mm256_castps_si256(_mm256_shuffle_ps(first, second, 0xDD));
            _mm256_storeu_si256((__m256i *)(wide + 16 * half), _mm256_permute4x64_epi64(even, 0xD8));
            _mm256_storeu_si256((__m256i *)(wide + 32 + 16 * half), _mm256_permute4x64_epi64(odd, 0xD8));
        }
}

VF vi wide_pair(const int16_t *p)
{
    int32_t pair;
    __builtin_memcpy(&pair, p, sizeof pair);
    return _mm256_set1_epi32(pair);
}
VF vi wide_product(vi sum, vi a, vi b) { return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)); }

/* Computes sums[row][digit][16] += rows x one panel over `depth` inputs. a and its low digits: [row][ld]; b, low:
 * contiguous. */
VF void wide_tile(const int digits, const int rows, const int16_t *a, size_t ld, size_t a_low, const int16_t *b,
                  size_t b_low, size_t depth, int32_t *sums)
{
    vi x[WIDE_TILE_ROWS][2][2];
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int d = 0; d < digits; d++) UNROLL for (int v = 0; v < 2; v++)
        x[i][d][v] = vi_load(sums + (i * digits + d) * PANEL + v * VF_LANES);
    for (size_t k = 0; k < depth; k += 2) {
        vi y[2], z[2];
        UNROLL for (int v = 0; v < 2; v++)
        {
            y[v] = _mm256_loadu_si256((const __m256i *)(b + k * PANEL + (size_t)v * 16));
            if (digits == 2) z[v] = _mm256_loadu_si256((const __m256i *)(b + b_low + k * PANEL + (size_t)v * 16));
        }
        UNROLL for (int i = 0; i < rows; i++)
        {
            const vi s = wide_pair(a + (size_t)i * ld + k);
            UNROLL for (int v = 0; v < 2; v++) x[i][0][v] = wide_product(x[i][0][v], s, y[v]);
            if (digits == 1) continue;
            const vi low = wide_pair(a + a_low + (size_t)i * ld + k);
            UNROLL for (int v = 0; v < 2; v++)
            {
                x[i][1][v] = wide_product(x[i][1][v], s, z[v]);
                x[i][1][v] = wide_product(x[i][1][v], low, y[v]);
            }
        }
    }
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int d = 0; d < digits; d++) UNROLL for (int v = 0; v < 2; v++)
        _mm256_storeu_si256((__m256i *)(sums + (i * digits + d) * PANEL + v * VF_LANES), x[i][d][v]);
}

#define WIDE_CASE(n)                                                                                                   \
    case n:                                                                                                            \
        if (n <= most) wide_tile(digits, n, a_at, task->depth, a_low, b, B_LOW, depth, sums_at);                       \
        break;

/* Computes one panel, rows [first, first + rows) of C; a: those rows, widened. */
VF void wide_panel(const integer_format format, const integer_gemm_task *task, size_t first, size_t rows, size_t panel,
                   const int16_t *a, size_t a_low)
{
    enum { B_LOW = WIDE_DEPTH * PANEL };
    const int digits = FORMAT_DIGITS(format);
    const size_t most = digits == 1 ? WIDE_TILE_ROWS : WIDE_TILE_ROWS / 2, groups = (rows + most - 1) / most;
    const size_t plane = task->depth * PANEL;
    const int8_t *from = task->b + panel * plane * (size_t)digits;
    int16_t b[2 * B_LOW];
    int32_t sums[WIDE_ROWS * 2 * PANEL];
    integer_fetch fetch =
        integer_fetch_of(format, task, panel, 1, groups * ((task->depth + WIDE_DEPTH - 1) / WIDE_DEPTH));
    __builtin_memset(sums, 0, rows * (size_t)digits * PANEL * sizeof *sums);
    for (size_t k = 0; k < task->depth; k += WIDE_DEPTH) {
        const size_t depth = task->depth - k < WIDE_DEPTH ? task->depth - k : WIDE_DEPTH;
        widen_panel(from + k * PANEL, depth, b);
        if (digits == 2) widen_panel(from + plane + k * PANEL, depth, b + B_LOW);
        for (size_t group = 0, row = 0; group < groups; group++) {
            const size_t end = rows * (group + 1) / groups;
            const int16_t *a_at = a + row * task->depth + k;
            int32_t *sums_at = sums + row * (size_t)digits * PANEL;
            integer_fetch_step(&fetch);
            switch (end - row) {
                WIDE_CASE(1) WIDE_CASE(2) WIDE_CASE(3) WIDE_CASE(4) WIDE_CASE(5) WIDE_CASE(6)
            }
            row = end;
        }
    }
    integer_finish(format, DIGITS_LESS_ZERO, 1, task, rows, first, panel, sums);
}

VF void wide_rows(const integer_format format, const integer_gemm_task *task, size_t first, size_t rows)
{
    enum { A_LOW = WIDE_ROWS * MAX_INTEGER_DEPTH };
    int16_t a[2 * A_LOW]; /* This array takes 192 KiB of stack. */
    for (size_t row = 0; row < rows; row++) {
        if (format == FIFTEEN_BITS) {
            widen_row_of_planes(task, first + row, a + row * task->depth);
            continue;
        }
        const int16_t zero = format == ONE_DIGIT ? (int16_t)task->a_zero[first + row] : DIGIT_OFFSET;
        widen_row(task, task->a, first + row, zero, a + row * task->depth);
        if (format == TWO_DIGITS)
            widen_row(task, task->a + task->a_plane_bytes, first + row, zero, a + A_LOW + row * task->depth);
    }
    for (size_t panel = 0; panel < task->panels; panel++) wide_panel(format, task, first, rows, panel, a, A_LOW);
}

VF void wide_all(const integer_format format, const integer_gemm_task *task)
{
    integer_gemm_task_assert(task);
    for (size_t first = 0; first < task->rows; first += WIDE_ROWS)
        wide_rows(format, task, first, task->rows - first < WIDE_ROWS ? task->rows - first : WIDE_ROWS);
}

static void VF_NAME(gemm_u8)(const integer_gemm_task *task) { wide_all(ONE_DIGIT, task); }
static void VF_NAME(gemm_u8x2)(const integer_gemm_task *task) { wide_all(TWO_DIGITS, task); }
static void VF_NAME(gemm_u15)(const integer_gemm_task *task) { wide_all(FIFTEEN_BITS, task); }
