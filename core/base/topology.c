/* Reads the hardware and the allowed processors from hwloc, and a container's share of processor time from the cgroup
 * files. Binds threads to processors by Linux system calls.
 *
 * SPDX-License-Identifier: MIT */
#include "core/base/topology.h"

#include <errno.h>
#include <hwloc.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/text.h"

/* ---------------------------------------------------------------------------------------------------- affinity */

/* On Linux, system calls place threads on processors; elsewhere these functions do nothing and the system decides. */

#ifdef __linux__

processor_set affinity_of_caller(void)
{
    processor_set set = {0};
    set.known = sched_getaffinity(0, sizeof set.processors, &set.processors) == 0;
    return set;
}

/* Returns the errno value with which the system refuses to say which processors the calling thread may use. Returns 0
 * if it says so, whatever their number, or if there is nothing to ask. EINVAL because of a large machine ends when the
 * set is large enough; EINVAL from a system-call filter never does. */
static int affinity_failure(void)
{
    enum { FIRST_PROCESSORS = 1 << 10, MOST_PROCESSORS = 1 << 20 };
    int reason = EINVAL;
    for (size_t processors = FIRST_PROCESSORS; reason == EINVAL && processors <= MOST_PROCESSORS; processors *= 4) {
        cpu_set_t *set = CPU_ALLOC(processors);
        if (!set) return ENOMEM;
        reason = sched_getaffinity(0, CPU_ALLOC_SIZE(processors), set) == 0 ? 0 : errno;
        CPU_FREE(set);
    }
    return reason;
}

void affinity_restrict_caller(const processor_set *set)
{
    if (set->known) sched_setaffinity(0, sizeof set->processors, &set->processors);
}

int affinity_current_processor(void) { return sched_getcpu(); }

int affinity_bind_new_thread(pthread_attr_t *attributes, int processor)
{
    if (processor < 0) return 0;
    cpu_set_t *set = CPU_ALLOC((size_t)processor + 1);
    size_t bytes = CPU_ALLOC_SIZE((size_t)processor + 1);
    if (!set) return ENOMEM;
    CPU_ZERO_S(bytes, set);
    CPU_SET_S((size_t)processor, bytes, set);
    int code = pthread_attr_setaffinity_np(attributes, bytes, set);
    CPU_FREE(set);
    return code;
}

#else

processor_set affinity_of_caller(void) { return (processor_set){0}; }
static int affinity_failure(void) { return 0; }
void affinity_restrict_caller(const processor_set *set) { (void)set; }
int affinity_current_processor(void) { return -1; }

int affinity_bind_new_thread(pthread_attr_t *attributes, int processor)
{
    (void)attributes, (void)processor;
    return 0;
}

#endif

/* ----------------------------------------------------------------------------------------------------- cgroup quota */

enum { PATH_BYTES = 4096 };

/* Reads "quota period" (cpu.max of version 2) or one number (the two files of version 1); "max" and -1 mean no limit.
 * Returns how many numbers it read. */
static int read_numbers(const char *path, long long *first, long long *second)
{
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    int count = fscanf(file, "%lld %lld", first, second);
    stream_discard(file);
    return count < 0 ? 0 : count;
}

/* Returns the limit in cores that one cgroup folder sets, or 0 for none. */
static double folder_quota(const char *folder)
{
    char path[PATH_BYTES + 32];
    long long quota = 0, period = 0, unused;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (read_numbers(path, &quota, &period) != 2) {
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
        if (read_numbers(path, &quota, &unused) != 1) return 0;
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
        if (read_numbers(path, &period, &unused) != 1) return 0;
    }
    return quota > 0 && period > 0 ? (double)quota / (double)period : 0;
}

static double smaller_limit(double a, double b) { return a > 0 && (b <= 0 || a < b) ? a : b; }

/* Returns the smallest limit of a group and of the groups above it, which bind it too. In a container the path may be
 * the host's and not exist below the mount: the walk then ends at the mount itself, which is the container's own group.
 */
static double quota_up_to(const char *mount, const char *group)
{
    char folder[PATH_BYTES];
    size_t mount_length = strlen(mount);
    if (snprintf(folder, sizeof folder, "%s%s", mount, group) >= (int)sizeof folder) return 0;
    double limit = folder_quota(folder);
    while (strlen(folder) > mount_length) {
        *strrchr(folder, '/') = '\0';
        limit = smaller_limit(folder_quota(folder), limit);
    }
    return limit;
}

/* Returns whether `name` is one of the comma-separated controllers. */
static bool lists_controller(const char *controllers, size_t length, const char *name)
{
    size_t name_length = strlen(name);
    for (const char *c = controllers; c < controllers + length;) {
        size_t item = strcspn(c, ",:");
        if (item == name_length && memcmp(c, name, item) == 0) return true;
        c += item + 1;
    }
    return false;
}

/* Lines of /proc/self/cgroup are "id:controllers:/path"; version 2 has id 0 and no controllers. */
static double line_quota(const char *root_folder, char *line)
{
    char mount[PATH_BYTES];
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) return 0;
    size_t length = (size_t)(group - ++controllers);
    group++;
    group[strcspn(group, "\n")] = '\0';
    if (strcmp(group, "/") == 0) *group = '\0';

    if (length == 0) {
        double limit = 0;
        snprintf(mount, sizeof mount, "%s/sys/fs/cgroup", root_folder);
        limit = quota_up_to(mount, group);
        snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/unified", root_folder);
        return smaller_limit(quota_up_to(mount, group), limit);
    }
    if (!lists_controller(controllers, length, "cpu")) return 0;
    snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/%.*s", root_folder, (int)length, controllers);
    double limit = quota_up_to(mount, group);
    snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/cpu", root_folder);
    return smaller_limit(quota_up_to(mount, group), limit);
}

static double cgroup_quota(const char *root_folder)
{
    char path[PATH_BYTES], line[PATH_BYTES];
    double limit = 0;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root_folder);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) limit = smaller_limit(line_quota(root_folder, line), limit);
    stream_discard(file);
    return limit;
}

/* ------------------------------------------------------------------------------------------------- cores and caches */

static size_t count_type(hwloc_topology_t topology, hwloc_obj_type_t type)
{
    int count = hwloc_get_nbobjs_by_type(topology, type);
    return count > 0 ? (size_t)count : 0;
}

/* Some virtual machines and old Arm boards report no cores: every logical processor then counts as a core. */
static hwloc_obj_type_t core_type(hwloc_topology_t topology)
{
    return count_type(topology, HWLOC_OBJ_CORE) ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
}

static size_t cores_within(hwloc_topology_t topology, hwloc_const_cpuset_t set)
{
    size_t count = 0;
    hwloc_obj_type_t type = core_type(topology);
    for (hwloc_obj_t core = NULL; (core = hwloc_get_next_obj_by_type(topology, type, core));) {
        count += hwloc_bitmap_intersects(core->cpuset, set) != 0;
    }
    return count;
}

/* Finds the allowed processors: the topology's own restriction (cpusets) and the calling thread's affinity. A
 * description of another machine has no affinity; everything is allowed then. */
static deberta_status find_allowed(hwloc_topology_t topology, const char *list, hwloc_bitmap_t allowed,
                                   deberta_error *err)
{
    if (list) {
        if (hwloc_bitmap_list_sscanf(allowed, list) != 0)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "'%s' is not a list of processors", list);
    } else if (hwloc_get_cpubind(topology, allowed, HWLOC_CPUBIND_THREAD) != 0) {
        hwloc_bitmap_fill(allowed);
    }
    hwloc_bitmap_and(allowed, allowed, hwloc_topology_get_allowed_cpuset(topology));
    if (hwloc_bitmap_iszero(allowed)) DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "no processor is left for this process");
    return DEBERTA_OK;
}

/* Returns the allowed logical processor number `sibling` (0-based) of a core, or NULL. */
static hwloc_obj_t allowed_sibling(hwloc_topology_t topology, hwloc_obj_t core, hwloc_const_bitmap_t allowed,
                                   size_t sibling)
{
    for (hwloc_obj_t pu = NULL;
         (pu = hwloc_get_next_obj_inside_cpuset_by_type(topology, core->cpuset, HWLOC_OBJ_PU, pu));) {
        if (hwloc_bitmap_isset(allowed, pu->os_index) && sibling-- == 0) return pu;
    }
    return NULL;
}

/* Appends processor number `sibling` of every core whose kind is `kind` (-1: any kind). Returns how many it appended.
 */
static size_t append_workers(hwloc_topology_t topology, hwloc_const_bitmap_t allowed, int kind, size_t sibling,
                             topology_info *info)
{
    size_t found = 0;
    hwloc_obj_type_t type = core_type(topology);
    for (hwloc_obj_t core = NULL; (core = hwloc_get_next_obj_by_type(topology, type, core));) {
        if (kind >= 0 && hwloc_cpukinds_get_by_cpuset(topology, core->cpuset, 0) != kind) continue;
        hwloc_obj_t pu = allowed_sibling(topology, core, allowed, sibling);
        if (!pu) continue;
        found++;
        if (info->workers == TOPOLOGY_MAX_WORKERS) continue;
        info->worker_core[info->workers] = (int)core->logical_index;
        info->worker_cpu[info->workers++] = (int)pu->os_index;
    }
    return found;
}

/* Orders the processors for workers: one per core before the hyper-threads, and the fast cores of a hybrid processor
 * first (hwloc sorts kinds by growing efficiency). Within a kind hwloc's order keeps sharers of a cache together. */
static void order_workers(hwloc_topology_t topology, hwloc_const_bitmap_t allowed, topology_info *info)
{
    int kinds = hwloc_cpukinds_get_nr(topology, 0);
    int last = kinds > 1 ? kinds - 1 : -1, first = kinds > 1 ? 0 : -1;
    size_t found = 1;
    for (size_t sibling = 0; found > 0; sibling++) {
        found = 0;
        for (int kind = last; kind >= first; kind--) found += append_workers(topology, allowed, kind, sibling, info);
    }
}

/* Reads the caches of the processor on which worker 0 would run. */
static void measure_caches(hwloc_topology_t topology, topology_info *info)
{
    hwloc_obj_t pu = hwloc_get_pu_obj_by_os_index(topology, (unsigned)info->worker_cpu[0]);
    for (hwloc_obj_t object = pu; object; object = object->parent) {
        if (object->type == HWLOC_OBJ_L1CACHE) info->l1d_bytes = object->attr->cache.size;
        if (object->type == HWLOC_OBJ_L2CACHE) {
            info->l2_bytes = object->attr->cache.size;
            info->l2_cores = cores_within(topology, object->cpuset);
        }
        if (object->type == HWLOC_OBJ_L3CACHE) {
            info->l3_bytes = object->attr->cache.size;
            info->l3_cores = cores_within(topology, object->cpuset);
        }
    }
}

static size_t at_least_one(size_t count) { return count ? count : 1; }

/* A quota of 2.5 cores gives 2 threads. With a third, the system would stop the whole group for part of every period,
 * and loops wait for their slowest thread. */
static size_t cores_in_quota(size_t cores, double quota)
{
    if (quota > 0 && quota < (double)cores) cores = (size_t)quota;
    return at_least_one(cores);
}

static deberta_status fill_info(hwloc_topology_t topology, const topology_source *source, hwloc_bitmap_t allowed,
                                topology_info *info, deberta_error *err)
{
    DEBERTA_TRY(find_allowed(topology, source->allowed, allowed, err));
    info->logical = at_least_one(count_type(topology, HWLOC_OBJ_PU));
    info->cores = count_type(topology, core_type(topology));
    info->packages = at_least_one(count_type(topology, HWLOC_OBJ_PACKAGE));
    info->numa_nodes = at_least_one(count_type(topology, HWLOC_OBJ_NUMANODE));
    info->allowed_logical = (size_t)hwloc_bitmap_weight(allowed);
    info->allowed_cores = cores_within(topology, allowed);
    order_workers(topology, allowed, info);
    measure_caches(topology, info);
    info->cpu_quota = cgroup_quota(source->root_folder ? source->root_folder : "");
    info->usable_cores = cores_in_quota(info->allowed_cores, info->cpu_quota);
    return DEBERTA_OK;
}

/* Loads the machine including the processors that a cpuset forbids, so that its reported size is right. */
static deberta_status load(hwloc_topology_t topology, const char *synthetic, deberta_error *err)
{
    if (synthetic && hwloc_topology_set_synthetic(topology, synthetic) != 0)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "'%s' does not describe a machine", synthetic);
    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    if (hwloc_topology_load(topology) != 0)
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "hwloc cannot read the topology of this machine: %s", strerror(errno));
    return DEBERTA_OK;
}

/* Fills the numbers without hwloc, whose discovery would ask for the affinity for ever where it cannot be read. */
static void fill_without_affinity(const topology_source *source, topology_info *info)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const size_t cores = online < 1 ? 1 : online < TOPOLOGY_MAX_WORKERS ? (size_t)online : TOPOLOGY_MAX_WORKERS;
    info->logical = info->cores = info->allowed_logical = info->allowed_cores = cores;
    info->packages = info->numa_nodes = 1;
    info->cpu_quota = cgroup_quota(source->root_folder ? source->root_folder : "");
    info->usable_cores = cores_in_quota(cores, info->cpu_quota);
}

deberta_status topology_read_source(topology_info *info, const topology_source *source, deberta_error *err)
{
    deberta_status status = DEBERTA_OK;
    hwloc_topology_t topology = NULL;
    hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
    *info = (topology_info){.affinity_error = source->synthetic ? 0 : affinity_failure()};
    if (info->affinity_error && info->affinity_error != ENOMEM) {
        fill_without_affinity(source, info);
        goto fail;
    }
    if (info->affinity_error || !allowed || hwloc_topology_init(&topology) != 0) {
        status = status_fail(err, DEBERTA_E_MEMORY, "out of memory while reading the machine's topology");
        goto fail;
    }
    DEBERTA_TRY_OR_FAIL(status, load(topology, source->synthetic, err));
    DEBERTA_TRY_OR_FAIL(status, fill_info(topology, source, allowed, info, err));
fail:
    if (topology) hwloc_topology_destroy(topology);
    hwloc_bitmap_free(allowed);
    return status;
}

deberta_status topology_read(topology_info *info, deberta_error *err)
{
    return topology_read_source(info, &(topology_source){0}, err);
}

/* Returns how many instances of a cache there are if `cores_each` cores share one; `fewest` where cores_each is unknown
 * (0). */
static size_t cache_instances(const topology_info *info, size_t cores_each, size_t fewest)
{
    return cores_each ? (info->cores + cores_each - 1) / cores_each : fewest;
}

size_t topology_cache_bytes(const topology_info *info)
{
    return info->l2_bytes * cache_instances(info, info->l2_cores, info->cores) +
           info->l3_bytes * cache_instances(info, info->l3_cores, info->packages);
}

int topology_worker_cpu(const topology_info *info, size_t worker)
{
    return worker < info->workers ? info->worker_cpu[worker] : -1;
}

/* Returns the core of this logical processor, or -1 if it is not one of info->worker_cpu. */
static int core_of(const topology_info *info, int processor)
{
    for (size_t at = 0; at < info->workers; at++) {
        if (info->worker_cpu[at] == processor) return info->worker_core[at];
    }
    return -1;
}

int topology_processor_apart(const topology_info *info, int caller_processor, size_t worker)
{
    /* The first `cores` entries are on different cores. */
    size_t cores = info->allowed_cores < info->workers ? info->allowed_cores : info->workers;
    int core = core_of(info, caller_processor);
    for (size_t at = 0; at < cores; at++) {
        if (info->worker_core[at] == core) return info->worker_cpu[(at + worker) % cores];
    }
    return -1;
}

deberta_status topology_note(const topology_info *info, kept_notes *notes, deberta_error *err)
{
    if (!info->affinity_error) return DEBERTA_OK;
    return notes_add(notes, err,
                     "the system does not say which processors this process may use (sched_getaffinity: %s): each of "
                     "the %zu that are online counts as a core, unless the number of threads is given",
                     strerror(info->affinity_error), info->cores);
}
