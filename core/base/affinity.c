/* Linux's calls place threads on processors; elsewhere stand-ins leave all to the system.
 *
 * SPDX-License-Identifier: MIT */
#include "core/base/affinity.h"

#include <errno.h>
#include <stddef.h>

#ifdef __linux__

processor_set affinity_of_caller(void)
{
    processor_set set = {0};
    set.known = sched_getaffinity(0, sizeof set.processors, &set.processors) == 0;
    return set;
}

/* EINVAL of a larger machine ends when the set is large enough; EINVAL of a filter never does. */
int affinity_failure(void)
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
int affinity_failure(void) { return 0; }
void affinity_restrict_caller(const processor_set *set) { (void)set; }
int affinity_current_processor(void) { return -1; }

int affinity_bind_new_thread(pthread_attr_t *attributes, int processor)
{
    (void)attributes, (void)processor;
    return 0;
}

#endif
