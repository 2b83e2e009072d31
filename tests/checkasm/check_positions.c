/* position_bias_f32 and fold_runs_f32 over maps of every kind, and kernels with a fault each that must be caught.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm.h"

/* ------------------------------------------------------------------------------------------------------------ walks */

static void run_bias_case(test_run *run, size_t weight, kernel_problem p)
{
    static const unsigned terms[] = {WITHOUT_P2C, WITHOUT_C2P, 0};
    const unsigned options = p.options;
    for (size_t k = 0; k < sizeof terms / sizeof *terms; k++) {
        p.options = options | terms[k];
        run_problem(run, weight, &p);
    }
}

static void check_bias_unit_steps(test_run *run)
{
    static const size_t many_rows[] = {63, 64, 65, 96, 126, 127, 128, 200};
    kernel_problem p = {.values = VALUES_BELL};
    for (int map = MAP_FLAT; map < MAP_ANY; map++) {
        p.map = (problem_map)map;
        for (p.rows = 0; p.rows <= 56; p.rows++) run_bias_case(run, 20, p);
        for (size_t i = 0; i < sizeof many_rows / sizeof *many_rows; i++) {
            p.rows = many_rows[i];
            for (int repetition = 0; repetition < 3; repetition++) run_bias_case(run, 40, p);
        }
    }
}

/* Any map at all, and well-behaved maps without the promise. */
static void check_bias_irregular(test_run *run)
{
    static const problem_map maps[] = {MAP_ANY, MAP_SATURATED, MAP_HALF};
    kernel_problem p = {.options = WITHOUT_PROMISE, .values = VALUES_BELL};
    for (size_t s = 0; s < sizeof maps / sizeof *maps; s++) {
        p.map = maps[s];
        for (p.rows = 0; p.rows <= 130; p.rows += p.rows < 40 ? 1 : 13) run_bias_case(run, 20, p);
    }
}

CHECKS_OF(position_bias_f32, {"position_bias_f32/unit_steps", check_bias_unit_steps},
          {"position_bias_f32/irregular", check_bias_irregular})

static void check_fold_runs(test_run *run)
{
    static const problem_map maps[] = {MAP_LINEAR, MAP_FLAT, MAP_HALF, MAP_ANY};
    static const size_t rows[] = {0, 1, 2, 17, 40};
    kernel_problem p = {.values = VALUES_BELL};
    for (size_t kind = 0; kind < sizeof maps / sizeof *maps; kind++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            for (p.columns = 0; p.columns <= 4 * PANEL + 1; p.columns++) {
                p.map = maps[kind];
                p.rows = rows[i];
                run_problem(run, 24, &p);
            }
}

CHECKS_OF(fold_runs_f32, {"fold_runs_f32/maps", check_fold_runs})

/* ----------------------------------------------------------------------------------------------------------- faults */

CHANGED_TASK(position_bias_f32, bias_is_one_off, position_bias_task,
             changed.row_of = t->rows ? t->row_of - (t->row_of[0] != t->row_of[-1]) : t->row_of)

/* Takes the shortcut for maps in unit steps whether or not that was promised. */
static void bias_trusts_every_map(const position_bias_task *t)
{
    sound.position_bias_f32(t);
    if (!t->c2p || t->p2c || t->unit_steps) return;
    for (size_t i = 0; i < t->rows; i++)
        for (ptrdiff_t l = 0; l < PANEL; l++) {
            const size_t first = (size_t)(t->last_row - t->row_of[i]) - t->c2p_first;
            const ptrdiff_t steps = t->row_of[i] - t->row_of[(ptrdiff_t)i - l];
            const size_t step = (size_t)(steps < 0 ? 0 : steps > l ? l : steps);
            t->bias[i * PANEL + (size_t)l] = t->c2p[i * t->ld_c2p + first + step];
        }
}

static void bias_reads_16th_float(const position_bias_task *t)
{
    sound.position_bias_f32(t);
    if (!t->c2p || t->rows == 0) return;
    const size_t last = t->rows - 1;
    size_t reach = 0;
    for (size_t l = 0; l < PANEL; l++) {
        const size_t entry = (size_t)(t->last_row - t->row_of[(ptrdiff_t)last - (ptrdiff_t)l]) - t->c2p_first;
        if (entry > reach) reach = entry;
    }
    read_float(t->c2p + last * t->ld_c2p + reach + PANEL);
}

static void bias_forgets_p2c(const position_bias_task *t)
{
    position_bias_task changed = *t;
    if (changed.c2p) changed.p2c = NULL;
    sound.position_bias_f32(&changed);
}

static void fold_runs_from_the_right(const fold_runs_task *t)
{
    for (size_t i = 0; i < t->rows; i++)
        for (size_t j = t->columns; j-- > 0;)
            t->strip[i * t->ld_strip + (size_t)(t->place_of[(ptrdiff_t)j - (ptrdiff_t)i] - t->first)] +=
                t->s[i * t->row_step + j * t->column_step];
}

CHANGED_TASK(fold_runs_f32, fold_runs_misses_last_column, fold_runs_task, changed.columns -= t->columns > 0)

FAULTS_OF(position_bias_f32, GROSS_FAULT(position_bias_f32, bias_is_one_off),
          GROSS_FAULT(position_bias_f32, bias_trusts_every_map), GROSS_FAULT(position_bias_f32, bias_reads_16th_float),
          GROSS_FAULT(position_bias_f32, bias_forgets_p2c))

FAULTS_OF(fold_runs_f32, BITS_FAULT(fold_runs_f32, fold_runs_from_the_right),
          GROSS_FAULT(fold_runs_f32, fold_runs_misses_last_column))
