/* A pool of POSIX threads for short, frequent loops: the executor of every build that does not ask for OpenMP.
 *
 * Tasks are handed out dynamically in increasing order: a thread that was delayed by a neighbour simply takes fewer,
 * and a loop never waits for a thread that holds no task of it. Waiting is bounded spinning, then sleeping in the
 * kernel, so that a busy machine costs its share and not a multiple of it. The caller is worker 0 and works too.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/parallel.h"

/* How threads wait; zeros: as usual. For tests. */
typedef struct thread_waiting {
    bool on_condition;                  /* sleep on a condition variable also where there are futexes */
    long long hurried_spin_nanoseconds; /* how long a thread spins at most between executor_begin and executor_end */
} thread_waiting;

/* threads >= 1 counts the caller. pin: bind workers to cores (never the calling thread); workers beyond the number of
 * logical processors stay unbound. Without it they may run wherever the caller may; if there are cores enough, each
 * begins on one of its own. Workers block all signals but those of their own faults. machine may be NULL for one
 * thread. Between executor_begin and _end a thread that waits stays awake for longer, unless others want these
 * processors as well. */
deberta_status thread_pool_create(executor **pool, size_t threads, bool pin, const topology_info *machine,
                                  deberta_error *err);
deberta_status thread_pool_create_waiting(executor **pool, size_t threads, bool pin, const topology_info *machine,
                                          thread_waiting waiting, deberta_error *err);
