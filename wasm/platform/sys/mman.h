/* What core/io maps files with, here: memory_files.c. SPDX-License-Identifier: MIT */
#ifndef WASM_PLATFORM_SYS_MMAN_H
#define WASM_PLATFORM_SYS_MMAN_H

#include <stddef.h>
#include <sys/types.h>

#define PROT_READ     1
#define MAP_PRIVATE   2
#define MAP_FAILED    ((void *)-1)
#define MADV_DONTNEED 4

void *mmap(void *at, size_t bytes, int protection, int flags, int descriptor, off_t offset);
int munmap(void *start, size_t bytes);
static inline int madvise(void *start, size_t bytes, int advice) { return (void)start, (void)bytes, (void)advice, 0; }

#endif
