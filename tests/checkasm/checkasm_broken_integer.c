/* Kernels of low precision with one deliberate fault each (checkasm_broken.c). SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm_broken.h"

#include <math.h>
#include <string.h>

static void quantize_u8_without_factors(const quantize_task *t)
{
    quantize_task changed = *t;
    changed.factor = NULL;
    sound.quantize_u8(&changed);
}

static void quantize_u8_forgets_damage(const quantize_task *t)
{
    sound.quantize_u8(t);
    for (size_t i = 0; i < t->rows; i++)
        if (isnan(t->scale[i])) t->scale[i] = 0;
}

static void quantize_u8x2_without_low_digits(const quantize_task *t)
{
    const size_t depth = (t->depth + DIGIT_TILE_INPUTS - 1) / DIGIT_TILE_INPUTS * DIGIT_TILE_INPUTS;
    sound.quantize_u8x2(t);
    for (size_t i = 0; i < t->rows; i++)
        for (size_t k = 0; k < t->depth; k++) t->digits[t->plane_bytes + digit_at(depth, i, k)] = DIGIT_OFFSET;
}

static void gemm_u8_without_zero_points(const integer_gemm_task *t)
{
    static const int32_t zeros[4096];
    integer_gemm_task changed = *t;
    if (t->rows <= 4096) changed.a_zero = zeros;
    sound.gemm_u8(&changed);
}

/* What maddubs does where two products are more than 16 bits hold. */
static void gemm_u8_saturates(const integer_gemm_task *t)
{
    sound.gemm_u8(t);
    for (size_t p = 0; p < t->panels; p++)
        for (size_t i = 0; i < t->rows; i++)
            for (size_t k = 0; k < t->depth; k += 2) {
                const uint8_t *a = t->a + digit_at(t->depth, i, k);
                const int8_t *b = t->b + p * t->depth * PANEL + k / 4 * (4 * PANEL) + k % 4;
                const int32_t pair = a[0] * b[0] + a[1] * b[1];
                if (pair > INT16_MAX)
                    t->c[i * t->ldc + p * t->c_panel_stride] -=
                        (float)(pair - INT16_MAX) * t->a_scale[i] * t->b_scale[p * PANEL];
            }
}

static void gemm_u8_misses_last_row(const integer_gemm_task *t)
{
    integer_gemm_task changed = *t;
    if (changed.rows) changed.rows--;
    sound.gemm_u8(&changed);
}

/* What signed bytes on both sides do without the sums that correct it. */
static void gemm_u8_takes_signed_bytes(const integer_gemm_task *t)
{
    static int32_t more[4096];
    integer_gemm_task changed = *t;
    for (size_t i = 0; i < t->rows && t->rows <= 4096; i++) more[i] = t->a_zero[i] + DIGIT_OFFSET;
    if (t->rows <= 4096) changed.a_zero = more;
    sound.gemm_u8(&changed);
}

/* What an epilogue that comes late does when nobody waits for its end. */
static void gemm_u8_leaves_last_part(const integer_gemm_task *t)
{
    integer_gemm_task changed = *t;
    changed.rows -= t->rows % 4;
    sound.gemm_u8(&changed);
}

/* What storing whole tiles does. */
static void gemm_u8_writes_whole_tiles(const integer_gemm_task *t)
{
    sound.gemm_u8(t);
    if (t->rows % DIGIT_TILE_ROWS && t->panels) t->c[t->rows * t->ldc] = 0.0f;
}

/* What blocks of two panels do with an odd last one. */
static void gemm_u8x2_repeats_a_panel(const integer_gemm_task *t)
{
    integer_gemm_task last = *t;
    const size_t p = t->panels - 1;
    sound.gemm_u8x2(t);
    if (t->panels % 2 == 0 || p == 0 || t->accumulate || t->c == t->residual) return;
    last.panels = 1;
    last.b_scale += p * PANEL;
    last.b_sum += p * 2 * PANEL;
    last.c += p * t->c_panel_stride;
    last.bias = t->bias ? t->bias + p * PANEL : NULL;
    last.residual = t->residual ? t->residual + p * t->residual_panel_stride : NULL;
    sound.gemm_u8x2(&last);
}

static void gemm_u8x2_without_mixed_products(const integer_gemm_task *t)
{
    static int8_t b[1 << 20];
    const size_t plane = t->depth * PANEL;
    integer_gemm_task changed = *t;
    if (2 * plane * t->panels > sizeof b) return;
    memcpy(b, t->b, 2 * plane * t->panels);
    for (size_t p = 0; p < t->panels; p++) memset(b + (2 * p + 1) * plane, 0, plane);
    changed.b = b;
    sound.gemm_u8x2(&changed);
}

static void gemm_u8x2_without_bias(const integer_gemm_task *t)
{
    integer_gemm_task changed = *t;
    changed.bias = NULL;
    sound.gemm_u8x2(&changed);
}

static void quantize_u15_counts_to_32768(const quantize_task *t)
{
    sound.quantize_u15(t);
    for (size_t i = 0; i < t->rows; i++) t->scale[i] = 0x1p-15f;
}

static void quantize_u15_leaves_padding(const quantize_task *t)
{
    const size_t depth = (t->depth + DIGIT_TILE_INPUTS - 1) / DIGIT_TILE_INPUTS * DIGIT_TILE_INPUTS;
    sound.quantize_u15(t);
    for (size_t i = 0; i < t->rows; i++)
        for (size_t k = t->depth; k < depth; k++) t->digits[digit_at(depth, i, k)] = 1;
}

static void quantize_panels_s8_without_factors(const quantize_panels_task *t)
{
    quantize_panels_task changed = *t;
    changed.factor = NULL;
    sound.quantize_panels_s8(&changed);
}

/* What a borrow between the bytes of a quad does. */
static void quantize_panels_s8_borrows(const quantize_panels_task *t)
{
    sound.quantize_panels_s8(t);
    for (size_t e = 0; e + 1 < (t->depth + 3) / 4 * 4 * PANEL && t->panels; e++)
        if (e % 4 < 3 && t->digits[e] < 0) t->digits[e + 1]--;
}

static void quantize_panels_s8_forgets_sums(const quantize_panels_task *t)
{
    sound.quantize_panels_s8(t);
    if (t->panels) t->sum[PANEL - 1] = 0;
}

static void gemm_u15_without_low_digits(const integer_gemm_task *t)
{
    static uint8_t a[1 << 20];
    const size_t plane = (t->rows + DIGIT_TILE_ROWS - 1) / DIGIT_TILE_ROWS * DIGIT_TILE_ROWS * t->depth;
    integer_gemm_task changed = *t;
    if (2 * plane > sizeof a) return;
    memcpy(a, t->a, plane);
    memset(a + plane, 0, plane);
    changed.a = a;
    changed.a_plane_bytes = plane;
    sound.gemm_u15(&changed);
}

/* What signed bytes on both sides do where only the high digits are corrected. */
static void gemm_u15_corrects_half(const integer_gemm_task *t)
{
    sound.gemm_u15(t);
    for (size_t i = 0; i < t->rows; i++)
        for (size_t p = 0; p < t->panels; p++)
            t->c[i * t->ldc + p * t->c_panel_stride] -=
                (float)(DIGIT_OFFSET * t->b_sum[p * PANEL]) * t->a_scale[i] * t->b_scale[p * PANEL];
}

static void gemm_u15_scales_before_residual(const integer_gemm_task *t)
{
    integer_gemm_task changed = *t;
    if (t->row_scale && t->residual && t->c != t->residual) {
        changed.residual = NULL;
        sound.gemm_u15(&changed);
        for (size_t i = 0; i < t->rows; i++)
            for (size_t j = 0; j < t->panels * PANEL; j++)
                t->c[i * t->ldc + j / PANEL * t->c_panel_stride + j % PANEL] +=
                    t->residual[i * t->ld_residual + j / PANEL * t->residual_panel_stride + j % PANEL];
        return;
    }
    sound.gemm_u15(t);
}

static void gemm_u8_without_outer(const integer_gemm_task *t)
{
    integer_gemm_task changed = *t;
    changed.outer_column = changed.outer_row = NULL;
    sound.gemm_u8(&changed);
}

static void gemm_u8_without_c_scale(const integer_gemm_task *t)
{
    integer_gemm_task changed = *t;
    changed.c_scale = NULL;
    sound.gemm_u8(&changed);
}

#define FAULTS(X)                                                                                                      \
    X(quantize_u8, GROSS, quantize_u8_without_factors)                                                                 \
    X(quantize_u8, GROSS, quantize_u8_forgets_damage)                                                                  \
    X(quantize_u8x2, GROSS, quantize_u8x2_without_low_digits)                                                          \
    X(gemm_u8, GROSS, gemm_u8_without_zero_points)                                                                     \
    X(gemm_u8, GROSS, gemm_u8_saturates)                                                                               \
    X(gemm_u8, GROSS, gemm_u8_misses_last_row)                                                                         \
    X(gemm_u8, GROSS, gemm_u8_takes_signed_bytes)                                                                      \
    X(gemm_u8, GROSS, gemm_u8_leaves_last_part)                                                                        \
    X(gemm_u8, GROSS, gemm_u8_writes_whole_tiles)                                                                      \
    X(gemm_u8x2, GROSS, gemm_u8x2_without_mixed_products)                                                              \
    X(gemm_u8x2, GROSS, gemm_u8x2_repeats_a_panel)                                                                     \
    X(gemm_u8x2, GROSS, gemm_u8x2_without_bias)                                                                        \
    X(quantize_u15, GROSS, quantize_u15_counts_to_32768)                                                               \
    X(quantize_u15, GROSS, quantize_u15_leaves_padding)                                                                \
    X(quantize_panels_s8, GROSS, quantize_panels_s8_without_factors)                                                   \
    X(quantize_panels_s8, GROSS, quantize_panels_s8_borrows)                                                           \
    X(quantize_panels_s8, GROSS, quantize_panels_s8_forgets_sums)                                                      \
    X(gemm_u15, GROSS, gemm_u15_without_low_digits)                                                                    \
    X(gemm_u15, GROSS, gemm_u15_corrects_half)                                                                         \
    X(gemm_u15, GROSS, gemm_u15_scales_before_residual)                                                                \
    X(gemm_u8, GROSS, gemm_u8_without_outer)                                                                           \
    X(gemm_u8, GROSS, gemm_u8_without_c_scale)

FAULTS(PLANT_FAULT)

const broken_kernel integer_faults[] = {FAULTS(FAULT_ENTRY)};
const size_t integer_fault_count = sizeof integer_faults / sizeof *integer_faults;
