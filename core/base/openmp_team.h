/* Loops on OpenMP's threads, for programs that have them running anyway (meson option -Dthreads=openmp).
 *
 * How long its threads spin between two loops, and where they run, is up to the environment of the whole process
 * (OMP_WAIT_POLICY, GOMP_SPINCOUNT, KMP_BLOCKTIME, OMP_PROC_BIND): docs/benchmarking.md has what that costs. A thread
 * that has run loops before a fork() hangs in its next one in the child, with GCC's library; a new thread does not.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/parallel.h"

/* threads >= 1 counts the caller. Starts none: OpenMP does at the first loop. pin is refused (DEBERTA_E_UNSUPPORTED)
 * for more than one: threads that the rest of the process uses too are not ours to bind. */
deberta_status openmp_team_create(executor **team, size_t threads, bool pin, deberta_error *err);
