/* Large arrays begin at huge pages and ask for them; small ones begin at cache lines. SPDX-License-Identifier: MIT */
#include "core/base/large_floats.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/status.h"

enum { LINE_BYTES = 64, HUGE_BYTES = 1 << 21, FEW_HUGE = 4 };

float *large_floats(size_t count)
{
    size_t bytes;
    void *block;
    if (!size_multiply(count ? count : 1, sizeof(float), &bytes)) return NULL;
    const bool huge = bytes >= (size_t)FEW_HUGE * HUGE_BYTES;
    if (posix_memalign(&block, huge ? HUGE_BYTES : LINE_BYTES, bytes) != 0) return NULL;
#ifdef MADV_HUGEPAGE
    if (huge) madvise(block, bytes / HUGE_BYTES * HUGE_BYTES, MADV_HUGEPAGE); /* a wish */
#endif
    return memset(block, 0, bytes);
}
