/* A library to preload: asking which processors a thread may use fails with errno FAIL_WITH, as in a sandbox that
 * forbids it. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

__attribute__((visibility("default"))) int sched_getaffinity(pid_t thread, size_t bytes, cpu_set_t *set)
{
    const char *reason = getenv("FAIL_WITH");
    (void)thread, (void)bytes, (void)set;
    errno = reason ? atoi(reason) : EPERM;
    return -1;
}
