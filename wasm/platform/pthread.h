/* Declares locks for a single thread, which nothing contends for. Debian's wasi-libc has no <pthread.h>.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

typedef struct {
    int unused;
} pthread_mutex_t;
typedef struct {
    int unused;
} pthread_cond_t;
typedef struct {
    int unused;
} pthread_attr_t;

static inline int pthread_mutex_init(pthread_mutex_t *m, const void *a) { return (void)m, (void)a, 0; }
static inline int pthread_mutex_destroy(pthread_mutex_t *m) { return (void)m, 0; }
static inline int pthread_mutex_lock(pthread_mutex_t *m) { return (void)m, 0; }
static inline int pthread_mutex_unlock(pthread_mutex_t *m) { return (void)m, 0; }
static inline int pthread_cond_init(pthread_cond_t *c, const void *a) { return (void)c, (void)a, 0; }
static inline int pthread_cond_destroy(pthread_cond_t *c) { return (void)c, 0; }
static inline int pthread_cond_broadcast(pthread_cond_t *c) { return (void)c, 0; }
static inline int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
    (void)c, (void)m;
    __builtin_trap(); /* the only thread would wait for ever */
}
