/* Declares parallel loops and the executors that run them.
 *
 * An executor hands out the tasks of short, frequent loops. The engine knows only these declarations; executors are the
 * thread pool (thread_pool.c) or OpenMP's team (executor_create.c); executor_create decides which one.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <pthread.h>

#include "core/base/status.h"
#include "core/base/topology.h"

typedef void (*parallel_body)(void *context, size_t task, size_t worker);

typedef struct executor executor;

typedef struct executor_kind {
    /* Runs a loop as parallel_for describes. */
    void (*run)(executor *self, size_t tasks, parallel_body body, void *context);
    /* Prepare for and end a phase of loops that follow each other closely. Neither waits. NULL: nothing to prepare. */
    void (*hurry)(executor *self);
    void (*rest)(executor *self);
    /* Frees the resources of this kind, and *self itself. */
    void (*free)(executor *self);
} executor_kind;

/* The first member of every kind's own struct. */
struct executor {
    const executor_kind *kind;
    size_t threads; /* largest number of threads that run one loop, including the caller */
    pthread_mutex_t lock;
    pthread_cond_t next;
    size_t served, queued; /* number of callers that are done, and of callers that have requested the executor */
};

/* Creates the executor that this build uses (meson option `threads`). threads: 0 means executor_default_threads. pin:
 * bind workers to cores (never the calling thread). machine: NULL reads it. Nested loops are not supported. *made is
 * NULL on failure. */
deberta_status executor_create(executor **made, size_t threads, bool pin, const topology_info *machine,
                               deberta_error *err);
/* Frees an executor; accepts NULL; sets *old to NULL. No loop may be running. */
void executor_free(executor **old);
/* Returns OMP_NUM_THREADS where the environment sets it to a number from 1 to TOPOLOGY_MAX_WORKERS (the first of
 * several), else the number of cores that this process may use. */
size_t executor_default_threads(const topology_info *machine);
/* Returns OMP_NUM_THREADS where executor_default_threads cannot follow its value, else NULL. */
const char *executor_threads_unread(void);

/* Runs body(context, task, worker) for every task in [0, tasks) and returns when all are done, their writes visible.
 * worker < threads names the thread, for scratch memory. Not reentrant; one caller at a time. Allocates nothing. tasks
 * may be 0. Loops of one task, and all loops of one thread, run on the caller without touching another thread. */
static inline void parallel_for(executor *by, size_t tasks, parallel_body body, void *context)
{
    by->kind->run(by, tasks, body, context);
}

/* Enclose the loops of one piece of work, such as an encode. Several sessions may share an executor: a caller that
 * arrives while it is busy waits until all earlier callers are done. They must not be nested. */
void executor_begin(executor *by);
void executor_end(executor *by);

/* The executor of a caller, who shares it between sessions. */
struct deberta_threads {
    executor *executor;
};

/* For kinds: initialises the common part, and ends it before the kind frees itself. */
deberta_status executor_init(executor *made, const executor_kind *kind, size_t threads, deberta_error *err);
void executor_finish(executor *old);
