/* Implements the part that executors of every kind share: the queue of callers of a shared executor.
 *
 * SPDX-License-Identifier: MIT */
#include "core/base/parallel.h"

void executor_free(executor **old)
{
    executor *freed = *old;
    *old = NULL;
    if (freed) freed->kind->free(freed);
}

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

/* Callers queue, because a plain mutex mostly goes back to the thread that has just released it. Of two sessions that
 * encode one text after the other, one would hardly ever get its turn. */
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
