/* Describes cores, caches and the processors that threads may use; only this module calls hwloc.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#include "core/base/status.h"

enum { TOPOLOGY_MAX_WORKERS = 1024 };

typedef struct topology_info {
    size_t logical, cores, packages, numa_nodes; /* of the machine */
    size_t allowed_logical, allowed_cores;       /* of this process: affinity */
    int affinity_error; /* why the system does not say which those are; 0: it does. Cores and caches are not known then,
                           each processor that is online counts as a core, and threads run where the system likes */
    double cpu_quota;   /* cgroup limit in cores; 0: none */
    size_t usable_cores;                   /* what --threads 0 means: min of cores allowed and quota, at least 1 */
    size_t l1d_bytes, l2_bytes, l3_bytes;  /* of one instance; 0: unknown */
    size_t l2_cores, l3_cores;             /* cores that share one instance; 0: unknown */
    size_t workers;                        /* entries of worker_cpu: allowed_logical, at most TOPOLOGY_MAX_WORKERS */
    int worker_cpu[TOPOLOGY_MAX_WORKERS];  /* in the operating system's numbering */
    int worker_core[TOPOLOGY_MAX_WORKERS]; /* the core that it belongs to, any numbering */
} topology_info;

deberta_status topology_read(topology_info *info, deberta_error *err);
/* All second and last-level caches of the machine together; 0: unknown. */
size_t topology_cache_bytes(const topology_info *info);
/* Logical processor to which worker w (0-based) of a pool should be bound: one per core first, the fastest kind of core
 * first, neighbours in the caches next to each other. -1: there are more workers than processors; leave it unbound. */
int topology_worker_cpu(const topology_info *info, size_t worker);
/* Logical processor on which worker w >= 1 of an unbound pool had best begin, if its caller is on this one now: w cores
 * further on, so that no two of as many threads as cores share one. -1: not known. */
int topology_processor_apart(const topology_info *info, int caller_processor, size_t worker);

/* A machine that is not this one, for tests. Members left NULL are taken from this machine. */
typedef struct topology_source {
    const char *synthetic;   /* hwloc's description: "package:2 l3:1 core:8 pu:2" */
    const char *allowed;     /* processors the process may use: "0-3,8" */
    const char *root_folder; /* stands in for "/" when /proc and /sys/fs/cgroup are read; "" is the real one */
} topology_source;

deberta_status topology_read_source(topology_info *info, const topology_source *source, deberta_error *err);

/* On which processors threads begin, and where they may run. On Linux; elsewhere all is left to the system. */

typedef struct processor_set {
    bool known;
#ifdef __linux__
    cpu_set_t processors;
#endif
} processor_set;

/* What the calling thread may use. Not known on machines with more processors than a cpu_set_t has. */
processor_set affinity_of_caller(void);
void affinity_restrict_caller(const processor_set *set);
/* The processor that the calling thread is on just now; -1: not known. */
int affinity_current_processor(void);
/* A thread made with these attributes never runs elsewhere; its creation fails with EINVAL if the processor is not
 * ours. -1 leaves the attributes as they are. 0, or what errno calls the failure. */
int affinity_bind_new_thread(pthread_attr_t *attributes, int processor);
