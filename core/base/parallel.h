/* A pool of threads for short, frequent loops.
 *
 * Tasks are handed out dynamically in increasing order: a thread that was delayed by a neighbour simply takes fewer,
 * and a loop never waits for a thread that holds no task of it. Waiting is bounded spinning, then sleeping in the
 * kernel, so that a busy machine costs its share and not a multiple of it. The caller is worker 0 and works too. Own
 * code on POSIX threads, not OpenMP: its waiting policy can only be set by the environment of the whole process, and
 * its barriers spin without bound on some and sleep at once on other systems.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CORE_BASE_PARALLEL_H
#define CORE_BASE_PARALLEL_H

#include "core/base/status.h"

typedef struct thread_pool thread_pool;

/* threads >= 1 counts the caller. pin: bind workers to cores (never the calling thread); workers beyond the number of
 * logical processors stay unbound. Without it they may run wherever the caller may; if there are cores enough, each
 * begins on one of its own. Workers block all signals but those of their own faults. */
deberta_status thread_pool_create(thread_pool **pool, size_t threads, bool pin, deberta_error *err);
/* Accepts NULL; sets *pool to NULL. No loop may be running. */
void thread_pool_free(thread_pool **pool);
size_t thread_pool_threads(const thread_pool *pool);

typedef void (*parallel_body)(void *context, size_t task, size_t worker);
/* Runs body(context, task, worker) for every task in [0, tasks) and returns when all are done, their writes visible.
 * worker < threads names the thread, for scratch memory. Not reentrant; one caller at a time. Allocates nothing. tasks
 * may be 0. Loops of one task, and all loops of a pool of one thread, run on the caller without touching another
 * thread. */
void parallel_for(thread_pool *pool, size_t tasks, parallel_body body, void *context);

/* Between the two, loops follow each other closely: a thread that waits stays awake for longer, unless others want
 * these processors as well. Neither waits for anything. */
void thread_pool_hurry(thread_pool *pool);
void thread_pool_rest(thread_pool *pool);

/* ------------------------------------------------------------------------------------------------------- rehearsing */

/* What the loops of a rehearsed pool would take on as many processors as it has threads. */
typedef struct loop_rehearsal {
    size_t loops, tasks; /* loops of two tasks or more, and their tasks */
    double busy_seconds; /* of all tasks of all loops */
    double span_seconds; /* sum over the loops of the time when the last of their threads would be done */
} loop_rehearsal;

/* A pool without threads: parallel_for cuts work into tasks as for so many threads, but the caller does them all, in
 * order, each in the name of the thread that would be free first. Adds to *rehearsal, which is the caller's and must
 * outlive the pool. What it cannot know: threads that compete for memory, and the price of starting a loop. */
deberta_status thread_pool_create_rehearsal(thread_pool **pool, size_t threads, loop_rehearsal *rehearsal,
                                            deberta_error *err);

#endif
