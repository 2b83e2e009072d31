/* Allocates pages by mmap, optionally with the start on a huge-page boundary. SPDX-License-Identifier: MIT */
#include "core/base/pages.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/status.h"

enum { HUGE_PAGE_BYTES = 2 << 20 };

/* Computes the bytes of a block of that capacity: whole pages, or whole huge pages if it fills at least one. */
bool pages_occupied(size_t capacity_bytes, size_t *bytes)
{
    size_t page = capacity_bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : (size_t)sysconf(_SC_PAGESIZE);
    if (!size_add(capacity_bytes ? capacity_bytes : 1, page - 1, bytes)) return false;
    *bytes &= ~(page - 1);
    return true;
}

/* Maps zeroed pages, aligned to huge pages if the block fills at least one. The system aligns to small pages only, so
 * such a mapping is made longer by one huge page and trimmed at both ends.
 *
 * Not MAP_NORESERVE: with it a size that the machine can never provide is granted, and the process is killed at first
 * touch instead of getting DEBERTA_E_MEMORY here. */
unsigned char *pages_map(size_t bytes)
{
    bool huge = bytes >= HUGE_PAGE_BYTES;
    size_t slack = huge ? HUGE_PAGE_BYTES : 0, total;
    if (!size_add(bytes, slack, &total)) return NULL;
    unsigned char *start = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return NULL;
    if (!huge) return start;

    size_t front = (size_t)(-(uintptr_t)start & (HUGE_PAGE_BYTES - 1));
    if (front) munmap(start, front);
    if (slack - front) munmap(start + front + bytes, slack - front);
#ifdef MADV_HUGEPAGE
    /* The call is only a hint: without huge pages everything works, only slower. */
    madvise(start + front, bytes, MADV_HUGEPAGE);
#endif
    return start + front;
}

void pages_unmap(unsigned char *block, size_t bytes) { munmap(block, bytes); }
