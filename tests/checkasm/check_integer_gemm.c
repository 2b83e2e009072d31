/* gemm_u8, gemm_u8x2, gemm_u15: shapes, depths and epilogues; then kernels with a fault each, which must be caught.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------------ walks */

/* What attention asks of an epilogue, in all combinations. */
static void walk_integer_epilogues(test_run *run)
{
    static const unsigned bits[] = {ACCUMULATE, WITH_C_SCALE, WITH_OUTER, WITH_RESIDUAL, WITH_ROW_SCALE};
    for (unsigned flags = 0; flags < 32; flags++)
        for (size_t rows = 1; rows <= 40; rows += 13) {
            kernel_problem p = {.rows = rows,
                                .depth = DIGIT_TILE_INPUTS * (1 + flags % 3),
                                .columns = (1 + flags % 5) * PANEL,
                                .values = VALUES_BELL};
            for (size_t k = 0; k < sizeof bits / sizeof *bits; k++)
                if (flags >> k & 1) p.options |= bits[k];
            run_problem(run, 6, &p);
        }
}

static void walk_shapes(test_run *run, size_t most_depth)
{
    static const size_t depths[] = {64, 128, 384, 448, 512, 768, 1024};
    for (size_t d = 0; d < sizeof depths / sizeof *depths && depths[d] <= most_depth; d++)
        for (size_t rows = 0; rows <= 34; rows++)
            for (size_t panels = 1; panels <= 7; panels += d ? 3 : 1)
                run_problem(run, d ? 60 : 30,
                            &(kernel_problem){.rows = rows,
                                              .depth = depths[d],
                                              .columns = panels * PANEL,
                                              .options = ((rows + panels) % 2 ? FETCH_NEXT : 0) |
                                                         ((rows + d) % 2 ? WITH_BIAS : 0) |
                                                         (rows % 6 == 5 ? LARGEST : 0),
                                              .values = VALUES_BELL});
}

static void walk_integer(test_run *run, integer_format format)
{
    static const unsigned starts[] = {0, ACCUMULATE, WITH_BIAS};
    const size_t most = format == FIFTEEN_BITS ? MAX_U15_DEPTH : MAX_INTEGER_DEPTH;
    walk_shapes(run, most);
    for (unsigned flags = 0; flags < 16; flags++)
        for (size_t rows = 1; rows <= 50; rows += 7)
            run_problem(run, 6,
                        &(kernel_problem){.rows = rows,
                                          .depth = DIGIT_TILE_INPUTS,
                                          .columns = (1 + rows % 4) * PANEL,
                                          .options = starts[flags % 3] | (flags & 4 ? WITH_GELU : 0) |
                                                     (flags & 8 ? rows % 2 ? WITH_RESIDUAL : RESIDUAL_IN_C : 0),
                                          .values = VALUES_BELL});
    walk_integer_epilogues(run);
    run_problem(run, 1,
                &(kernel_problem){.rows = 100,
                                  .depth = most < 768 ? most : 768,
                                  .columns = 2 * PANEL,
                                  .options = FETCH_NEXT | WITH_BIAS,
                                  .values = VALUES_BELL});
}

static void check_gemm_u8(test_run *run) { walk_integer(run, ONE_DIGIT); }
static void check_gemm_u8x2(test_run *run) { walk_integer(run, TWO_DIGITS); }
static void check_gemm_u15(test_run *run) { walk_integer(run, FIFTEEN_BITS); }

CHECKS_OF(gemm_u8, {"gemm_u8/products", check_gemm_u8})
CHECKS_OF(gemm_u8x2, {"gemm_u8x2/products", check_gemm_u8x2})
CHECKS_OF(gemm_u15, {"gemm_u15/products", check_gemm_u15})

/* ----------------------------------------------------------------------------------------------------------- faults */

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
CHANGED_TASK(gemm_u8, gemm_u8_leaves_last_part, integer_gemm_task, changed.rows -= t->rows % 4)

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

CHANGED_TASK(gemm_u8x2, gemm_u8x2_without_bias, integer_gemm_task, changed.bias = NULL)

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

CHANGED_TASK(gemm_u8, gemm_u8_without_outer, integer_gemm_task, changed.outer_column = changed.outer_row = NULL)
CHANGED_TASK(gemm_u8, gemm_u8_without_c_scale, integer_gemm_task, changed.c_scale = NULL)

FAULTS_OF(gemm_u8, GROSS_FAULT(gemm_u8, gemm_u8_without_zero_points), GROSS_FAULT(gemm_u8, gemm_u8_saturates),
          GROSS_FAULT(gemm_u8, gemm_u8_misses_last_row), GROSS_FAULT(gemm_u8, gemm_u8_takes_signed_bytes),
          GROSS_FAULT(gemm_u8, gemm_u8_leaves_last_part), GROSS_FAULT(gemm_u8, gemm_u8_writes_whole_tiles),
          GROSS_FAULT(gemm_u8, gemm_u8_without_outer), GROSS_FAULT(gemm_u8, gemm_u8_without_c_scale))

FAULTS_OF(gemm_u8x2, GROSS_FAULT(gemm_u8x2, gemm_u8x2_without_mixed_products),
          GROSS_FAULT(gemm_u8x2, gemm_u8x2_repeats_a_panel), GROSS_FAULT(gemm_u8x2, gemm_u8x2_without_bias))

FAULTS_OF(gemm_u15, GROSS_FAULT(gemm_u15, gemm_u15_without_low_digits), GROSS_FAULT(gemm_u15, gemm_u15_corrects_half),
          GROSS_FAULT(gemm_u15, gemm_u15_scales_before_residual))
