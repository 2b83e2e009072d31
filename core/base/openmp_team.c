/* Implements the executor on OpenMP. SPDX-License-Identifier: MIT */
#include "core/base/thread_pool.h"

#include <limits.h>
#include <omp.h>
#include <stdlib.h>

static void openmp_team_run(executor *self, size_t tasks, parallel_body body, void *context)
{
    if (self->threads == 1 || tasks <= 1) {
        for (size_t task = 0; task < tasks; task++) body(context, task, 0);
        return;
    }
#pragma omp parallel for schedule(dynamic, 1) num_threads((int)self->threads)
    for (size_t task = 0; task < tasks; task++) body(context, task, (size_t)omp_get_thread_num());
}

static void free_team(executor *self)
{
    executor_finish(self);
    free(self);
}

deberta_status openmp_team_create(executor **team, size_t threads, bool pin, deberta_error *err)
{
    static const executor_kind kind = {.run = openmp_team_run, .free = free_team};
    *team = NULL;
    if (threads == 0 || threads > INT_MAX) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "a team of %zu threads", threads);
    if (pin && threads > 1)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED,
                     "threads cannot be pinned: this build runs its loops on OpenMP, which OMP_PROC_BIND binds");
    executor *made = malloc(sizeof *made);
    if (!made) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for a team of %zu threads", threads);
    const deberta_status status = executor_init(made, &kind, threads, err);
    if (status == DEBERTA_OK)
        *team = made;
    else
        free(made);
    return status;
}
