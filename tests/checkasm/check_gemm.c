/* gemm_f32 and pack_panels_f32: products of every shape around the register tiles, every combination of epilogues, and
 * numbers at the limits; then kernels with a fault each, which these cases must catch.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------------ walks */

static size_t most_rows(const test_run *run)
{
    const size_t rows = 2 * run->tested->tile_rows + 1;
    return rows < 13 ? 13 : rows;
}

static size_t most_panels(const test_run *run)
{
    const size_t panels = 2 * run->tested->tile_panels + 1;
    return panels < 5 ? 5 : panels;
}

static unsigned start_of(size_t choice)
{
    static const unsigned starts[] = {0, ACCUMULATE, ACCUMULATE | WITH_C_SCALE};
    return starts[choice % 3];
}

/* All edges of the tiles at depths around every unrolling; then all depths at a few edges; then the model's own depth.
 */
static void check_products(test_run *run)
{
    static const size_t depths[] = {0, 1, 2, 3, 4, 7, 8, 16, 17, 64};
    for (size_t d = 0; d < sizeof depths / sizeof *depths; d++)
        for (size_t rows = 0; rows <= most_rows(run); rows++)
            for (size_t panels = 0; panels <= most_panels(run); panels++)
                run_problem(
                    run, 60,
                    &(kernel_problem){.rows = rows,
                                      .depth = depths[d],
                                      .columns = panels * PANEL,
                                      .options = start_of(rows + panels + d) | ((rows + panels) % 2 ? FETCH_NEXT : 0),
                                      .values = (rows + d) % 3 == 0 ? VALUES_WHOLE : VALUES_BELL});
    for (size_t depth = 0; depth <= 70; depth++)
        for (size_t rows = 1; rows <= run->tested->tile_rows + 1; rows += 1 + run->tested->tile_rows / 2)
            for (size_t panels = 1; panels <= 3; panels++)
                run_problem(
                    run, 30,
                    &(kernel_problem){.rows = rows, .depth = depth, .columns = panels * PANEL, .values = VALUES_WIDE});
    for (size_t rows = 1; rows <= most_rows(run); rows += 4)
        for (size_t panels = 1; panels <= most_panels(run); panels += 2)
            run_problem(run, 40,
                        &(kernel_problem){.rows = rows,
                                          .depth = 768,
                                          .columns = panels * PANEL,
                                          .options = WITH_BIAS | (rows > 1 ? FETCH_NEXT : 0),
                                          .values = VALUES_BELL});
    /* So many row groups, of at most 12 rows in any tier, that there is less than a byte to fetch for each. */
    run_problem(run, 1,
                &(kernel_problem){.rows = (8 * PANEL * sizeof(float) + 1) * 12,
                                  .depth = 17,
                                  .columns = PANEL,
                                  .options = FETCH_NEXT,
                                  .values = VALUES_BELL});
}

static void check_epilogues(test_run *run)
{
    enum { STARTS = 3, RESIDUALS = 3, OTHERS = 32 };
    static const size_t shapes[][3] = {{1, 5, 1}, {7, 9, 3}, {14, 33, 2}, {25, 0, 4}};
    static const unsigned residuals[RESIDUALS] = {0, WITH_RESIDUAL, RESIDUAL_IN_C};
    static const unsigned others[] = {WITH_BIAS, WITH_GELU, WITH_OUTER, WITH_ROW_SCALE, FETCH_NEXT};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (unsigned choice = 0; choice < STARTS * RESIDUALS * OTHERS; choice++) {
            unsigned options = start_of(choice) | residuals[choice / STARTS % RESIDUALS];
            for (size_t k = 0; k < sizeof others / sizeof *others; k++)
                if (choice / (STARTS * RESIDUALS) >> k & 1) options |= others[k];
            run_problem(run, 12,
                        &(kernel_problem){.rows = shapes[s][0],
                                          .depth = shapes[s][1],
                                          .columns = shapes[s][2] * PANEL,
                                          .options = options,
                                          .values = VALUES_BELL});
        }
}

static void scale_array(problem_array *array, float by)
{
    for (size_t e = 0; e < array->words; e++) array->initial[e] *= by;
}

/* A product of 2^-140 is kept, not flushed to zero. */
static void plant_subnormals(kernel_problem *p, const void *nothing)
{
    (void)nothing;
    scale_array(run_array(p, "a"), 0x1p-72f);
    scale_array(run_array(p, "b"), 0x1p-70f);
}

/* A NaN reaches its row and an infinity its column; the rest stays clean. */
static void plant_nan(kernel_problem *p, const void *nothing)
{
    problem_array *a = run_array(p, "a"), *b = run_array(p, "b");
    (void)nothing;
    a->initial[draw_below(p, p->rows) * a->ld + draw_below(p, p->depth)] = NAN;
    b->initial[draw_below(p, p->depth) * PANEL + 3] = -INFINITY;
}

static void plant_zeros(kernel_problem *p, const void *nothing)
{
    problem_array *a = run_array(p, "a");
    (void)nothing;
    for (size_t e = 0; e < a->words; e++)
        if (float_bits(a->initial[e]) != POISON) a->initial[e] = draw_flag(p) ? 0.0f : -0.0f;
}

static void check_special(test_run *run)
{
    static const planted_values plants[] = {{"subnormals", plant_subnormals, NULL},
                                            {"a NaN and an infinity", plant_nan, NULL},
                                            {"zeros of both signs", plant_zeros, NULL}};
    for (size_t s = 0; s < sizeof plants / sizeof *plants; s++)
        for (size_t rows = 1; rows <= most_rows(run); rows += 3)
            for (unsigned flags = 0; flags < 4; flags++) {
                const kernel_problem p = {.rows = rows,
                                          .depth = 11,
                                          .columns = (1 + flags % 3) * PANEL,
                                          .options = (flags & 1 ? WITH_GELU : 0) | (flags & 2 ? RESIDUAL_IN_C : 0),
                                          .values = VALUES_WHOLE};
                run_planted(run, 8, &p, &plants[s], NULL);
            }
}

CHECKS_OF(gemm_f32, {"gemm_f32/products", check_products}, {"gemm_f32/epilogues", check_epilogues},
          {"gemm_f32/special", check_special})

static void check_pack(test_run *run)
{
    static const size_t long_depths[] = {64, 70, 127, 768};
    kernel_problem p = {.values = VALUES_BELL};
    for (p.rows = 0; p.rows <= 50; p.rows++)
        for (p.depth = 0; p.depth <= 37; p.depth++) run_problem(run, 60, &p);
    for (size_t i = 0; i < sizeof long_depths / sizeof *long_depths; i++)
        for (p.rows = 1; p.rows <= 33; p.rows += 4) {
            p.depth = long_depths[i];
            run_problem(run, 40, &p);
        }
}

CHECKS_OF(pack_panels_f32, {"pack_panels_f32/sizes", check_pack})

/* ----------------------------------------------------------------------------------------------------------- faults */

static float *c_at(const gemm_task *t, size_t i, size_t p) { return t->c + i * t->ldc + p * t->c_panel_stride; }

static bool is_empty(const gemm_task *t) { return t->rows == 0 || t->panels == 0; }

static void gemm_reads_behind_row(const gemm_task *t)
{
    sound.gemm_f32(t);
    if (!is_empty(t)) read_float(t->a + (t->rows - 1) * t->lda + t->depth);
}

static void gemm_reads_in_front(const gemm_task *t)
{
    sound.gemm_f32(t);
    if (!is_empty(t) && t->depth) read_float(t->b - 1);
}

static void gemm_writes_17th_lane(const gemm_task *t)
{
    sound.gemm_f32(t);
    if (!is_empty(t)) c_at(t, t->rows - 1, t->panels - 1)[PANEL] = 0.0f;
}

static void gemm_misses_last_lane(const gemm_task *t)
{
    float kept = 0;
    if (!is_empty(t)) memcpy(&kept, c_at(t, t->rows - 1, t->panels - 1) + PANEL - 1, sizeof kept);
    sound.gemm_f32(t);
    if (!is_empty(t)) memcpy(c_at(t, t->rows - 1, t->panels - 1) + PANEL - 1, &kept, sizeof kept);
}

/* The rounding of each product and sum by itself, and two chains in place of one: right but for the last bits. */
static void gemm_in_other_order(const gemm_task *t, bool fused, size_t chains)
{
    if (t->accumulate || t->bias || t->gelu || t->outer_column || t->residual || t->row_scale) {
        sound.gemm_f32(t);
        return;
    }
    for (size_t p = 0; p < t->panels; p++)
        for (size_t i = 0; i < t->rows; i++)
            for (size_t l = 0; l < PANEL; l++) {
                float x[2] = {0, 0};
                for (size_t k = 0; k < t->depth; k++) {
                    const float a = t->a[i * t->lda + k], b = t->b[p * t->b_panel_stride + k * PANEL + l];
                    x[k % chains] = fused ? fmaf(a, b, x[k % chains]) : a * b + x[k % chains];
                }
                c_at(t, i, p)[l] = x[0] + x[1];
            }
}
static void gemm_not_fused(const gemm_task *t) { gemm_in_other_order(t, false, 1); }
static void gemm_two_chains(const gemm_task *t) { gemm_in_other_order(t, true, 2); }

static void gemm_forgets(const gemm_task *t, gemm_task changed)
{
    (void)t;
    sound.gemm_f32(&changed);
}
static void gemm_forgets_outer(const gemm_task *t)
{
    gemm_task changed = *t;
    changed.outer_column = changed.outer_row = NULL;
    gemm_forgets(t, changed);
}
static void gemm_outer_ld_is_1(const gemm_task *t)
{
    gemm_task changed = *t;
    changed.outer_ld = 1;
    gemm_forgets(t, changed);
}
static void gemm_drops_last_depth(const gemm_task *t)
{
    gemm_task changed = *t;
    changed.depth -= changed.depth > 0;
    gemm_forgets(t, changed);
}

/* The bias last: commutes but for GELU, and else but for rounding. */
static void gemm_bias_last(const gemm_task *t)
{
    gemm_task changed = *t;
    changed.bias = NULL;
    sound.gemm_f32(&changed);
    for (size_t p = 0; t->bias && p < t->panels; p++)
        for (size_t i = 0; i < t->rows; i++)
            for (size_t l = 0; l < PANEL; l++) c_at(t, i, p)[l] += t->bias[p * PANEL + l];
}

static void gemm_flushes_subnormals(const gemm_task *t)
{
    sound.gemm_f32(t);
    for (size_t p = 0; p < t->panels; p++)
        for (size_t i = 0; i < t->rows; i++)
            for (size_t l = 0; l < PANEL; l++)
                if (fabsf(c_at(t, i, p)[l]) < 0x1p-126f) c_at(t, i, p)[l] = copysignf(0.0f, c_at(t, i, p)[l]);
}

static void gemm_changes_a(const gemm_task *t)
{
    sound.gemm_f32(t);
    if (!is_empty(t) && t->depth) *(float *)(uintptr_t)t->a = 1.0f;
}

static void gemm_faults(const gemm_task *t)
{
    (void)t;
    __builtin_trap();
}

static void pack_leaves_lanes(float *panels, size_t panel_stride, const float *x, size_t ldx, size_t rows, size_t depth)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t k = 0; k < depth; k++) panels[r / PANEL * panel_stride + k * PANEL + r % PANEL] = x[r * ldx + k];
}

static void pack_reads_next_row(float *panels, size_t panel_stride, const float *x, size_t ldx, size_t rows,
                                size_t depth)
{
    sound.pack_panels_f32(panels, panel_stride, x, ldx, rows, depth);
    if (rows && depth) read_float(x + rows * ldx + depth - 1);
}

FAULTS_OF(gemm_f32, GROSS_FAULT(gemm_f32, gemm_reads_behind_row), GROSS_FAULT(gemm_f32, gemm_reads_in_front),
          GROSS_FAULT(gemm_f32, gemm_writes_17th_lane), GROSS_FAULT(gemm_f32, gemm_misses_last_lane),
          BITS_FAULT(gemm_f32, gemm_not_fused), BITS_FAULT(gemm_f32, gemm_two_chains),
          GROSS_FAULT(gemm_f32, gemm_forgets_outer), GROSS_FAULT(gemm_f32, gemm_outer_ld_is_1),
          GROSS_FAULT(gemm_f32, gemm_drops_last_depth), GROSS_FAULT(gemm_f32, gemm_bias_last),
          GROSS_FAULT(gemm_f32, gemm_flushes_subnormals), GROSS_FAULT(gemm_f32, gemm_changes_a),
          GROSS_FAULT(gemm_f32, gemm_faults))

FAULTS_OF(pack_panels_f32, GROSS_FAULT(pack_panels_f32, pack_leaves_lanes),
          GROSS_FAULT(pack_panels_f32, pack_reads_next_row))
