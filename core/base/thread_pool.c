/* Implements the thread pool. A loop runs as follows:
 *
 *     caller                                     worker
 *     ------                                     ------
 *     describe the loop, reset next_task         wait until epoch changes: spin a little, then sleep
 *     open the gate, advance epoch, wake         pass the gate: +1, if it is open
 *     take tasks until none is left              take tasks until none is left
 *     close the gate                             leave: -1; the last one wakes the caller if it sleeps
 *     wait until nobody is inside
 *
 * A worker that comes late finds the gate closed and goes back to waiting: the caller waits for threads that are
 * inside, and those hold at most one task each. Nothing but next_task is written per task. The loop's description is
 * written only while the gate is closed and nobody is inside, so it needs no atomics of its own.
 *
 * SPDX-License-Identifier: MIT */
#include "core/base/thread_pool.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/base/clock.h"
#include "core/base/topology.h"

#ifdef __linux__
#define HAVE_FUTEX 1
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#define HAVE_FUTEX 0
#endif

enum {
    LINE_BYTES = 64,
    /* Limit of spinning before a waiting thread sleeps. Waking a sleeper costs 5 to 50 us, and the serial gaps between
     * the loops of a layer are below 10 us: long enough to stay awake across them, short enough to cost no other thread
     * a time slice. */
    SPIN_NANOSECONDS = 40000,
    /* The limit between executor_begin and _end, while no other thread needs these processors. A virtual machine hands
     * a sleeping processor back to the host, which may be slow to return it. */
    HURRIED_SPIN_NANOSECONDS = 5000000,
    /* The pool reads the count of preemptions this often, to see whether other threads need these processors. */
    LOOK_FOR_OTHERS_NANOSECONDS = 100000,
    /* After a preemption it assumes for this long that they do. */
    OTHERS_STAY_NANOSECONDS = 1000000,
    WATCHERS = 2, /* workers that read the count, which is a system call: the caller and the first other worker */
    /* Number of pauses between two readings of the clock, which costs about as much as one pause. */
    PAUSES_PER_LOOK = 16,
};

/* Bits of the gate: two flags, and above them the number of threads inside, in units of GATE_INSIDE. */
enum { GATE_OPEN = 1, GATE_CALLER_SLEEPS = 2, GATE_INSIDE = 4 };

typedef struct worker_thread {
    struct thread_pool *pool;
    size_t worker;
    pthread_t thread;
} worker_thread;

typedef struct thread_pool {
    executor base;
    bool spin, futex;
    long long hurried_spin_nanoseconds;
    worker_thread *workers; /* [threads], entry 0 unused */
    size_t started;         /* number of the last worker that exists, from 1 on */
    bool spread;            /* whether workers begin on separate processors and may then move to any of `allowed` */
    processor_set allowed;
    parallel_body body;
    void *context;
    size_t tasks;
    pthread_mutex_t mutex; /* mutex and changed: used only where there are no futexes */
    pthread_cond_t changed;
    /* Each of these has its own cache line: spinning readers of one must not slow down the writers of another. */
    _Alignas(LINE_BYTES) atomic_uint epoch;
    atomic_uint sleepers; /* number of workers that sleep until epoch changes, or are about to */
    atomic_bool stop;
    _Alignas(LINE_BYTES) atomic_size_t next_task;
    _Alignas(LINE_BYTES) atomic_uint gate;
    _Alignas(LINE_BYTES) atomic_bool hurried; /* whether the caller is between executor_begin and executor_end */
    atomic_llong others_until;                /* time until which other threads are assumed to need the processors */
    atomic_long preemptions;                  /* preemptions of this process at the last count */
} thread_pool;

/* ----------------------------------------------------------------------------------------------- waiting and waking */

static void pause_processor(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* `yield` is a no-op on most cores; isb takes about as long as x86's pause */
#endif
}

/* Checks whether any thread of this process was preempted since the last call, and sets others_until if so. */
static void look_for_others(thread_pool *pool, long long now)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return;
    if (atomic_exchange_explicit(&pool->preemptions, usage.ru_nivcsw, memory_order_relaxed) != usage.ru_nivcsw)
        atomic_store_explicit(&pool->others_until, now + OTHERS_STAY_NANOSECONDS, memory_order_relaxed);
}

/* Returns whether a waiting thread may go on spinning. It should sleep if another thread of the loop may have been
 * preempted, because that one then gets its processor. */
static bool may_spin_longer(const thread_pool *pool, long long now)
{
    return atomic_load_explicit(&pool->hurried, memory_order_relaxed) &&
           now > atomic_load_explicit(&pool->others_until, memory_order_relaxed);
}

/* Spins while *word has that value. Returns false if it still has it when the time is over. */
static bool spin_until_changed(thread_pool *pool, size_t worker, atomic_uint *word, unsigned value)
{
    if (!pool->spin) return atomic_load_explicit(word, memory_order_acquire) != value;
    const long long begin = clock_nanoseconds();
    long long look = begin + SPIN_NANOSECONDS;
    for (;;) {
        for (int i = 0; i < PAUSES_PER_LOOK; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != value) return true;
            pause_processor();
        }
        const long long now = clock_nanoseconds();
        if (now < look) continue;
        if (worker < WATCHERS) look_for_others(pool, now);
        if (now - begin >= pool->hurried_spin_nanoseconds || !may_spin_longer(pool, now)) return false;
        look = now + LOOK_FOR_OTHERS_NANOSECONDS;
    }
}

#if HAVE_FUTEX
static void futex_sleep(atomic_uint *word, unsigned value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(atomic_uint *word, size_t count)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count < INT_MAX ? (int)count : INT_MAX, NULL, NULL, 0);
}
#else
static void futex_sleep(atomic_uint *word, unsigned value) { (void)word, (void)value; }
static void futex_wake(atomic_uint *word, size_t count) { (void)word, (void)count; }
#endif

/* Sleeps until woken, unless *word already differs from value; may wake up for no reason. */
static void sleep_while_equal(thread_pool *pool, atomic_uint *word, unsigned value)
{
    if (pool->futex) {
        futex_sleep(word, value);
        return;
    }
    pthread_mutex_lock(&pool->mutex);
    while (atomic_load(word) == value) pthread_cond_wait(&pool->changed, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
}

/* Wakes up to `count` threads that sleep on a word, which the caller has changed before. */
static void wake(thread_pool *pool, atomic_uint *word, size_t count)
{
    if (pool->futex) {
        futex_wake(word, count);
        return;
    }
    pthread_mutex_lock(&pool->mutex); /* One condition serves both words, so all sleepers must wake up and look. */
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->mutex);
}

/* ----------------------------------------------------------------------------------------------------------- a loop */

static void take_tasks(thread_pool *pool, size_t worker)
{
    for (;;) {
        size_t task = atomic_fetch_add_explicit(&pool->next_task, 1, memory_order_relaxed);
        if (task >= pool->tasks) return;
        pool->body(pool->context, task, worker);
    }
}

/* Wakes as many sleepers as there are tasks for. A worker increments sleepers before it reads epoch for the last time;
 * this function reads sleepers after epoch has changed. Both are sequentially consistent, so either the worker sees the
 * change or this function sees the sleeper. */
static void announce(thread_pool *pool, size_t wanted)
{
    atomic_fetch_add(&pool->epoch, 1);
    if (atomic_load(&pool->sleepers)) wake(pool, &pool->epoch, wanted);
}

/* Waits, as the caller, until every worker inside the closed gate has left it. */
static void wait_until_empty(thread_pool *pool)
{
    unsigned gate = atomic_load_explicit(&pool->gate, memory_order_acquire);
    while (gate >= GATE_INSIDE) {
        if (!spin_until_changed(pool, 0, &pool->gate, gate)) {
            unsigned sleeping = gate | GATE_CALLER_SLEEPS;
            if (atomic_compare_exchange_strong(&pool->gate, &gate, sleeping)) {
                sleep_while_equal(pool, &pool->gate, sleeping);
                atomic_fetch_and(&pool->gate, ~(unsigned)GATE_CALLER_SLEEPS);
            }
        }
        gate = atomic_load_explicit(&pool->gate, memory_order_acquire);
    }
}

static void thread_pool_run(executor *self, size_t tasks, parallel_body body, void *context)
{
    thread_pool *pool = (thread_pool *)self;
    if (self->threads == 1 || tasks <= 1) {
        for (size_t task = 0; task < tasks; task++) body(context, task, 0);
        return;
    }
    assert(!(atomic_load(&pool->gate) & GATE_OPEN) && "parallel_for inside parallel_for");
    pool->body = body;
    pool->context = context;
    pool->tasks = tasks;
    atomic_store_explicit(&pool->next_task, 0, memory_order_relaxed);
    atomic_fetch_or_explicit(&pool->gate, GATE_OPEN, memory_order_release);
    announce(pool, tasks - 1);

    take_tasks(pool, 0);
    atomic_fetch_and_explicit(&pool->gate, ~(unsigned)GATE_OPEN, memory_order_acq_rel);
    wait_until_empty(pool);
}

static void hurry(executor *self)
{
    atomic_store_explicit(&((thread_pool *)self)->hurried, true, memory_order_relaxed);
}

static void rest(executor *self)
{
    atomic_store_explicit(&((thread_pool *)self)->hurried, false, memory_order_relaxed);
}

static void join_loop(thread_pool *pool, size_t worker)
{
    if (!(atomic_load_explicit(&pool->gate, memory_order_relaxed) & GATE_OPEN)) return;
    unsigned before = atomic_fetch_add_explicit(&pool->gate, GATE_INSIDE, memory_order_acquire);
    if (before & GATE_OPEN) take_tasks(pool, worker);
    before = atomic_fetch_sub_explicit(&pool->gate, GATE_INSIDE, memory_order_release);
    if (before == (GATE_INSIDE | GATE_CALLER_SLEEPS)) wake(pool, &pool->gate, 1);
}

static unsigned wait_for_epoch_after(thread_pool *pool, size_t worker, unsigned seen)
{
    while (!spin_until_changed(pool, worker, &pool->epoch, seen)) {
        atomic_fetch_add(&pool->sleepers, 1);
        if (atomic_load(&pool->epoch) == seen) sleep_while_equal(pool, &pool->epoch, seen);
        atomic_fetch_sub(&pool->sleepers, 1);
        if (atomic_load(&pool->epoch) != seen) break;
    }
    return atomic_load_explicit(&pool->epoch, memory_order_acquire);
}

static void *run_worker(void *argument)
{
    worker_thread *self = argument;
    thread_pool *pool = self->pool;
    unsigned seen = 0;
    if (pool->spread) affinity_restrict_caller(&pool->allowed);
    for (;;) {
        seen = wait_for_epoch_after(pool, self->worker, seen);
        if (atomic_load_explicit(&pool->stop, memory_order_relaxed)) return NULL;
        join_loop(pool, self->worker);
    }
}

/* ------------------------------------------------------------------------------------------------- starting, ending */

/* The application's signals belong to its own threads. Signals of faults stay deliverable, so that a crash is reported
 * as one. */
static void block_signals(sigset_t *before)
{
    sigset_t set;
    sigfillset(&set);
    sigdelset(&set, SIGSEGV);
    sigdelset(&set, SIGBUS);
    sigdelset(&set, SIGFPE);
    sigdelset(&set, SIGILL);
    sigdelset(&set, SIGTRAP);
    sigdelset(&set, SIGSYS);
    pthread_sigmask(SIG_BLOCK, &set, before);
}

static int start_worker(worker_thread *worker, int cpu)
{
    pthread_attr_t attributes;
    int code = pthread_attr_init(&attributes);
    if (code) return code;
    code = affinity_bind_new_thread(&attributes, cpu);
    if (!code) code = pthread_create(&worker->thread, &attributes, run_worker, worker);
    pthread_attr_destroy(&attributes);
#ifdef __linux__
    char name[16];
    snprintf(name, sizeof name, "worker-%u", (unsigned)(worker->worker % 100000));
    if (!code) pthread_setname_np(worker->thread, name);
#endif
    return code;
}

/* Linux puts a new thread where its creator runs, if the other processors have not been idle for long, and takes 6 to
 * 22 ms to move one of the two: as long as a forward pass. */
static int first_processor(const thread_pool *pool, bool pin, const topology_info *machine, int here, size_t worker)
{
    if (pin) return topology_worker_cpu(machine, worker);
    return pool->spread ? topology_processor_apart(machine, here, worker) : -1;
}

static deberta_status start_workers(thread_pool *pool, bool pin, const topology_info *machine, deberta_error *err)
{
    sigset_t before;
    int code = 0, here = affinity_current_processor();
    block_signals(&before);
    for (size_t w = 1; w < pool->base.threads && !code; w++) {
        pool->workers[w] = (worker_thread){.pool = pool, .worker = w};
        code = start_worker(&pool->workers[w], first_processor(pool, pin, machine, here, w));
        /* The processor may be forbidden: the thread then starts anywhere. */
        if (code && !pin) code = start_worker(&pool->workers[w], -1);
        if (!code) pool->started = w;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!code) return DEBERTA_OK;
    if (pin && code == EINVAL)
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "worker %zu of %zu cannot be bound to processor %d", pool->started + 1,
                     pool->base.threads, topology_worker_cpu(machine, pool->started + 1));
    DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "thread %zu of %zu cannot be started: %s", pool->started + 2,
                 pool->base.threads, strerror(code));
}

static void free_pool(executor *self)
{
    thread_pool *old = (thread_pool *)self;
    atomic_store_explicit(&old->stop, true, memory_order_relaxed);
    announce(old, self->threads);
    for (size_t w = 1; w <= old->started; w++) pthread_join(old->workers[w].thread, NULL);
    pthread_mutex_destroy(&old->mutex);
    pthread_cond_destroy(&old->changed);
    executor_finish(self);
    free(old->workers);
    free(old);
}

/* Frees a pool whose threads have not been started. */
static deberta_status pool_without_threads(thread_pool **pool, size_t threads, deberta_error *err)
{
    static const executor_kind kind = {.run = thread_pool_run, .hurry = hurry, .rest = rest, .free = free_pool};
    if (threads == 0 || threads > UINT_MAX / GATE_INSIDE)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "a pool of %zu threads", threads);
    thread_pool *made = aligned_alloc(LINE_BYTES, sizeof *made);
    worker_thread *workers = calloc(threads, sizeof *workers);
    deberta_status status = made && workers ? DEBERTA_OK : DEBERTA_E_MEMORY;
    if (status != DEBERTA_OK) status_fail(err, status, "out of memory for a pool of %zu threads", threads);
    if (status == DEBERTA_OK) {
        *made = (thread_pool){.workers = workers};
        status = executor_init(&made->base, &kind, threads, err);
    }
    if (status != DEBERTA_OK) {
        free(made);
        free(workers);
        return status;
    }
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->changed, NULL);
    *pool = made;
    return DEBERTA_OK;
}

deberta_status thread_pool_create_waiting(executor **made, size_t threads, bool pin, const topology_info *machine,
                                          thread_waiting waiting, deberta_error *err)
{
    thread_pool *pool = NULL;
    *made = NULL;
    DEBERTA_TRY(pool_without_threads(&pool, threads, err));
    executor *started = &pool->base;
    pool->futex = HAVE_FUTEX && !waiting.on_condition;
    pool->hurried_spin_nanoseconds =
        waiting.hurried_spin_nanoseconds ? waiting.hurried_spin_nanoseconds : HURRIED_SPIN_NANOSECONDS;
    /* With more threads than cores, one that spins keeps the one that it waits for from running. */
    pool->spin = threads == 1 || threads <= machine->usable_cores;
    pool->allowed = affinity_of_caller();
    pool->spread = !pin && pool->spin && pool->allowed.known;
    const deberta_status status = start_workers(pool, pin, machine, err);
    if (status == DEBERTA_OK)
        *made = started;
    else
        executor_free(&started);
    return status;
}

deberta_status thread_pool_create(executor **made, size_t threads, bool pin, const topology_info *machine,
                                  deberta_error *err)
{
    return thread_pool_create_waiting(made, threads, pin, machine, (thread_waiting){0}, err);
}
