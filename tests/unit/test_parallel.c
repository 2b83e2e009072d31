/* Executors: every task once, nobody waits for a thread without a task, callers who share one take turns. Of the thread
 * pool also: sleepers wake, signals stay with the application. SPDX-License-Identifier: MIT */
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

#include "core/base/thread_pool.h"

enum { MAX_THREADS = 5, MAX_TASKS = 300 };

static topology_info machine;

static deberta_status create_pool(executor **made, size_t threads, bool pin, deberta_error *err)
{
    return thread_pool_create(made, threads, pin, &machine, err);
}

static deberta_status create_condition_pool(executor **made, size_t threads, bool pin, deberta_error *err)
{
    return thread_pool_create_waiting(made, threads, pin, &machine, (thread_waiting){.on_condition = true}, err);
}

/* The pool again, or OpenMP (meson option `threads`). */
static deberta_status create_of_build(executor **made, size_t threads, bool pin, deberta_error *err)
{
    /* 0 would mean the default, which is not what is to be refused. */
    return executor_create(made, threads ? threads : SIZE_MAX, pin, NULL, err);
}

/* What the tests at hand are about. */
static deberta_status (*create)(executor **made, size_t threads, bool pin, deberta_error *err);

static executor *make(size_t threads)
{
    executor *made = NULL;
    deberta_error err = {0};
    if (create(&made, threads, false, &err) != DEBERTA_OK) fail_msg("%s", err.message);
    return made;
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
        executor *pool = make(threads);
        assert_int_equal(pool->threads, threads);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            tally t = {0};
            parallel_for(pool, sizes[s], count_run, &t);
            for (size_t i = 0; i < MAX_TASKS; i++) {
                assert_int_equal(t.runs[i], i < sizes[s]);
                assert_true(t.worker_of[i] < threads);
            }
        }
        executor_free(&pool);
        assert_null(pool);
        executor_free(&pool);
    }
}

/* Loops follow each other at once, so that workers are caught in every state between two loops. */
static void test_many_short_loops(void **state)
{
    (void)state;
    for (size_t threads = 2; threads <= 4; threads++) {
        executor *pool = make(threads);
        tally t = {0};
        int expected[MAX_TASKS] = {0};
        for (size_t loop = 0; loop < 20000; loop++) {
            size_t tasks = loop % 7;
            parallel_for(pool, tasks, count_run, &t);
            for (size_t i = 0; i < tasks; i++) assert_int_equal(t.runs[i], ++expected[i]);
        }
        executor_free(&pool);
    }
}

/* Pauses longer than the spin: workers must be woken from sleep, and so must a caller that waits for a slow task. */
static void test_sleepers_wake(void **state)
{
    (void)state;
    executor *pool = make(3);
    tally t = {0};
    for (int loop = 0; loop < 200; loop++) {
        parallel_for(pool, 6, count_run, &t);
        usleep(loop % 4 * 100);
    }
    for (size_t i = 0; i < 6; i++) assert_int_equal(t.runs[i], 200);
    executor_free(&pool);
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
    executor *pool = make(2);
    tally t = {0};
    for (int attempt = 0; attempt < 5; attempt++) {
        executor_begin(pool);
        for (int loop = 0; loop < 50; loop++) parallel_for(pool, 6, count_run, &t);
        if (attempt % 2) executor_end(pool);
        assert_true(all_workers_sleep());
        if (attempt % 2 == 0) executor_end(pool);
    }
    for (size_t i = 0; i < 6; i++) assert_int_equal(t.runs[i], 250);
    executor_free(&pool);
}

/* The end of the hurry is the end of spinning: a worker that would have spun for an hour sleeps. */
static void test_spinning_ends_with_the_hurry(void **state)
{
    (void)state;
    executor *pool = NULL;
    const thread_waiting patient = {.on_condition = create == create_condition_pool,
                                    .hurried_spin_nanoseconds = 3600000000000};
    assert_int_equal(thread_pool_create_waiting(&pool, 2, false, &machine, patient, NULL), DEBERTA_OK);
    tally t = {0};
    for (int attempt = 0; attempt < 5; attempt++) {
        executor_begin(pool);
        for (int loop = 0; loop < 50; loop++) parallel_for(pool, 6, count_run, &t);
        executor_end(pool);
        assert_true(all_workers_sleep());
    }
    executor_free(&pool);
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
        executor *pool = make(threads);
        for (int loop = 0; loop < 20; loop++) {
            meeting m = {.expected = threads};
            parallel_for(pool, threads, meet, &m);
            assert_false(m.timed_out);
        }
        executor_free(&pool);
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
    executor *pool = make(3);
    meeting m = {.expected = 63};
    parallel_for(pool, 64, hold_task_0, &m);
    assert_false(m.timed_out);
    assert_int_equal(m.finished, 64);
    executor_free(&pool);
}

typedef struct settings {
    sigset_t signals[MAX_THREADS];
    cpu_set_t processors[MAX_THREADS];
    char names[MAX_THREADS][16];
    bool seen[MAX_THREADS];
    meeting all;
} settings;

static void record_settings(void *context, size_t task, size_t worker)
{
    settings *s = context;
    pthread_sigmask(SIG_SETMASK, NULL, &s->signals[worker]);
    sched_getaffinity(0, sizeof s->processors[worker], &s->processors[worker]);
    pthread_getname_np(pthread_self(), s->names[worker], sizeof s->names[worker]);
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

static void test_workers_have_names_and_block_signals_but_not_faults(void **state)
{
    (void)state;
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    executor *pool = make(2);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_true(same_signals(&before, &after));
    settings s = {.all.expected = 2};
    parallel_for(pool, 2, record_settings, &s);
    assert_true(s.seen[0] && s.seen[1]);
    assert_int_equal(sigismember(&s.signals[1], SIGTERM), 1);
    assert_int_equal(sigismember(&s.signals[1], SIGINT), 1);
    assert_int_equal(sigismember(&s.signals[1], SIGSEGV), 0);
    assert_true(same_signals(&s.signals[0], &before));
    assert_string_equal(s.names[1], "worker-1");
    executor_free(&pool);
}

static void test_pinned_workers_have_one_processor_each(void **state)
{
    (void)state;
    cpu_set_t mine;
    sched_getaffinity(0, sizeof mine, &mine);
    if (CPU_COUNT(&mine) < 2) skip();
    executor *pool = NULL;
    assert_int_equal(create(&pool, 2, true, NULL), DEBERTA_OK);
    settings s = {.all.expected = 2};
    parallel_for(pool, 2, record_settings, &s);
    assert_int_equal(CPU_COUNT(&s.processors[1]), 1);
    assert_true(CPU_EQUAL(&s.processors[0], &mine));
    executor_free(&pool);

    assert_int_equal(create(&pool, (size_t)CPU_COUNT(&mine) + 2, true, NULL), DEBERTA_OK);
    executor_free(&pool);
}

/* They begin on processors of their own, but must not stay bound. */
static void test_unbound_workers_may_go_where_the_caller_may(void **state)
{
    (void)state;
    cpu_set_t mine;
    sched_getaffinity(0, sizeof mine, &mine);
    for (size_t threads = 2; threads <= MAX_THREADS; threads++) {
        executor *pool = make(threads);
        settings s = {.all.expected = threads};
        parallel_for(pool, threads, record_settings, &s);
        for (size_t w = 0; w < threads; w++) assert_true(s.seen[w] && CPU_EQUAL(&s.processors[w], &mine));
        executor_free(&pool);
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
    executor *one = make(1), *three = make(3);
    parallel_for(one, 8, note_thread, ran);
    for (size_t i = 0; i < 8; i++) assert_true(pthread_equal(ran[i], pthread_self()));
    parallel_for(three, 1, note_thread, ran);
    assert_true(pthread_equal(ran[0], pthread_self()));
    executor_free(&one);
    executor_free(&three);
}

static void test_impossible_pools_are_refused(void **state)
{
    (void)state;
    executor *pool = NULL;
    deberta_error err = {0};
    assert_int_equal(create(&pool, 0, false, &err), DEBERTA_E_ARGUMENT);
    assert_null(pool);
    assert_int_equal(create(&pool, SIZE_MAX, false, &err), DEBERTA_E_ARGUMENT);
    assert_null(pool);
    assert_non_null(strstr(err.message, "threads"));
}

/* Pools are independent: two callers, each with its own. */
static void *drive_a_pool(void *unused)
{
    (void)unused;
    executor *pool = make(2);
    tally t = {0};
    for (int loop = 0; loop < 2000; loop++) parallel_for(pool, 5, count_run, &t);
    executor_free(&pool);
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

/* ------------------------------------------------------------------------------------------------- sharing, defaults */

typedef struct sharing {
    executor *shared;
    atomic_int inside;
    atomic_bool overlapped;
    int turns[2]; /* of either when the other was done */
} sharing;

typedef struct sharer {
    sharing *with;
    int rounds;
    tally t;
} sharer;

static void *take_turns(void *argument)
{
    sharer *self = argument;
    for (int round = 0; round < self->rounds; round++) {
        executor_begin(self->with->shared);
        if (atomic_fetch_add(&self->with->inside, 1) != 0) atomic_store(&self->with->overlapped, true);
        parallel_for(self->with->shared, 7, count_run, &self->t);
        atomic_fetch_sub(&self->with->inside, 1);
        executor_end(self->with->shared);
    }
    return NULL;
}

/* Plain counters again: the order between two callers is ThreadSanitizer's to check, that none is inside with another
 * ours. */
static void test_callers_who_share_take_turns(void **state)
{
    (void)state;
    sharing s = {.shared = make(3)};
    sharer callers[4];
    pthread_t threads[4];
    for (size_t k = 0; k < 4; k++) {
        callers[k] = (sharer){.with = &s, .rounds = 500};
        assert_int_equal(pthread_create(&threads[k], NULL, take_turns, &callers[k]), 0);
    }
    for (size_t k = 0; k < 4; k++) assert_int_equal(pthread_join(threads[k], NULL), 0);
    for (size_t k = 0; k < 4; k++)
        for (size_t i = 0; i < 7; i++) assert_int_equal(callers[k].t.runs[i], 500);
    assert_false(s.overlapped);
    executor_free(&s.shared);
}

/* Who asks first has the next turn, however fast the one before comes back. */
static void *ask_again(void *argument)
{
    sharer *self = argument;
    executor_begin(self->with->shared);
    self->with->turns[1] = self->with->turns[0];
    executor_end(self->with->shared);
    return NULL;
}

static void test_the_next_turn_is_of_who_waited(void **state)
{
    (void)state;
    sharing s = {.shared = make(1)};
    sharer other = {.with = &s};
    pthread_t thread;
    executor_begin(s.shared);
    assert_int_equal(pthread_create(&thread, NULL, ask_again, &other), 0);
    for (bool waits = false; !waits;) {
        pthread_mutex_lock(&s.shared->lock);
        waits = s.shared->queued == 2;
        pthread_mutex_unlock(&s.shared->lock);
    }
    s.turns[1] = -1;
    for (s.turns[0] = 1; s.turns[0] < 100; s.turns[0]++) {
        executor_end(s.shared);
        executor_begin(s.shared);
    }
    executor_end(s.shared);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(s.turns[1], 1);
    executor_free(&s.shared);
}

static void test_the_environment_sets_the_default(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t threads; /* 0: as without it */
    } cases[] = {{"3", 3},    {"2,4", 2},  {"99999999999999999999999", 0},
                 {"", 0},     {"0", 0},    {"-2", 0},
                 {"+2", 0},   {"2x", 0},   {"two", 0},
                 {"2.5", 0},  {"5000", 0}, {"  3", 3},
                 {"3 ,2", 3}, {" 2 ", 2},  {"3 x", 0}};
    const topology_info six = {.usable_cores = 6};
    const char *had = getenv("OMP_NUM_THREADS");
    char *kept = had ? strdup(had) : NULL;
    unsetenv("OMP_NUM_THREADS");
    assert_int_equal(executor_default_threads(&six), 6);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        setenv("OMP_NUM_THREADS", cases[k].text, 1);
        const size_t expected = cases[k].threads ? cases[k].threads : 6;
        assert_int_equal(executor_default_threads(&six), expected);
    }
    executor *by = NULL;
    setenv("OMP_NUM_THREADS", "3", 1);
    assert_int_equal(executor_create(&by, 0, false, NULL, NULL), DEBERTA_OK);
    assert_int_equal(by->threads, 3);
    executor_free(&by);
    if (kept)
        setenv("OMP_NUM_THREADS", kept, 1);
    else
        unsetenv("OMP_NUM_THREADS");
    free(kept);
}

static int use_pool(void **state)
{
    (void)state;
    create = create_pool;
    return 0;
}

static int use_condition(void **state)
{
    (void)state;
    create = create_condition_pool;
    return 0;
}

static int use_build(void **state)
{
    (void)state;
    create = create_of_build;
    return 0;
}

/* The same tests for several executors, in one group: a plan of the Test Anything Protocol counts them all. */
enum { MOST_TESTS = 64 };

typedef struct test_list {
    struct CMUnitTest tests[MOST_TESTS];
    char names[MOST_TESTS][96];
    size_t count;
} test_list;

static void add_tests(test_list *list, const char *executor, CMFixtureFunction use, const struct CMUnitTest *tests,
                      size_t count)
{
    if (list->count + count > MOST_TESTS) abort();
    for (size_t k = 0; k < count; k++, list->count++) {
        char *name = list->names[list->count];
        snprintf(name, sizeof *list->names, "%s: %s", executor, tests[k].name);
        list->tests[list->count] = tests[k];
        list->tests[list->count].name = name;
        list->tests[list->count].setup_func = use;
    }
}

int main(void)
{
    static test_list list;
    if (topology_read(&machine, NULL) != DEBERTA_OK) return 1;
    const struct CMUnitTest all_kinds[] = {
        cmocka_unit_test(test_every_task_runs_once),
        cmocka_unit_test(test_many_short_loops),
        cmocka_unit_test(test_sleepers_wake),
        cmocka_unit_test(test_all_threads_take_part),
        cmocka_unit_test(test_a_delayed_thread_holds_up_one_task_only),
        cmocka_unit_test(test_lone_tasks_and_lone_threads_stay_on_the_caller),
        cmocka_unit_test(test_impossible_pools_are_refused),
        cmocka_unit_test(test_two_pools_at_once),
        cmocka_unit_test(test_callers_who_share_take_turns),
        cmocka_unit_test(test_the_next_turn_is_of_who_waited),
    };
    const struct CMUnitTest pools[] = {
        cmocka_unit_test(test_waiting_ends_in_sleep),
        cmocka_unit_test(test_spinning_ends_with_the_hurry),
        cmocka_unit_test(test_workers_have_names_and_block_signals_but_not_faults),
        cmocka_unit_test(test_pinned_workers_have_one_processor_each),
        cmocka_unit_test(test_unbound_workers_may_go_where_the_caller_may),
    };
    const struct CMUnitTest defaults[] = {cmocka_unit_test(test_the_environment_sets_the_default)};
    const size_t kinds_count = sizeof all_kinds / sizeof *all_kinds, pools_count = sizeof pools / sizeof *pools;
    add_tests(&list, "pool", use_pool, all_kinds, kinds_count);
    add_tests(&list, "pool", use_pool, pools, pools_count);
    add_tests(&list, "pool without futexes", use_condition, all_kinds, kinds_count);
    add_tests(&list, "pool without futexes", use_condition, pools, pools_count);
    add_tests(&list, "executor of the build", use_build, all_kinds, kinds_count);
    add_tests(&list, "defaults", NULL, defaults, 1);
    return _cmocka_run_group_tests("parallel", list.tests, list.count, NULL, NULL);
}
