/* adam_f32 and dropout_f32, and kernels with a fault each that must be caught. SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm.h"

static void check_adam(test_run *run)
{
    kernel_problem p = {.rows = 1, .values = VALUES_BELL};
    for (p.columns = 0; p.columns <= 5 * PANEL + 1; p.columns++) {
        p.options = p.columns % 2 ? WITH_COUPLING : 0;
        run_problem(run, 4, &p);
    }
}

CHECKS_OF(adam_f32, {"adam_f32/sizes", check_adam})

static void check_dropout(test_run *run)
{
    kernel_problem p = {.values = VALUES_BELL};
    for (p.columns = 0; p.columns <= 9 * PANEL + 1; p.columns += p.columns < 2 * PANEL ? 1 : 7)
        for (p.rows = 0; p.rows < 4; p.rows++) run_problem(run, 1, &p);
}

CHECKS_OF(dropout_f32, {"dropout_f32/sizes", check_dropout})

/* ----------------------------------------------------------------------------------------------------------- faults */

static void adam_with_the_other_decay(const adam_task *t)
{
    adam_task changed = *t;
    changed.coupled = !t->coupled;
    sound.adam_f32(&changed);
}

static void dropout_of_another_step(const dropout_task *t)
{
    dropout_task changed = *t;
    changed.step++;
    sound.dropout_f32(&changed);
}

static void dropout_without_scale(const dropout_task *t)
{
    dropout_task changed = *t;
    changed.scale = 1;
    sound.dropout_f32(&changed);
}

#define FAULTS(X) X(adam_f32, GROSS, adam_with_the_other_decay)
FAULTS_OF(adam_f32)
#undef FAULTS

#define FAULTS(X)                                                                                                      \
    X(dropout_f32, GROSS, dropout_of_another_step)                                                                     \
    X(dropout_f32, GROSS, dropout_without_scale)
FAULTS_OF(dropout_f32)
#undef FAULTS
