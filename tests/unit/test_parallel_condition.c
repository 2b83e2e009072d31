/* The same tests over the pool that waits on a condition variable, as on systems without futexes.
 * SPDX-License-Identifier: MIT */
#define PARALLEL_FUTEX      0
#define thread_pool_create  condition_pool_create
#define thread_pool_free    condition_pool_free
#define thread_pool_threads condition_pool_threads
#define thread_pool_hurry   condition_pool_hurry
#define thread_pool_rest    condition_pool_rest
#define parallel_for        condition_parallel_for
#include "core/base/parallel.c"

#include "tests/unit/test_parallel.c"
