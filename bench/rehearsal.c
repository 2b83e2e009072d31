/* An executor that only rehearses its threads. SPDX-License-Identifier: MIT */
#include "bench/rehearsal.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "output/scope.h"

typedef struct rehearsing {
    executor base;
    loop_rehearsal *sum;
    long long busy_until[]; /* [threads], since the loop's beginning */
} rehearsing;

static size_t free_first(const rehearsing *r)
{
    size_t first = 0;
    for (size_t w = 1; w < r->base.threads; w++)
        if (r->busy_until[w] < r->busy_until[first]) first = w;
    return first;
}

static void run(executor *self, size_t tasks, parallel_body body, void *context)
{
    rehearsing *r = (rehearsing *)self;
    long long (*now)(void) = r->sum->clock_nanoseconds ? r->sum->clock_nanoseconds : clock_nanoseconds;
    long long span = 0, busy = 0;
    memset(r->busy_until, 0, self->threads * sizeof *r->busy_until);
    for (size_t task = 0; task < tasks; task++) {
        size_t worker = free_first(r);
        long long begin = now();
        body(context, task, worker);
        long long taken = now() - begin;
        busy += taken;
        r->busy_until[worker] += taken;
        if (r->busy_until[worker] > span) span = r->busy_until[worker];
    }
    r->sum->loops += tasks > 1;
    r->sum->tasks += tasks > 1 ? tasks : 0;
    r->sum->busy_seconds += 1e-9 * (double)busy;
    r->sum->span_seconds += 1e-9 * (double)span;
}

static void free_rehearsing(executor *self)
{
    executor_finish(self);
    free(self);
}

deberta_status rehearsal_create(executor **made, size_t threads, loop_rehearsal *rehearsal, deberta_error *err)
{
    static const executor_kind kind = {.run = run, .free = free_rehearsing};
    *made = NULL;
    if (threads == 0 || threads > TOPOLOGY_MAX_WORKERS)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%zu threads to be rehearsed", threads);
    rehearsing *r = memory_take(1, sizeof *r + threads * sizeof *r->busy_until);
    const deberta_status status = executor_init(&r->base, &kind, threads, err);
    if (status != DEBERTA_OK) {
        free(r);
        return status;
    }
    r->sum = rehearsal;
    *made = &r->base;
    return DEBERTA_OK;
}
