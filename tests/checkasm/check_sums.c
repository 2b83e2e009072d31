/* Sums over rows: gemm_tn_f32, sum_rows_f32, dot_rows_f32, and kernels with a fault each that must be caught.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm.h"

#include <math.h>

/* ------------------------------------------------------------------------------------------------------------ walks */

static void check_gemm_tn_chains(test_run *run)
{
    static const size_t rows[] = {0, 1, 2, 7, 16, 130};
    for (size_t panels = 0; panels <= 5; panels++)
        for (size_t columns = 0; columns <= 26; columns++) /* of A */
            for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
                run_problem(run, 24,
                            &(kernel_problem){.rows = rows[i],
                                              .depth = columns,
                                              .columns = panels * PANEL,
                                              .options = (columns + i) % 2 ? ACCUMULATE : 0,
                                              .values = VALUES_BELL});
}

static void check_gemm_tn_parts(test_run *run)
{
    static const size_t rows[] = {0, 1, 3, 40, ROW_CHUNK - 1, ROW_CHUNK, ROW_CHUNK + 1, 3 * ROW_CHUNK + 5};
    /* Kernels work on blocks of columns of A. */
    static const size_t columns[] = {1, 3, 8, 13, 14, 17, 100, 209};
    for (size_t parts = 1, turn = 0; parts <= MAX_ROW_PARTS; parts *= 2)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            for (size_t panels = 1; panels <= 4; panels++)
                run_problem(run, 8,
                            &(kernel_problem){.rows = rows[i],
                                              .depth = columns[turn++ % (i % 4 ? 5 : 8)],
                                              .columns = panels * PANEL,
                                              .parts = parts,
                                              .options = (i + panels) % 2 ? WITH_SUMS : 0,
                                              .values = VALUES_BELL});
}

CHECKS_OF(gemm_tn_f32, {"gemm_tn_f32/chains", check_gemm_tn_chains}, {"gemm_tn_f32/parts", check_gemm_tn_parts})

static void check_sum_rows(test_run *run)
{
    enum { FEW = 3 * PANEL + 1, MANY = 13 * PANEL, STEP = 13 }; /* kernels work on groups of columns */
    static const size_t rows[] = {0, 1, 5, ROW_CHUNK + 3};
    kernel_problem p = {.values = VALUES_BELL};
    for (p.parts = 1; p.parts <= 16; p.parts *= 2)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            for (p.columns = 0; p.columns <= MANY; p.columns += p.columns < FEW ? 1 : STEP) {
                p.rows = rows[i];
                p.options = (p.columns + i) % 2 ? WITH_PRODUCTS : 0;
                run_problem(run, 24, &p);
            }
}

CHECKS_OF(sum_rows_f32, {"sum_rows_f32/sizes", check_sum_rows})

static void check_dot_rows(test_run *run)
{
    kernel_problem p = {.values = VALUES_BELL};
    for (p.rows = 0; p.rows <= 3; p.rows++)
        for (p.columns = 0; p.columns <= 5 * PANEL + 1; p.columns++) run_problem(run, 12, &p);
}

CHECKS_OF(dot_rows_f32, {"dot_rows_f32/sizes", check_dot_rows})

/* ----------------------------------------------------------------------------------------------------------- faults */

static void gemm_tn_without_a_tree(const gemm_tn_task *t)
{
    gemm_tn_task changed = *t;
    if (t->bounds) changed.rows = t->bounds[t->parts];
    changed.bounds = NULL;
    sound.gemm_tn_f32(&changed);
}

CHANGED_TASK(gemm_tn_f32, gemm_tn_starts_from_zero, gemm_tn_task, changed.accumulate = false)

static void gemm_tn_misses_last_row(const gemm_tn_task *t)
{
    size_t bounds[MAX_ROW_PARTS + 1];
    gemm_tn_task changed = *t;
    if (t->bounds) {
        for (size_t i = 0; i <= t->parts; i++) bounds[i] = t->bounds[i];
        if (bounds[t->parts] > bounds[t->parts - 1]) bounds[t->parts]--;
        changed.bounds = bounds;
    }
    changed.rows -= t->rows > 0;
    sound.gemm_tn_f32(&changed);
}

CHANGED_TASK(sum_rows_f32, sum_rows_without_products, sum_rows_task, changed.b = NULL)

static void dot_rows_in_one_sum(float *y, const float *a, size_t lda, const float *b, size_t ldb, size_t rows, size_t n)
{
    for (size_t i = 0; i < rows; i++) {
        float sum = 0;
        for (size_t e = 0; e < n; e++) sum = fmaf(a[i * lda + e], b[i * ldb + e], sum);
        y[i] = sum;
    }
}

FAULTS_OF(gemm_tn_f32, BITS_FAULT(gemm_tn_f32, gemm_tn_without_a_tree),
          GROSS_FAULT(gemm_tn_f32, gemm_tn_starts_from_zero), GROSS_FAULT(gemm_tn_f32, gemm_tn_misses_last_row))

FAULTS_OF(sum_rows_f32, GROSS_FAULT(sum_rows_f32, sum_rows_without_products))

FAULTS_OF(dot_rows_f32, BITS_FAULT(dot_rows_f32, dot_rows_in_one_sum))
