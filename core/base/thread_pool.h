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

/* Loops on OpenMP's threads, for programs that have them running anyway (meson option -Dthreads=openmp).
 *
 * How long its threads spin between two loops, and where they run, is up to the environment of the whole process
 * (OMP_WAIT_POLICY, GOMP_SPINCOUNT, KMP_BLOCKTIME, OMP_PROC_BIND): docs/benchmarking.md has what that costs. A thread
 * that has run loops before a fork() hangs in its next one in the child, with GCC's library; a new thread does not. */

/* threads >= 1 counts the caller. Starts none: OpenMP does at the first loop. pin is refused (DEBERTA_E_UNSUPPORTED)
 * for more than one: threads that the rest of the process uses too are not ours to bind. */
deberta_status openmp_team_create(executor **team, size_t threads, bool pin, deberta_error *err);
