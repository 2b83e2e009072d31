/* Describes cores, caches and the processors that threads may use; only this module calls hwloc.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#include "core/base/status.h"
#include "core/base/text.h"

enum { TOPOLOGY_MAX_WORKERS = 1024 };

typedef struct topology_info {
    size_t logical, cores, packages, numa_nodes; /* numbers of the whole machine */
    size_t allowed_logical, allowed_cores;       /* numbers that this process may use (affinity) */
    int affinity_error;  /* errno of the affinity query; 0: it succeeded. After an error cores and caches are unknown,
                          * each online processor counts as a core, and the system places the threads */
    double cpu_quota;    /* cgroup limit in cores; 0: none */
    size_t usable_cores; /* the meaning of --threads 0: min of cores allowed and quota, at least 1 */
    size_t l1d_bytes, l2_bytes, l3_bytes; /* bytes of one instance; 0: unknown */
    size_t l2_cores, l3_cores;            /* cores that share one instance; 0: unknown */
    size_t workers; /* number of entries of worker_cpu: allowed_logical, at most TOPOLOGY_MAX_WORKERS */
    int worker_cpu[TOPOLOGY_MAX_WORKERS];  /* processor of each worker, in the operating system's numbering */
    int worker_core[TOPOLOGY_MAX_WORKERS]; /* core of each entry of worker_cpu, in any numbering */
} topology_info;

deberta_status topology_read(topology_info *info, deberta_error *err);
/* Notes that the system does not say which processors the process may use. */
deberta_status topology_note(const topology_info *info, kept_notes *notes, deberta_error *err);
/* Returns the bytes of all second and last-level caches of the machine together; 0: unknown. */
size_t topology_cache_bytes(const topology_info *info);
/* Returns the logical processor to which worker w (0-based) of a pool should be bound: one per core first, the fastest
 * kind of core first, neighbours in the caches next to each other. -1: there are more workers than processors; leave it
 * unbound. */
int topology_worker_cpu(const topology_info *info, size_t worker);
/* Returns the logical processor on which worker w >= 1 of an unbound pool should begin if its caller is on
 * caller_processor: w cores further on, so that up to as many threads as cores share none. -1: unknown. */
int topology_processor_apart(const topology_info *info, int caller_processor, size_t worker);

/* Describes a simulated machine, for tests. Members left NULL are taken from this machine. */
typedef struct topology_source {
    const char *synthetic;   /* machine in hwloc's notation: "package:2 l3:1 core:8 pu:2" */
    const char *allowed;     /* processors that the process may use: "0-3,8" */
    const char *root_folder; /* folder that replaces "/" when /proc and /sys/fs/cgroup are read; "" is the real one */
} topology_source;

deberta_status topology_read_source(topology_info *info, const topology_source *source, deberta_error *err);

/* Thread affinity: the processors on which threads begin, and those that they may use. Only Linux supports it;
 * elsewhere the system decides. */

typedef struct processor_set {
    bool known;
#ifdef __linux__
    cpu_set_t processors;
#endif
} processor_set;

/* Returns the processors that the calling thread may use. They are unknown on machines with more processors than a
 * cpu_set_t has. */
processor_set affinity_of_caller(void);
void affinity_restrict_caller(const processor_set *set);
/* Returns the processor on which the calling thread runs now; -1: unknown. */
int affinity_current_processor(void);
/* Binds a thread made with these attributes to one processor; its creation fails with EINVAL if the process may not use
 * that processor. -1 leaves the attributes unchanged. Returns 0 or an errno value. */
int affinity_bind_new_thread(pthread_attr_t *attributes, int processor);
