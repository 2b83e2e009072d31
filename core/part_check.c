/* Runs a small problem of each integer product, with an edge in every direction, through two tables.
 *
 * SPDX-License-Identifier: MIT */
#include "core/part_check.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/numbers.h"

/* The problem has rows beyond a tile, two tiles of inputs, and a number of panels that no unrolled loop divides. */
enum { ROWS = 19, DEPTH = 2 * DIGIT_TILE_INPUTS, PANELS = 3, WIDTH = PANELS * PANEL };
enum { PLANE_BYTES = 2 * DIGIT_TILE_ROWS * DEPTH };

typedef struct small_problem {
    _Alignas(64) uint8_t a[2 * PLANE_BYTES];
    _Alignas(64) int8_t b[PANELS * 2 * DEPTH * PANEL];
    _Alignas(64) float b_scale[WIDTH], bias[WIDTH], a_scale[ROWS], results[2][ROWS * WIDTH];
    int32_t a_zero[ROWS], b_sum[2 * WIDTH];
} small_problem;

/* Draws all byte values that the format has: a high digit with 128 added is never 0, and low digits have 7 bits. */
static void part_check_draw(small_problem *p, integer_format format)
{
    uint64_t state = 1 + format;
    for (size_t k = 0; k < PLANE_BYTES; k++) {
        const uint64_t drawn = random_next(&state);
        p->a[k] = (uint8_t)(format == TWO_DIGITS ? 1 + drawn % 255 : drawn);
        p->a[PLANE_BYTES + k] = (uint8_t)((format == TWO_DIGITS ? 64 : 0) + (drawn >> 32) % 128);
    }
    for (size_t k = 0; k < sizeof p->b; k++) {
        const bool low = format == TWO_DIGITS && k / (DEPTH * PANEL) % 2;
        p->b[k] = (int8_t)(low ? (int)(random_next(&state) % 128) - 64 : (int)(random_next(&state) % 255) - 127);
    }
    for (size_t i = 0; i < ROWS; i++) {
        p->a_scale[i] = 0x1p-7f + (float)i * 0x1p-9f;
        p->a_zero[i] = (int32_t)(random_next(&state) % 256);
    }
    for (size_t j = 0; j < WIDTH; j++) {
        p->b_scale[j] = 0x1p-6f - (float)j * 0x1p-13f;
        p->bias[j] = (float)(random_next(&state) % 1000) - 500;
    }
}

/* Computes the sums of the weights' digits as the contract of each format defines them. */
static void sum_weights(small_problem *p, integer_format format)
{
    const size_t digits = FORMAT_DIGITS(format), bytes = DEPTH * PANEL;
    memset(p->b_sum, 0, sizeof p->b_sum);
    for (size_t k = 0; k < PANELS * digits * bytes; k++) {
        const size_t panel = k / (digits * bytes), digit = k / bytes % digits, lane = k % (4 * PANEL) / 4;
        int32_t *sums = p->b_sum + panel * digits * PANEL;
        if (digit == 0) sums[lane] += p->b[k];
        if (digits == 2) sums[PANEL + lane] += p->b[k];
    }
}

static void multiply(small_problem *p, void (*product)(const integer_gemm_task *task), float *result, bool gelu)
{
    const integer_gemm_task task = {.rows = ROWS,
                                    .depth = DEPTH,
                                    .panels = PANELS,
                                    .a = p->a,
                                    .a_plane_bytes = PLANE_BYTES,
                                    .a_scale = p->a_scale,
                                    .a_zero = p->a_zero,
                                    .b = p->b,
                                    .b_scale = p->b_scale,
                                    .b_sum = p->b_sum,
                                    .c = result,
                                    .ldc = WIDTH,
                                    .c_panel_stride = PANEL,
                                    .bias = p->bias,
                                    .gelu = gelu};
    memset(result, 0, sizeof p->results[0]);
    product(&task);
}

static bool agrees(small_problem *p, const kernels *scalar, const kernels *part)
{
    static const integer_format formats[] = {ONE_DIGIT, TWO_DIGITS, FIFTEEN_BITS};
    size_t k = 0;
#define X(name, parameters)                                                                                            \
    part_check_draw(p, formats[k]);                                                                                    \
    sum_weights(p, formats[k]);                                                                                        \
    multiply(p, scalar->name, p->results[0], k == 0);                                                                  \
    multiply(p, part->name, p->results[1], k == 0);                                                                    \
    if (memcmp(p->results[0], p->results[1], sizeof p->results[0]) != 0) return false;                                 \
    k++;
    INTEGER_GEMM_KERNEL_LIST(X)
#undef X
    return true;
}

bool part_is_right(part_verdict *verdict, void (*init)(kernels *table))
{
    unsigned char known = atomic_load_explicit(verdict, memory_order_relaxed);
    if (known == PART_UNKNOWN) {
        small_problem *p = aligned_alloc(64, sizeof *p);
        kernels scalar = {0}, part = {0};
        if (!p) return false;
        memset(p, 0, sizeof *p);
        kernels_init_scalar(&scalar);
        part = scalar;
        init(&part);
        known = agrees(p, &scalar, &part) ? PART_RIGHT : PART_WRONG;
        free(p);
        atomic_store_explicit(verdict, known, memory_order_relaxed);
    }
    return known == PART_RIGHT;
}
