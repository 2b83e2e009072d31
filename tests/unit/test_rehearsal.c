/* The rehearsal of loops: who would do which task, and when the last would be done. SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <unistd.h>

#include "tests/unit/test.h"

#include "bench/rehearsal.h"

static long long clock_now;
static long long read_clock(void) { return clock_now; }

typedef struct rehearsed {
    pthread_t caller;
    size_t order[4], workers[4], done;
} rehearsed;

/* Task 0 takes three times as long as each of the others. */
static void take_a_while(void *context, size_t task, size_t worker)
{
    rehearsed *r = context;
    assert_true(pthread_equal(r->caller, pthread_self()));
    r->order[r->done] = task;
    r->workers[r->done++] = worker;
    clock_now += task == 0 ? 30000000 : 10000000;
}

TEST(test_a_rehearsal_hands_tasks_to_whom_is_free)
{
    executor *pool = NULL;
    deberta_error err = {0};
    loop_rehearsal r = {.clock_nanoseconds = read_clock};
    rehearsed seen = {.caller = pthread_self()};
    assert_int_equal(rehearsal_create(&pool, 3, &r, &err), DEBERTA_OK);
    assert_int_equal(pool->threads, 3);
    parallel_for(pool, 4, take_a_while, &seen);
    assert_int_equal(seen.done, 4);
    const size_t workers[] = {0, 1, 2, 1};
    for (size_t k = 0; k < 4; k++) {
        assert_int_equal(seen.order[k], k);
        assert_int_equal(seen.workers[k], workers[k]);
    }
    assert_int_equal(r.loops, 1);
    assert_int_equal(r.tasks, 4);
    assert_float_equal(r.busy_seconds, 0.060, 1e-12);
    assert_float_equal(r.span_seconds, 0.030, 1e-12);

    seen.done = 0; /* a lone task is no loop that anybody joins, but takes its time */
    parallel_for(pool, 1, take_a_while, &seen);
    assert_int_equal(r.loops, 1);
    assert_float_equal(r.span_seconds, 0.060, 1e-12);
    executor_free(&pool);
}

static void wait_a_moment(void *context, size_t task, size_t worker)
{
    (void)context, (void)task, (void)worker;
    usleep(1000);
}

/* Without a clock of its own it reads the machine's. */
TEST(test_a_rehearsal_measures)
{
    executor *pool = NULL;
    loop_rehearsal r = {0};
    assert_int_equal(rehearsal_create(&pool, 2, &r, NULL), DEBERTA_OK);
    parallel_for(pool, 4, wait_a_moment, NULL);
    assert_true(r.busy_seconds >= 0.004 && r.span_seconds >= 0.002 && r.span_seconds < r.busy_seconds);
    executor_free(&pool);
}
