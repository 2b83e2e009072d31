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

CHANGED_TASK(adam_f32, adam_with_the_other_decay, adam_task, changed.coupled = !t->coupled)
CHANGED_TASK(dropout_f32, dropout_of_another_step, dropout_task, changed.step++)
CHANGED_TASK(dropout_f32, dropout_without_scale, dropout_task, changed.scale = 1)

FAULTS_OF(adam_f32, GROSS_FAULT(adam_f32, adam_with_the_other_decay))

FAULTS_OF(dropout_f32, GROSS_FAULT(dropout_f32, dropout_of_another_step),
          GROSS_FAULT(dropout_f32, dropout_without_scale))
