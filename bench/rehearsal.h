/* What the loops of an encode would take on as many processors as there are threads.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/parallel.h"

typedef struct loop_rehearsal {
    size_t loops, tasks; /* loops of two tasks or more, and their tasks */
    double busy_seconds; /* of all tasks of all loops */
    double span_seconds; /* sum over the loops of the time when the last of their threads would be done */
    long long (*clock_nanoseconds)(void); /* NULL: the machine's */
} loop_rehearsal;

/* An executor without threads: parallel_for cuts work into tasks as for so many threads, but the caller does them all,
 * in order, each in the name of the thread that would be free first. Adds to *rehearsal, which is the caller's and must
 * outlive the executor. What it cannot know: threads that compete for memory, and the price of starting a loop. */
deberta_status rehearsal_create(executor **made, size_t threads, loop_rehearsal *rehearsal, deberta_error *err);
