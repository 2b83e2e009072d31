/* Replaces thread_pool.c, topology.c and pages.c: one thread on one core, and memory that only grows.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/base/pages.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "core/base/topology.h"

enum { PAGE_BYTES = 4096, CACHE_BYTES = 1 << 20 };

/* Fills in a guess of the cache, since a JavaScript engine does not report it. */
deberta_status topology_read(topology_info *info, deberta_error *err)
{
    (void)err;
    *info = (topology_info){.logical = 1,
                            .cores = 1,
                            .packages = 1,
                            .numa_nodes = 1,
                            .allowed_logical = 1,
                            .allowed_cores = 1,
                            .usable_cores = 1,
                            .l2_bytes = CACHE_BYTES,
                            .l2_cores = 1,
                            .workers = 1};
    return DEBERTA_OK;
}

/* The one processor is known. */
deberta_status topology_note(const topology_info *info, kept_notes *notes, deberta_error *err)
{
    return (void)info, (void)notes, (void)err, DEBERTA_OK;
}

size_t topology_cache_bytes(const topology_info *info) { return info->l2_bytes; }
int topology_worker_cpu(const topology_info *info, size_t worker) { return (void)info, (void)worker, -1; }
int topology_processor_apart(const topology_info *info, int caller_processor, size_t worker)
{
    return (void)info, (void)caller_processor, (void)worker, -1;
}

processor_set affinity_of_caller(void) { return (processor_set){0}; }
void affinity_restrict_caller(const processor_set *set) { (void)set; }
int affinity_current_processor(void) { return -1; }

static void run(executor *self, size_t tasks, parallel_body body, void *context)
{
    (void)self;
    for (size_t task = 0; task < tasks; task++) body(context, task, 0);
}

static void free_executor(executor *self)
{
    executor_finish(self);
    free(self);
}

deberta_status thread_pool_create(executor **pool, size_t threads, bool pin, const topology_info *machine,
                                  deberta_error *err)
{
    static const executor_kind kind = {.run = run, .free = free_executor};
    (void)machine;
    if (threads > 1 || pin) DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "WebAssembly has one thread, and binds none");
    *pool = calloc(1, sizeof **pool);
    if (!*pool) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for an executor");
    return executor_init(*pool, &kind, 1, err);
}

bool pages_occupied(size_t capacity_bytes, size_t *bytes)
{
    if (!size_add(capacity_bytes ? capacity_bytes : 1, PAGE_BYTES - 1, bytes)) return false;
    *bytes &= ~(size_t)(PAGE_BYTES - 1);
    return true;
}

unsigned char *pages_map(size_t bytes)
{
    unsigned char *block = aligned_alloc(PAGE_BYTES, bytes);
    return block ? memset(block, 0, bytes) : NULL;
}

void pages_unmap(unsigned char *block, size_t bytes)
{
    (void)bytes;
    free(block);
}
