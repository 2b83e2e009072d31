/* On which processors threads begin, and where they may run. On Linux; elsewhere all is left to the system.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

typedef struct processor_set {
    bool known;
#ifdef __linux__
    cpu_set_t processors;
#endif
} processor_set;

/* What the calling thread may use. Not known on machines with more processors than a cpu_set_t has. */
processor_set affinity_of_caller(void);
/* Why the system does not say which processors the calling thread may use, as errno calls it; 0: it does, whatever
 * their number, or there is nothing to ask. */
int affinity_failure(void);
void affinity_restrict_caller(const processor_set *set);
/* The processor that the calling thread is on just now; -1: not known. */
int affinity_current_processor(void);
/* A thread made with these attributes never runs elsewhere; its creation fails with EINVAL if the processor is not
 * ours. -1 leaves the attributes as they are. 0, or what errno calls the failure. */
int affinity_bind_new_thread(pthread_attr_t *attributes, int processor);
