/* quantize_*: digits bit for bit, and what they stand for; then kernels with a fault each, which must be caught.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm.h"

#include <math.h>

/* ------------------------------------------------------------------------------------------------------------ walks */

static const problem_values quantized_kinds[] = {VALUES_BELL, VALUES_WIDE, VALUES_WHOLE};

static void walk_rows(test_run *run, integer_format format)
{
    static const size_t depths[] = {1, 3, 15, 16, 17, 63, 64, 65, 100, 128, 511, 768, 1024};
    const size_t most = format == FIFTEEN_BITS ? MAX_U15_DEPTH : MAX_INTEGER_DEPTH;
    for (size_t d = 0; d < sizeof depths / sizeof *depths && depths[d] <= most; d++)
        for (size_t rows = 0; rows <= 35; rows += rows < 18 ? 1 : 8)
            run_problem(run, 20,
                        &(kernel_problem){.rows = rows,
                                          .depth = depths[d],
                                          .options = ((rows + d) % 2 ? WITH_FACTOR : 0) | (rows % 4 == 2 ? DAMAGED : 0),
                                          .values = quantized_kinds[(rows + d) % 3],
                                          .scale = rows % 7 == 6   ? 0x1p-120f
                                                   : rows % 7 == 5 ? 0x1p90f
                                                                   : 1});
}

static void check_quantize_u8(test_run *run) { walk_rows(run, ONE_DIGIT); }
static void check_quantize_u8x2(test_run *run) { walk_rows(run, TWO_DIGITS); }
static void check_quantize_u15(test_run *run) { walk_rows(run, FIFTEEN_BITS); }

CHECKS_OF(quantize_u8, {"quantize_u8/rows", check_quantize_u8})
CHECKS_OF(quantize_u8x2, {"quantize_u8x2/rows", check_quantize_u8x2})
CHECKS_OF(quantize_u15, {"quantize_u15/rows", check_quantize_u15})

static void check_quantize_panels(test_run *run)
{
    static const size_t depths[] = {1, 3, 4, 15, 16, 63, 64, 65, 100, 128, 511, 512, 1024};
    for (size_t d = 0; d < sizeof depths / sizeof *depths; d++)
        for (size_t panels = 1; panels <= 5; panels++)
            run_problem(
                run, 20,
                &(kernel_problem){.depth = depths[d],
                                  .columns = panels * PANEL,
                                  .options = ((panels + d) % 2 ? WITH_FACTOR : 0) | (panels % 4 == 2 ? DAMAGED : 0),
                                  .values = quantized_kinds[(panels + d) % 3],
                                  .scale = panels == 5   ? 0x1p-120f
                                           : panels == 4 ? 0x1p90f
                                                         : 1});
}

CHECKS_OF(quantize_panels_s8, {"quantize_panels_s8/columns", check_quantize_panels})

/* ----------------------------------------------------------------------------------------------------------- faults */

CHANGED_TASK(quantize_u8, quantize_u8_without_factors, quantize_task, changed.factor = NULL)

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

CHANGED_TASK(quantize_panels_s8, quantize_panels_s8_without_factors, quantize_panels_task, changed.factor = NULL)

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

FAULTS_OF(quantize_u8, GROSS_FAULT(quantize_u8, quantize_u8_without_factors),
          GROSS_FAULT(quantize_u8, quantize_u8_forgets_damage))

FAULTS_OF(quantize_u8x2, GROSS_FAULT(quantize_u8x2, quantize_u8x2_without_low_digits))

FAULTS_OF(quantize_u15, GROSS_FAULT(quantize_u15, quantize_u15_counts_to_32768),
          GROSS_FAULT(quantize_u15, quantize_u15_leaves_padding))

FAULTS_OF(quantize_panels_s8, GROSS_FAULT(quantize_panels_s8, quantize_panels_s8_without_factors),
          GROSS_FAULT(quantize_panels_s8, quantize_panels_s8_borrows),
          GROSS_FAULT(quantize_panels_s8, quantize_panels_s8_forgets_sums))
