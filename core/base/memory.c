/* Carves blocks, allocates float arrays on large pages, and enforces the memory limit of a piece of work.
 *
 * SPDX-License-Identifier: MIT */
#include "core/base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/pages.h"
#include "core/base/status.h"

/* The arena's block comes from pages of the system, not malloc: fresh ones are already zero, so "zero-filled" costs
 * nothing for what is never touched. */

/* Bytes of the poisoned gap before every piece and after the last one. The measured size includes it, so both runs
 * agree. */
enum { REDZONE_BYTES = FORBIDDEN_IS_NOTICED ? 128 : 0 };

/* False on overflow; multiple is a power of two. */
static bool round_up_checked(size_t bytes, size_t multiple, size_t *rounded)
{
    if (!size_add(bytes, multiple - 1, rounded)) return false;
    *rounded &= ~(multiple - 1);
    return true;
}

void *arena_take(arena *memory, size_t count, size_t element_bytes)
{
    size_t bytes, start, end;
    if (!size_multiply(count, element_bytes, &bytes) || !size_add(memory->used_bytes, REDZONE_BYTES, &start) ||
        !round_up_checked(start, ARENA_ALIGNMENT_BYTES, &start) || !size_add(start, bytes, &end)) {
        memory->overflow = true;
        return NULL;
    }
    if (!memory->block) {
        memory->used_bytes = end;
        return NULL;
    }
    assert(end <= memory->capacity_bytes && "the carving asks for more than it measured");
    if (end > memory->capacity_bytes) return NULL;
    memory->used_bytes = end;
    memory_permit(memory->block + start, bytes);
    return memory->block + start;
}

deberta_status arena_predict(const arena *memory, const char *what, size_t limit_bytes, size_t *capacity_bytes,
                             deberta_error *err)
{
    size_t mapped;
    if (memory->overflow || !size_add(memory->used_bytes, REDZONE_BYTES, capacity_bytes) ||
        !pages_occupied(*capacity_bytes, &mapped)) {
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: the memory it needs exceeds the address space", what);
    }
    /* Compares the capacity, not the mapping, which ends on a page: a user who sets the reported size as the limit must
     * not be refused. */
    if (limit_bytes && *capacity_bytes > limit_bytes) {
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: needs %s, the limit is %s", what, bytes_describe(*capacity_bytes).text,
                     bytes_describe(limit_bytes).text);
    }
    return DEBERTA_OK;
}

deberta_status arena_allocate(arena *memory, const char *what, size_t limit_bytes, deberta_error *err)
{
    assert(!memory->block);
    size_t capacity = 0, mapped = 0;
    DEBERTA_TRY(arena_predict(memory, what, limit_bytes, &capacity, err));
    pages_occupied(capacity, &mapped);
    unsigned char *block = pages_map(mapped);
    if (!block) {
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: the system refused %s: %s", what, bytes_describe(mapped).text,
                     strerror(errno));
    }
    memory_forbid(block, mapped);
    memory->block = block;
    memory->capacity_bytes = capacity;
    memory->used_bytes = 0;
    return DEBERTA_OK;
}

void arena_borrow(arena *memory, const void *block)
{
    assert(!memory->block && !memory->overflow && (uintptr_t)block % ARENA_ALIGNMENT_BYTES == 0);
    memory->block = (unsigned char *)block;
    memory->capacity_bytes = memory->used_bytes + REDZONE_BYTES;
    memory->used_bytes = 0;
    memory->borrowed = true;
    memory_forbid(block, memory->capacity_bytes);
}

void arena_rewind(arena *memory)
{
    assert(memory->block);
    memory->used_bytes = 0;
}

const void *arena_contents(const arena *memory)
{
    memory_permit(memory->block, memory->capacity_bytes);
    return memory->block;
}

void arena_release(arena *memory)
{
    size_t mapped;
    if (memory->borrowed) {
        memory_permit(memory->block, memory->capacity_bytes);
    } else if (memory->block && pages_occupied(memory->capacity_bytes, &mapped)) {
        memory_permit(memory->block, mapped);
        pages_unmap(memory->block, mapped);
    }
    *memory = (arena){0};
}

/* Large arrays begin at huge pages and ask for them; small ones begin at cache lines. */

enum { LINE_BYTES = 64, HUGE_BYTES = 1 << 21, FEW_HUGE = 4 };

float *large_floats(size_t count)
{
    size_t bytes;
    void *block;
    if (!size_multiply(count ? count : 1, sizeof(float), &bytes)) return NULL;
    const bool huge = bytes >= (size_t)FEW_HUGE * HUGE_BYTES;
    if (posix_memalign(&block, huge ? HUGE_BYTES : LINE_BYTES, bytes) != 0) return NULL;
#ifdef MADV_HUGEPAGE
    /* The call is only a hint; its failure does no harm. */
    if (huge) madvise(block, bytes / HUGE_BYTES * HUGE_BYTES, MADV_HUGEPAGE);
#endif
    return memset(block, 0, bytes);
}

/* This section adds up the parts of a piece of work and reports them where they exceed the limit. */

byte_text bytes_describe(size_t bytes)
{
    byte_text described;
    if (bytes < 1 << 20)
        snprintf(described.text, sizeof described.text, "%zu bytes", bytes);
    else
        snprintf(described.text, sizeof described.text, "%.1f MiB (%zu bytes)", (double)bytes / (1 << 20), bytes);
    return described;
}

deberta_status memory_need_check(const memory_need *need, size_t limit_bytes, deberta_error *err)
{
    size_t total;
    if (!size_add(need->model_bytes, need->session_bytes, &total) || !size_add(total, need->kept_bytes, &total))
        total = SIZE_MAX;
    if (limit_bytes == 0 || total <= limit_bytes) return DEBERTA_OK;
    if (need->kept_bytes == 0)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "needs %s: %s for the model, %s for the session; the limit is %s",
                     bytes_describe(total).text, bytes_describe(need->model_bytes).text,
                     bytes_describe(need->session_bytes).text, bytes_describe(limit_bytes).text);
    DEBERTA_FAIL(err, DEBERTA_E_MEMORY,
                 "needs %s: %s for the model, %s for the session, %s to keep attention and hidden states; the limit is "
                 "%s; choose fewer layers or components",
                 bytes_describe(total).text, bytes_describe(need->model_bytes).text,
                 bytes_describe(need->session_bytes).text, bytes_describe(need->kept_bytes).text,
                 bytes_describe(limit_bytes).text);
}
