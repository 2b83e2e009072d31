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
 * logical processors stay unbound. Workers block all signals but those of their own faults. */
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

#endif
