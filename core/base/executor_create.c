/* Creates an executor of the kind that this build prefers, with the requested number of threads: the thread pool, or
 * OpenMP's team, which is implemented here.
 *
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#if THREADS_OPENMP
#include <omp.h>
#endif

#include "core/base/parallel.h"
#include "core/base/thread_pool.h"

#if THREADS_OPENMP

/* OpenMP's threads run the loops in programs that already use them (meson option -Dthreads=openmp).
 *
 * The environment of the whole process determines how long its threads spin between two loops, and where they run
 * (OMP_WAIT_POLICY, GOMP_SPINCOUNT, KMP_BLOCKTIME, OMP_PROC_BIND): docs/benchmarking.md states the cost. A thread that
 * has run loops before a fork() hangs in its next one in the child, with GCC's library; a new thread does not. */
static void openmp_team_run(executor *self, size_t tasks, parallel_body body, void *context)
{
    if (self->threads == 1 || tasks <= 1) {
        for (size_t task = 0; task < tasks; task++) body(context, task, 0);
        return;
    }
#pragma omp parallel for schedule(dynamic, 1) num_threads((int)self->threads)
    for (size_t task = 0; task < tasks; task++) body(context, task, (size_t)omp_get_thread_num());
}

static void free_team(executor *self)
{
    executor_finish(self);
    free(self);
}

/* Creates a team; threads >= 1 counts the caller. OpenMP starts the threads at the first loop. pin is refused
 * (DEBERTA_E_UNSUPPORTED) for more than one thread, because the rest of the process uses the same threads. */
static deberta_status openmp_team_create(executor **team, size_t threads, bool pin, deberta_error *err)
{
    static const executor_kind kind = {.run = openmp_team_run, .free = free_team};
    *team = NULL;
    if (threads == 0 || threads > INT_MAX) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "a team of %zu threads", threads);
    if (pin && threads > 1)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED,
                     "threads cannot be pinned: this build runs its loops on OpenMP, which OMP_PROC_BIND binds");
    executor *made = malloc(sizeof *made);
    if (!made) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for a team of %zu threads", threads);
    const deberta_status status = executor_init(made, &kind, threads, err);
    if (status == DEBERTA_OK)
        *team = made;
    else
        free(made);
    return status;
}

#endif

/* Reads OMP_NUM_THREADS, of which OpenMP allows a list, one number per level of nesting: the first is that of our
 * loops. Numbers may have blanks around them. Returns 0 where the value is not a number from 1 to TOPOLOGY_MAX_WORKERS.
 */
static size_t threads_of_environment(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    char *end;
    static const char blanks[] = " \t\n\v\f\r";
    if (!text) return 0;
    text += strspn(text, blanks);
    if (text[0] < '0' || text[0] > '9') return 0;
    errno = 0;
    const unsigned long threads = strtoul(text, &end, 10);
    end += strspn(end, blanks);
    if (errno || (*end != '\0' && *end != ',')) return 0;
    return threads <= TOPOLOGY_MAX_WORKERS ? threads : 0;
}

const char *executor_threads_unread(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    return text && *text && !threads_of_environment() ? text : NULL;
}

size_t executor_default_threads(const topology_info *machine)
{
    const size_t asked = threads_of_environment();
    return asked ? asked : machine->usable_cores;
}

deberta_status executor_create(executor **made, size_t threads, bool pin, const topology_info *machine,
                               deberta_error *err)
{
    topology_info here;
    *made = NULL;
    if (!machine && threads != 1) {
        DEBERTA_TRY(topology_read(&here, err));
        machine = &here;
    }
    if (threads == 0) threads = executor_default_threads(machine);
#if THREADS_OPENMP
    return openmp_team_create(made, threads, pin, err);
#else
    return thread_pool_create(made, threads, pin, machine, err);
#endif
}

deberta_status deberta_threads_create(deberta_threads **made, size_t count, int pin, deberta_error *err)
{
    if (!made) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "deberta_threads_create needs a place for the threads");
    *made = NULL;
    if (count > TOPOLOGY_MAX_WORKERS)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%zu threads are more than %d", count, TOPOLOGY_MAX_WORKERS);
    deberta_threads *threads = calloc(1, sizeof *threads);
    if (!threads) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for shared threads");
    const deberta_status status = executor_create(&threads->executor, count, pin != 0, NULL, err);
    if (status == DEBERTA_OK)
        *made = threads;
    else
        free(threads);
    return status;
}

void deberta_threads_free(deberta_threads **threads)
{
    if (!threads || !*threads) return;
    executor_free(&(*threads)->executor);
    free(*threads);
    *threads = NULL;
}

size_t deberta_threads_count(const deberta_threads *threads) { return threads->executor->threads; }
