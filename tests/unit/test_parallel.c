/* The thread pool: every task once, nobody waits for a thread without a task, sleepers wake, signals stay with the
 * application. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/parallel.h"

enum { MAX_THREADS = 5, MAX_TASKS = 300 };

static thread_pool *make_pool(size_t threads)
{
    thread_pool *pool = NULL;
    deberta_error err = {0};
    if (thread_pool_create(&pool, threads, false, &err) != DEBERTA_OK) fail_msg("%s", err.message);
    return pool;
}

/* Plain, not atomic, memory: ThreadSanitizer (tools/run_tests.py --stage threads) checks that parallel_for orders these
 * accesses. */
typedef struct tally {
    int runs[MAX_TASKS];
    size_t worker_of[MAX_TASKS];
    size_t threads;
} tally;

static void count_run(void *context, size_t task, size_t worker)
{
    tally *t = context;
    t->runs[task]++;
    t->worker_of[task] = worker;
}

static void test_every_task_runs_once(void **state)
{
    (void)state;
    const size_t sizes[] = {0, 1, 2, 3, 4, 5, 17, MAX_TASKS};
    for (size_t threads = 1; threads <= MAX_THREADS; threads++) {
        thread_pool *pool = make_pool(threads);
        assert_int_equal(thread_pool_threads(pool), threads);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            tally t = {0};
            parallel_for(pool, sizes[s], count_run, &t);
            for (size_t i = 0; i < MAX_TASKS; i++) {
                assert_int_equal(t.runs[i], i < sizes[s]);
                assert_true(t.worker_of[i] < threads);
            }
        }
        thread_pool_free(&pool);
        assert_null(pool);
        thread_pool_free(&pool);
    }
}

/* Loops follow each other at once, so that workers are caught in every state between two loops. */
static void test_many_short_loops(void **state)
{
    (void)state;
    for (size_t threads = 2; threads <= 4; threads++) {
        thread_pool *pool = make_pool(threads);
        tally t = {0};
        int expected[MAX_TASKS] = {0};
        for (size_t loop = 0; loop < 20000; loop++) {
            size_t tasks = loop % 7;
            parallel_for(pool, tasks, count_run, &t);
            for (size_t i = 0; i < tasks; i++) assert_int_equal(t.runs[i], ++expected[i]);
        }
        thread_pool_free(&pool);
    }
}

/* Pauses longer than the spin: workers must be woken from sleep, and so must a caller that waits for a slow task. */
static void test_sleepers_wake(void **state)
{
    (void)state;
    thread_pool *pool = make_pool(3);
    tally t = {0};
    for (int loop = 0; loop < 200; loop++) {
        parallel_for(pool, 6, count_run, &t);
        usleep(loop % 4 * 100);
    }
    for (size_t i = 0; i < 6; i++) assert_int_equal(t.runs[i], 200);
    thread_pool_free(&pool);
}

/* Threads of this process, but for the one that asks, that run or could: state R in /proc. */
static size_t running_threads(void)
{
    size_t running = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks) return 0;
    for (struct dirent *entry; (entry = readdir(tasks));) {
        char path[PATH_MAX], line[512] = "";
        if (entry->d_name[0] == '.' || atol(entry->d_name) == syscall(SYS_gettid)) continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", entry->d_name);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        const char *name_end = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
        running += name_end && name_end[2] == 'R';
        fclose(file);
    }
    closedir(tasks);
    return running;
}

/* Waits for as long as it takes: only a worker that never sleeps makes the test fail. */
static bool all_workers_sleep(void)
{
    for (int i = 0; i < 20000; i++) {
        if (running_threads() == 0) return true;
        usleep(500);
    }
    return false;
}

/* Spinning has an end, also when nobody says that the hurry is over. */
static void test_waiting_ends_in_sleep(void **state)
{
    (void)state;
    thread_pool *pool = make_pool(2);
    tally t = {0};
    for (int attempt = 0; attempt < 5; attempt++) {
        thread_pool_hurry(pool);
        for (int loop = 0; loop < 50; loop++) parallel_for(pool, 6, count_run, &t);
        if (attempt % 2) thread_pool_rest(pool);
        assert_true(all_workers_sleep());
    }
    for (size_t i = 0; i < 6; i++) assert_int_equal(t.runs[i], 250);
    thread_pool_free(&pool);
}

typedef struct meeting {
    atomic_size_t arrived, finished;
    size_t expected;
    atomic_bool timed_out;
} meeting;

static void wait_for_count(meeting *m, atomic_size_t *count, size_t expected)
{
    for (int i = 0; i < 20000 && atomic_load(count) < expected; i++) usleep(500);
    if (atomic_load(count) < expected) atomic_store(&m->timed_out, true);
}

static void meet(void *context, size_t task, size_t worker)
{
    (void)task, (void)worker;
    meeting *m = context;
    atomic_fetch_add(&m->arrived, 1);
    wait_for_count(m, &m->arrived, m->expected);
}

static void test_all_threads_take_part(void **state)
{
    (void)state;
    for (size_t threads = 2; threads <= MAX_THREADS; threads++) {
        thread_pool *pool = make_pool(threads);
        for (int loop = 0; loop < 20; loop++) {
            meeting m = {.expected = threads};
            parallel_for(pool, threads, meet, &m);
            assert_false(m.timed_out);
        }
        thread_pool_free(&pool);
    }
}

/* Task 0 ends only when all others have: whoever holds it must not have been given others in advance. */
static void hold_task_0(void *context, size_t task, size_t worker)
{
    (void)worker;
    meeting *m = context;
    if (task == 0) wait_for_count(m, &m->finished, m->expected);
    atomic_fetch_add(&m->finished, 1);
}

static void test_a_delayed_thread_holds_up_one_task_only(void **state)
{
    (void)state;
    thread_pool *pool = make_pool(3);
    meeting m = {.expected = 63};
    parallel_for(pool, 64, hold_task_0, &m);
    assert_false(m.timed_out);
    assert_int_equal(m.finished, 64);
    thread_pool_free(&pool);
}

typedef struct settings {
    sigset_t signals[MAX_THREADS];
    cpu_set_t processors[MAX_THREADS];
    bool seen[MAX_THREADS];
    meeting all;
} settings;

static void record_settings(void *context, size_t task, size_t worker)
{
    settings *s = context;
    pthread_sigmask(SIG_SETMASK, NULL, &s->signals[worker]);
    sched_getaffinity(0, sizeof s->processors[worker], &s->processors[worker]);
    s->seen[worker] = true;
    meet(&s->all, task, worker);
}

/* Only the bits of real signals count; the rest of a sigset_t is padding. */
static bool same_signals(const sigset_t *a, const sigset_t *b)
{
    for (int number = 1; number < SIGRTMAX; number++) {
        if (sigismember(a, number) != sigismember(b, number)) return false;
    }
    return true;
}

static void test_workers_block_signals_but_not_faults(void **state)
{
    (void)state;
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    thread_pool *pool = make_pool(2);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_true(same_signals(&before, &after));
    settings s = {.all.expected = 2};
    parallel_for(pool, 2, record_settings, &s);
    assert_true(s.seen[0] && s.seen[1]);
    assert_int_equal(sigismember(&s.signals[1], SIGTERM), 1);
    assert_int_equal(sigismember(&s.signals[1], SIGINT), 1);
    assert_int_equal(sigismember(&s.signals[1], SIGSEGV), 0);
    assert_true(same_signals(&s.signals[0], &before));
    thread_pool_free(&pool);
}

static void test_pinned_workers_have_one_processor_each(void **state)
{
    (void)state;
    cpu_set_t mine;
    sched_getaffinity(0, sizeof mine, &mine);
    if (CPU_COUNT(&mine) < 2) skip();
    thread_pool *pool = NULL;
    assert_int_equal(thread_pool_create(&pool, 2, true, NULL), DEBERTA_OK);
    settings s = {.all.expected = 2};
    parallel_for(pool, 2, record_settings, &s);
    assert_int_equal(CPU_COUNT(&s.processors[1]), 1);
    assert_true(CPU_EQUAL(&s.processors[0], &mine));
    thread_pool_free(&pool);

    assert_int_equal(thread_pool_create(&pool, (size_t)CPU_COUNT(&mine) + 2, true, NULL), DEBERTA_OK);
    thread_pool_free(&pool);
}

/* They begin on processors of their own, but must not stay bound. */
static void test_unbound_workers_may_go_where_the_caller_may(void **state)
{
    (void)state;
    cpu_set_t mine;
    sched_getaffinity(0, sizeof mine, &mine);
    for (size_t threads = 2; threads <= MAX_THREADS; threads++) {
        thread_pool *pool = make_pool(threads);
        settings s = {.all.expected = threads};
        parallel_for(pool, threads, record_settings, &s);
        for (size_t w = 0; w < threads; w++) assert_true(s.seen[w] && CPU_EQUAL(&s.processors[w], &mine));
        thread_pool_free(&pool);
    }
}

static void note_thread(void *context, size_t task, size_t worker)
{
    pthread_t *ran = context;
    assert_int_equal(worker, 0);
    ran[task] = pthread_self();
}

static void test_lone_tasks_and_lone_threads_stay_on_the_caller(void **state)
{
    (void)state;
    pthread_t ran[8];
    thread_pool *one = make_pool(1), *three = make_pool(3);
    parallel_for(one, 8, note_thread, ran);
    for (size_t i = 0; i < 8; i++) assert_true(pthread_equal(ran[i], pthread_self()));
    parallel_for(three, 1, note_thread, ran);
    assert_true(pthread_equal(ran[0], pthread_self()));
    thread_pool_free(&one);
    thread_pool_free(&three);
}

static void test_impossible_pools_are_refused(void **state)
{
    (void)state;
    thread_pool *pool = NULL;
    deberta_error err = {0};
    assert_int_equal(thread_pool_create(&pool, 0, false, &err), DEBERTA_E_ARGUMENT);
    assert_null(pool);
    assert_int_equal(thread_pool_create(&pool, SIZE_MAX, false, &err), DEBERTA_E_ARGUMENT);
    assert_null(pool);
    assert_non_null(strstr(err.message, "threads"));
}

/* Pools are independent: two callers, each with its own. */
static void *drive_a_pool(void *unused)
{
    (void)unused;
    thread_pool *pool = make_pool(2);
    tally t = {0};
    for (int loop = 0; loop < 2000; loop++) parallel_for(pool, 5, count_run, &t);
    thread_pool_free(&pool);
    return t.runs[4] == 2000 ? NULL : (void *)1;
}

static void test_two_pools_at_once(void **state)
{
    (void)state;
    pthread_t other;
    void *bad = (void *)1;
    assert_int_equal(pthread_create(&other, NULL, drive_a_pool, NULL), 0);
    assert_null(drive_a_pool(NULL));
    assert_int_equal(pthread_join(other, &bad), 0);
    assert_null(bad);
}

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
    thread_pool *pool = NULL;
    deberta_error err = {0};
    loop_rehearsal r = {0};
    rehearsed seen = {.caller = pthread_self()};
    assert_int_equal(thread_pool_create_rehearsal(&pool, 3, &r, &err), DEBERTA_OK);
    assert_int_equal(thread_pool_threads(pool), 3);
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
    thread_pool_free(&pool);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_task_runs_once),
        cmocka_unit_test(test_many_short_loops),
        cmocka_unit_test(test_sleepers_wake),
        cmocka_unit_test(test_waiting_ends_in_sleep),
        cmocka_unit_test(test_all_threads_take_part),
        cmocka_unit_test(test_a_delayed_thread_holds_up_one_task_only),
        cmocka_unit_test(test_workers_block_signals_but_not_faults),
        cmocka_unit_test(test_pinned_workers_have_one_processor_each),
        cmocka_unit_test(test_unbound_workers_may_go_where_the_caller_may),
        cmocka_unit_test(test_lone_tasks_and_lone_threads_stay_on_the_caller),
        cmocka_unit_test(test_impossible_pools_are_refused),
        cmocka_unit_test(test_two_pools_at_once),
        cmocka_unit_test(test_a_rehearsal_hands_tasks_to_whom_is_free),
    };
    return cmocka_run_group_tests_name("parallel", tests, NULL, NULL);
}
