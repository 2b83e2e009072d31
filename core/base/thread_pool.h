/* A pool of POSIX threads for short, frequent loops: the executor of every build that does not ask for OpenMP.
 *
 * Tasks are handed out dynamically in increasing order: a thread that was delayed by a neighbour simply takes fewer,
 * and a loop never waits for a thread that holds no task of it. Threads spin for a bounded time, then sleep in the
 * kernel, so that a busy machine slows the loop in proportion only. The caller is worker 0 and runs tasks too.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/parallel.h"

/* How threads wait, for tests; zeros mean the defaults. */
typedef struct thread_waiting {
    bool on_condition;                  /* whether to sleep on a condition variable even where there are futexes */
    long long hurried_spin_nanoseconds; /* limit of spinning, in ns, between executor_begin and executor_end */
} thread_waiting;

/* Creates a pool; threads >= 1 counts the caller. pin: bind workers to cores (never the calling thread); workers beyond
 * the number of logical processors stay unbound. Without it they may run wherever the caller may; if there are enough
 * cores, each begins on a separate one. Workers block all signals except those of their own faults. machine may be NULL
 * for one thread. Between executor_begin and _end a thread that waits stays awake for longer, unless other threads need
 * these processors. */
deberta_status thread_pool_create(executor **pool, size_t threads, bool pin, const topology_info *machine,
                                  deberta_error *err);
deberta_status thread_pool_create_waiting(executor **pool, size_t threads, bool pin, const topology_info *machine,
                                          thread_waiting waiting, deberta_error *err);
