/* Executors: every task once, nobody waits for a thread without a task, callers who share one take turns. Of the thread
 * pool also: sleepers wake, signals stay with the application. SPDX-License-Identifier: MIT */
#define TESTS_HAVE_A_MAIN
#include "tests/unit/test.h"

#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

typedef struct kind_of_executor {
    const char *name;
    deberta_status (*create)(executor **made, size_t threads, bool pin, deberta_error *err);
} kind_of_executor;

static kind_of_executor kinds[] = {
    {"pool", create_pool}, {"pool without futexes", create_condition_pool}, {"executor of the build", create_of_build}};

static int use_kind(void **state)
{
    create = ((const kind_of_executor *)*state)->create;
    return 0;
}

static void register_of_kinds(const char *name, CMUnitTestFunction test, size_t count)
{
    static char names[MOST_TESTS][96];
    for (size_t k = 0; k < count; k++) {
        char *whole = names[registered_count];
        snprintf(whole, sizeof *names, "%s: %s", kinds[k].name, name);
        register_test((struct CMUnitTest){whole, test, use_kind, NULL, &kinds[k]});
    }
}

/* A test that runs once for each of the first `count` kinds. */
#define TEST_OF_KINDS(name, count)                                                                                     \
    static void name(void **test_state);                                                                               \
    __attribute__((constructor)) static void register_##name(void) { register_of_kinds(#name, name, count); }          \
    static void name(__attribute__((unused)) void **test_state)
#define TEST_OF_EXECUTORS(name) TEST_OF_KINDS(name, 3)
#define TEST_OF_POOLS(name)     TEST_OF_KINDS(name, 2)

static executor *make(size_t threads)
{
    executor *made = NULL;
    deberta_error err = {0};
    if (create(&made, threads, false, &err) != DEBERTA_OK) fail_msg("%s", err.message);
    return made;
}

/* Plain, not atomic, memory: ThreadSanitizer (tools/gates/run_tests.py --stage threads) checks that parallel_for orders
 * these accesses. */
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

TEST_OF_EXECUTORS(every_task_runs_once)
{
    const size_t sizes[] = {0, 1, 2, 3, 4, 5, 17, MAX_TASKS};
    for (size_t threads = 1; threads <= MAX_THREADS; threads++) {
        FREED_BY(executor_free) executor *pool = make(threads);
        assert_int_equal(pool->threads, threads);
        FOR_ROWS(s, sizes) {
            tally t = {0};
            parallel_for(pool, sizes[s], count_run, &t);
            for (size_t i = 0; i < MAX_TASKS; i++) {
                assert_int_equal(t.runs[i], i < sizes[s]);
                assert_true(t.worker_of[i] < threads);
            }
        }
        executor_free(&pool);
        assert_null(pool);
    }
}

/* Loops follow each other at once, so that workers are caught in every state between two loops. */
TEST_OF_EXECUTORS(many_short_loops)
{
    for (size_t threads = 2; threads <= 4; threads++) {
        FREED_BY(executor_free) executor *pool = make(threads);
        tally t = {0};
        int expected[MAX_TASKS] = {0};
        for (size_t loop = 0; loop < 20000; loop++) {
            size_t tasks = loop % 7;
            parallel_for(pool, tasks, count_run, &t);
            for (size_t i = 0; i < tasks; i++) assert_int_equal(t.runs[i], ++expected[i]);
        }
    }
}

/* Pauses longer than the spin: workers must be woken from sleep, and so must a caller that waits for a slow task. */
TEST_OF_EXECUTORS(sleepers_wake)
{
    FREED_BY(executor_free) executor *pool = make(3);
    tally t = {0};
    for (int loop = 0; loop < 200; loop++) {
        parallel_for(pool, 6, count_run, &t);
        usleep(loop % 4 * 100);
    }
    for (size_t i = 0; i < 6; i++) assert_int_equal(t.runs[i], 200);
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
TEST_OF_POOLS(waiting_ends_in_sleep)
{
    FREED_BY(executor_free) executor *pool = make(2);
    tally t = {0};
    for (int attempt = 0; attempt < 5; attempt++) {
        executor_begin(pool);
        for (int loop = 0; loop < 50; loop++) parallel_for(pool, 6, count_run, &t);
        if (attempt % 2) executor_end(pool);
        assert_true(all_workers_sleep());
        if (attempt % 2 == 0) executor_end(pool);
    }
    for (size_t i = 0; i < 6; i++) assert_int_equal(t.runs[i], 250);
}

/* The end of the hurry is the end of spinning: a worker that would have spun for an hour sleeps. */
TEST_OF_POOLS(spinning_ends_with_the_hurry)
{
    FREED_BY(executor_free) executor *pool = NULL;
    const thread_waiting patient = {.on_condition = create == create_condition_pool,
                                    .hurried_spin_nanoseconds = 3600000000000};
    assert_ok(thread_pool_create_waiting(&pool, 2, false, &machine, patient, NULL));
    tally t = {0};
    for (int attempt = 0; attempt < 5; attempt++) {
        executor_begin(pool);
        for (int loop = 0; loop < 50; loop++) parallel_for(pool, 6, count_run, &t);
        executor_end(pool);
        assert_true(all_workers_sleep());
    }
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

TEST_OF_EXECUTORS(all_threads_take_part)
{
    for (size_t threads = 2; threads <= MAX_THREADS; threads++) {
        FREED_BY(executor_free) executor *pool = make(threads);
        for (int loop = 0; loop < 20; loop++) {
            meeting m = {.expected = threads};
            parallel_for(pool, threads, meet, &m);
            assert_false(m.timed_out);
        }
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

TEST_OF_EXECUTORS(a_delayed_thread_holds_up_one_task_only)
{
    FREED_BY(executor_free) executor *pool = make(3);
    meeting m = {.expected = 63};
    parallel_for(pool, 64, hold_task_0, &m);
    assert_false(m.timed_out);
    assert_int_equal(m.finished, 64);
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

TEST_OF_POOLS(workers_have_names_and_block_signals_but_not_faults)
{
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    FREED_BY(executor_free) executor *pool = make(2);
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
}

TEST_OF_POOLS(pinned_workers_have_one_processor_each)
{
    cpu_set_t mine;
    sched_getaffinity(0, sizeof mine, &mine);
    if (CPU_COUNT(&mine) < 2) skip();
    FREED_BY(executor_free) executor *pool = NULL;
    assert_ok(create(&pool, 2, true, NULL));
    settings s = {.all.expected = 2};
    parallel_for(pool, 2, record_settings, &s);
    assert_int_equal(CPU_COUNT(&s.processors[1]), 1);
    assert_true(CPU_EQUAL(&s.processors[0], &mine));
    executor_free(&pool);

    assert_ok(create(&pool, (size_t)CPU_COUNT(&mine) + 2, true, NULL));
}

/* They begin on processors of their own, but must not stay bound. */
TEST_OF_POOLS(unbound_workers_may_go_where_the_caller_may)
{
    cpu_set_t mine;
    sched_getaffinity(0, sizeof mine, &mine);
    for (size_t threads = 2; threads <= MAX_THREADS; threads++) {
        FREED_BY(executor_free) executor *pool = make(threads);
        settings s = {.all.expected = threads};
        parallel_for(pool, threads, record_settings, &s);
        for (size_t w = 0; w < threads; w++) assert_true(s.seen[w] && CPU_EQUAL(&s.processors[w], &mine));
    }
}

static void note_thread(void *context, size_t task, size_t worker)
{
    pthread_t *ran = context;
    assert_int_equal(worker, 0);
    ran[task] = pthread_self();
}

TEST_OF_EXECUTORS(lone_tasks_and_lone_threads_stay_on_the_caller)
{
    pthread_t ran[8];
    FREED_BY(executor_free) executor *one = make(1), *three = make(3);
    parallel_for(one, 8, note_thread, ran);
    for (size_t i = 0; i < 8; i++) assert_true(pthread_equal(ran[i], pthread_self()));
    parallel_for(three, 1, note_thread, ran);
    assert_true(pthread_equal(ran[0], pthread_self()));
}

TEST_OF_EXECUTORS(impossible_pools_are_refused)
{
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
    FREED_BY(executor_free) executor *pool = make(2);
    tally t = {0};
    for (int loop = 0; loop < 2000; loop++) parallel_for(pool, 5, count_run, &t);
    return t.runs[4] == 2000 ? NULL : (void *)1;
}

TEST_OF_EXECUTORS(two_pools_at_once)
{
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
TEST_OF_EXECUTORS(callers_who_share_take_turns)
{
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

TEST_OF_EXECUTORS(the_next_turn_is_of_who_waited)
{
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

TEST(the_environment_sets_the_default)
{
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
    FREED_BY(free_memory) char *kept = had ? strdup(had) : NULL;
    unsetenv("OMP_NUM_THREADS");
    assert_int_equal(executor_default_threads(&six), 6);
    FOR_ROWS(k, cases) {
        setenv("OMP_NUM_THREADS", cases[k].text, 1);
        const size_t expected = cases[k].threads ? cases[k].threads : 6;
        assert_int_equal(executor_default_threads(&six), expected);
    }
    executor *by = NULL;
    setenv("OMP_NUM_THREADS", "3", 1);
    assert_ok(executor_create(&by, 0, false, NULL, NULL));
    assert_int_equal(by->threads, 3);
    executor_free(&by);
    if (kept)
        setenv("OMP_NUM_THREADS", kept, 1);
    else
        unsetenv("OMP_NUM_THREADS");
}

int main(void) { return topology_read(&machine, NULL) == DEBERTA_OK ? run_registered_tests(NULL, NULL) : 1; }
