/* The rehearsal of loops: who would do which task, and when the last would be done. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <time.h>
#include <cmocka.h>

#include "bench/rehearsal.h"

/* Task 0 takes three times as long as each of the others. */
typedef struct rehearsed {
    pthread_t caller;
    size_t order[4], workers[4], done;
} rehearsed;

static void take_a_while(void *context, size_t task, size_t worker)
{
    rehearsed *r = context;
    struct timespec begin, now;
    const long wanted = task == 0 ? 30000000 : 10000000;
    assert_true(pthread_equal(r->caller, pthread_self()));
    r->order[r->done] = task;
    r->workers[r->done++] = worker;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < wanted);
}

/* Whether the fourth task went to a thread that was free before the first task's, and the sums say so. */
static bool rehearse_four_tasks(void)
{
    executor *pool = NULL;
    deberta_error err = {0};
    loop_rehearsal r = {0};
    rehearsed seen = {.caller = pthread_self()};
    assert_int_equal(rehearsal_create(&pool, 3, &r, &err), DEBERTA_OK);
    assert_int_equal(pool->threads, 3);
    parallel_for(pool, 4, take_a_while, &seen);
    assert_int_equal(seen.done, 4);
    for (size_t k = 0; k < 4; k++) assert_int_equal(seen.order[k], k);
    for (size_t k = 0; k < 3; k++) assert_int_equal(seen.workers[k], k);
    assert_int_equal(r.loops, 1);
    assert_int_equal(r.tasks, 4);
    assert_true(r.busy_seconds >= 0.060);
    assert_true(r.span_seconds >= 0.030 && r.span_seconds < r.busy_seconds);
    const bool expected = seen.workers[3] != 0 && r.span_seconds <= r.busy_seconds - 0.020;

    const double span = r.span_seconds; /* a lone task is no loop that anybody joins, but takes its time */
    seen.done = 0;
    parallel_for(pool, 1, take_a_while, &seen);
    assert_int_equal(r.loops, 1);
    assert_true(r.span_seconds >= span + 0.030);
    executor_free(&pool);
    return expected;
}

/* A disturbed machine makes single tasks longer: who is free first can then be another, but not every time. */
static void test_a_rehearsal_hands_tasks_to_whom_is_free(void **state)
{
    (void)state;
    for (int attempt = 0; attempt < 50; attempt++)
        if (rehearse_four_tasks()) return;
    fail_msg("the fourth task went to the thread with the longest, 50 times");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_rehearsal_hands_tasks_to_whom_is_free)};
    return cmocka_run_group_tests_name("rehearsal", tests, NULL, NULL);
}
