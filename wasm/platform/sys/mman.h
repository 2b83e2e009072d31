/* Declares the calls by which core/io maps files; memory_files.c defines them, and for the tests' programs map_read.c.
 * Pages cannot be protected.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <sys/types.h>

enum { PROT_NONE = 0, PROT_READ = 1, PROT_WRITE = 2, MAP_PRIVATE = 2, MAP_ANONYMOUS = 32, MADV_DONTNEED = 4 };
#define MAP_FAILED ((void *)-1)

void *mmap(void *at, size_t bytes, int protection, int flags, int descriptor, off_t offset);
int munmap(void *start, size_t bytes);
static inline int madvise(void *start, size_t bytes, int advice) { return (void)start, (void)bytes, (void)advice, 0; }
static inline int mprotect(void *start, size_t bytes, int protection)
{
    return (void)start, (void)bytes, (void)protection, 0;
}
