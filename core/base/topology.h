/* Cores, caches and where threads may run; the only place that knows hwloc. SPDX-License-Identifier: MIT */
#ifndef CORE_BASE_TOPOLOGY_H
#define CORE_BASE_TOPOLOGY_H

#include "core/base/status.h"

typedef struct topology_info {
    size_t logical, cores, packages, numa_nodes; /* of the machine */
    size_t allowed_logical, allowed_cores;       /* of this process: affinity */
    double cpu_quota;                            /* cgroup limit in cores; 0: none */
    size_t usable_cores;                         /* what --threads 0 means: min of cores allowed and quota, at least 1 */
    size_t l1d_bytes, l2_bytes, l3_bytes;        /* of one instance; 0: unknown */
    size_t l2_cores, l3_cores;                   /* cores that share one instance */
} topology_info;

deberta_status topology_read(topology_info *info, deberta_error *err);
/* Logical processor to which worker w (0-based) of a pool should be bound: one per core first. -1: unknown. */
int topology_worker_cpu(const topology_info *info, size_t worker);

#endif
