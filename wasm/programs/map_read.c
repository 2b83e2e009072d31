/* Implements mmap for the tests' programs by reading the file into memory of the heap.
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096 };

void *mmap(void *at, size_t bytes, int protection, int flags, int descriptor, off_t offset)
{
    (void)at, (void)protection;
    const size_t room = (bytes + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1);
    unsigned char *block = bytes && room >= bytes ? aligned_alloc(PAGE_BYTES, room) : NULL;
    size_t done = 0;
    if (!block) return errno = ENOMEM, MAP_FAILED;
    memset(block, 0, room);
    while (!(flags & MAP_ANONYMOUS) && done < bytes) {
        const ssize_t got = pread(descriptor, block + done, bytes - done, offset + (off_t)done);
        if (got <= 0) break;
        done += (size_t)got;
    }
    if ((flags & MAP_ANONYMOUS) || done == bytes) return block;
    free(block);
    return errno = EIO, MAP_FAILED;
}

int munmap(void *start, size_t bytes)
{
    (void)bytes;
    free(start);
    return 0;
}
