/* Executors: the choice of a build, and the queue of those who share one. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "core/base/parallel.h"
#include "core/base/thread_pool.h"
#if THREADS_OPENMP
#include "core/base/openmp_team.h"
#endif

/* OpenMP allows a list, one number for each level of nesting: the first is that of our loops. */
static size_t threads_of_environment(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    char *end;
    if (!text || text[0] < '0' || text[0] > '9') return 0;
    errno = 0;
    const unsigned long threads = strtoul(text, &end, 10);
    if (errno || (*end != '\0' && *end != ',')) return 0;
    return threads <= TOPOLOGY_MAX_WORKERS ? threads : TOPOLOGY_MAX_WORKERS;
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

void executor_free(executor **old)
{
    executor *freed = *old;
    *old = NULL;
    if (freed) freed->kind->free(freed);
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

deberta_status executor_init(executor *made, const executor_kind *kind, size_t threads, deberta_error *err)
{
    *made = (executor){.kind = kind, .threads = threads};
    if (pthread_mutex_init(&made->lock, NULL) != 0) DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "the system refuses a mutex");
    if (pthread_cond_init(&made->next, NULL) == 0) return DEBERTA_OK;
    pthread_mutex_destroy(&made->lock);
    DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "the system refuses a condition variable");
}

void executor_finish(executor *old)
{
    pthread_cond_destroy(&old->next);
    pthread_mutex_destroy(&old->lock);
}

/* A queue, because a mutex alone would mostly go back to who has just released it: with two sessions that encode one
 * text after the other, one would hardly ever have its turn. */
void executor_begin(executor *by)
{
    pthread_mutex_lock(&by->lock);
    const size_t mine = by->queued++;
    while (by->served != mine) pthread_cond_wait(&by->next, &by->lock);
    pthread_mutex_unlock(&by->lock);
    if (by->kind->hurry) by->kind->hurry(by);
}

void executor_end(executor *by)
{
    if (by->kind->rest) by->kind->rest(by);
    pthread_mutex_lock(&by->lock);
    by->served++;
    if (by->served != by->queued) pthread_cond_broadcast(&by->next);
    pthread_mutex_unlock(&by->lock);
}
