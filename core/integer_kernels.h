/* Kernels of low precision: they quantize rows of float32 to integers, and convert products of integers back to
 * float32.
 *
 * Sums of integers are exact, so nothing here depends on their order; where floats are computed from them, the contract
 * fixes the order, as in kernels.h. A format is named by the digits of a value:
 *
 *   one digit    activations u8 with a zero point, weights in -127 ... 127. int8 precision uses it
 *   two digits   v = 128 high + low, 15 bits with the sign; high in -127 ... 127, low in -64 ... 63. An activation's
 *                digits are stored with 128 added, as u8; a weight's as s8. The product of both low digits is left out:
 *                it is below 2^-14 of a product. int16 precision uses it
 *   15 bits      probabilities, v = 128 high + low without a sign: high in 0 ... 255, low in 0 ... 127, each a plane of
 *                u8, times weights of one digit. Attention of int8 precision sums values with it
 *
 * Layouts (a quad is four neighbouring inputs, which one 32-bit lane multiplies):
 *
 *   activations  [digit][row / 16][input / 64][row % 16][input % 64]   16 rows of 64 bytes: a tile of AMX
 *   weights      [panel][digit][input / 4][16 outputs][4]              64 bytes a quad: one vector, or 1/16 of a tile
 *
 * Inputs are padded to a multiple of 64; the weights there are zeros, so activations may hold any values there, but
 * they are written.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DIGIT_TILE_ROWS = 16,
    DIGIT_TILE_INPUTS = 64,
    DIGIT_OFFSET = 128,       /* the number added to an activation's digit where there are two */
    MAX_INTEGER_DEPTH = 1024, /* inputs of a call: |high| <= 127 127 1024 < 2^24 is exact as a float */
    U15_TOP = 32767,          /* the value of 1 in 15 bits */
    MAX_U15_DEPTH = 512,      /* the most of these times +-127 that a sum of 32 bits holds */
};
_Static_assert((int64_t)U15_TOP * 127 * MAX_U15_DEPTH <= INT32_MAX, "sums of 15 bits are exact");

/* Planes are the bytes of a number of A; digits are the bytes of a number of B. */
typedef enum integer_format { ONE_DIGIT, TWO_DIGITS, FIFTEEN_BITS } integer_format;
#define FORMAT_PLANES(format) ((format) == ONE_DIGIT ? 1 : 2)
#define FORMAT_DIGITS(format) ((format) == TWO_DIGITS ? 2 : 1)

/* Returns the offset of row i, input k in a plane of tiles; depth is a multiple of 64. */
static inline size_t digit_at(size_t depth, size_t i, size_t k)
{
    return (i / DIGIT_TILE_ROWS * depth + k / DIGIT_TILE_INPUTS * DIGIT_TILE_INPUTS) * DIGIT_TILE_ROWS +
           i % DIGIT_TILE_ROWS * DIGIT_TILE_INPUTS + k % DIGIT_TILE_INPUTS;
}

/* Quantizes rows of x, with v[k] = x[i ldx + k] factor[k] (v = x without factor), a row at a time:
 *
 *   one digit    low = min(0, v),  high = max(0, v),  range = high - low
 *                inverse = 255 / range,  scale = range / 255;  both 0 unless 2^-100 <= range < inf
 *                zero[i] = rint(-low inverse)
 *                digit   = min(255, max(0, rint(v inverse) + zero[i]))
 *   two digits   range = max |v|
 *                inverse = 16256 / range,  scale = range / 127;  both 0 as above
 *                q = rint(v inverse);  high = (q + 64) >> 7,  low = q - 128 high;  both stored with 128 added
 *
 *   scale[i] = scale + sum of 0 v[k]: a NaN if any v is infinite or NaN. The digits of such a row are unspecified.
 *
 * rint rounds to nearest, ties to even. Inputs from `depth` to the next multiple of 64 get the digit of 0. Missing rows
 * of the last tile stay unchanged. 1 <= depth <= MAX_INTEGER_DEPTH. |v - (digit - zero) scale| is at most half a scale
 * and some ULP; of two digits, |v - (128 high + low) scale / 128| <= scale / 256 and some ULP.
 *
 *   15 bits      0 <= x <= 1, no factors:  q = rint(x 32767);  high = q >> 7,  low = q - 128 high;  scale[i] = 1 /
 * 32767 depth <= MAX_U15_DEPTH; |x - (128 high + low) scale| <= scale / 2 and some ULP. Other x, digits free */
typedef struct quantize_task {
    size_t rows, depth;
    const float *x;
    size_t ldx;
    const float *factor; /* [depth] or NULL */
    uint8_t *digits;     /* tiles; of two planes the high digits */
    size_t plane_bytes;  /* from a high to its low digit */
    float *scale;        /* [rows] */
    int32_t *zero;       /* [rows]; of two planes not touched */
} quantize_task;

/* Quantizes panels of 16 columns (in gemm_f32's layout) to weights of one digit, a column j = 16 p + l at a time, with
 * v[k] = x[p x_panel_stride + 16 k + l] factor[k] (without the factor if there is none):
 *
 *     largest = max |v|
 *     inverse = 127 / largest,  scale = largest / 127;  both 0 unless 2^-100 <= largest < inf
 *     digit   = rint(v inverse),  sum[j] = sum of the digits
 *     scale[j] = scale + sum of 0 v[k]: a NaN if any v is infinite or no number; digits and sum are then free
 *
 * Digits of inputs from `depth` to the next multiple of 64 are 0. 1 <= depth <= MAX_INTEGER_DEPTH. */
typedef struct quantize_panels_task {
    size_t panels, depth;
    const float *x;
    size_t x_panel_stride;
    const float *factor; /* [depth] or NULL */
    int8_t *digits;      /* [panels][depth / 4, rounded up to whole tiles][16][4] */
    float *scale;        /* [panels][16] */
    int32_t *sum;        /* [panels][16] */
} quantize_panels_task;

/* C = epilogue(A B) of integers:
 *
 *   for every row i < rows, panel p < panels, lane l < 16, with j = 16 p + l
 *       one digit    n = sum over k of a(i, k) b(k, j) - a_zero[i] b_sum[j];  x = (float)n
 *                    b_sum[j] = sum b(k, j)
 *       two digits   high  = sum a1 b1 - 128 sum b1,  mixed = sum (a1 b2 + a2 b1) - 128 sum (b1 + b2)
 *                    x = fma((float)mixed, 2^-7, (float)high)
 *                    b_sum[32 p + l] = sum b1,  b_sum[32 p + 16 + l] = sum (b1 + b2)
 *       15 bits      n = sum over k of (128 high(i, k) + low(i, k)) b(k, j);  x = (float)n;  b_sum as of one digit
 *       y = c if accumulate, or c * c_scale[i] if c_scale too, else bias, else 0
 *       y = fma(x, a_scale[i] b_scale[j], y)
 *       if gelu:     y = gelu(y)
 *       if outer_column: y = y + (outer_column[i outer_ld] + outer_row[p 16 + l])
 *       if residual: y = y + residual[i ld_residual + p residual_panel_stride + l]
 *       if row_scale: y = y * row_scale[i]
 *       c[i ldc + p c_panel_stride + l] = y
 *
 * (float) of an integer rounds to nearest even. C may be the residual. a begins at a tile. next: as in gemm_task. */
typedef struct integer_gemm_task {
    size_t rows, depth, panels; /* depth: a multiple of 64, at most MAX_INTEGER_DEPTH; of 15 bits, MAX_U15_DEPTH */
    const uint8_t *a;
    size_t a_plane_bytes;
    const float *a_scale;
    const int32_t *a_zero; /* not read with two planes */
    const int8_t *b;
    const float *b_scale; /* [panels][16] */
    const int32_t *b_sum; /* [panels][digits][16] */
    float *c;
    size_t ldc, c_panel_stride;
    const float *c_scale; /* [rows] or NULL */
    const float *bias;    /* [panels][16] or NULL */
    const float *outer_column;
    size_t outer_ld;
    const float *outer_row; /* [panels][16] */
    const float *residual;
    size_t ld_residual, residual_panel_stride;
    const float *row_scale; /* [rows] or NULL */
    bool accumulate, gelu;
    const void *next;
} integer_gemm_task;

static inline void integer_gemm_task_assert(const integer_gemm_task *task)
{
    assert(task->depth % DIGIT_TILE_INPUTS == 0 && task->depth <= MAX_INTEGER_DEPTH);
    assert(!task->accumulate || !task->bias);
    assert(!task->c_scale || task->accumulate);
    assert(!task->outer_column == !task->outer_row);
    (void)task;
}

/* quantize_u8 and gemm_u8 have one digit; quantize_u8x2 and gemm_u8x2 two; quantize_u15 and gemm_u15 15 bits. Every
 * vector tier quantizes; products depend on more than a vector length, and have separate tiers. */
#define QUANTIZE_KERNEL_LIST(X)                                                                                        \
    X(quantize_u8, (const quantize_task *task))                                                                        \
    X(quantize_u8x2, (const quantize_task *task))                                                                      \
    X(quantize_u15, (const quantize_task *task))                                                                       \
    X(quantize_panels_s8, (const quantize_panels_task *task))

#define INTEGER_GEMM_KERNEL_LIST(X)                                                                                    \
    X(gemm_u8, (const integer_gemm_task *task))                                                                        \
    X(gemm_u8x2, (const integer_gemm_task *task))                                                                      \
    X(gemm_u15, (const integer_gemm_task *task))
