/* Replacements of the allocators count requests and refuse one that the test has chosen.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/golden/counted_allocation.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

static atomic_size_t requests, live_bytes, until_failure;
static atomic_int refused;

/* --------------------------------------------------------------------------------------------------------- who asks */

enum { MAX_RANGES = 16 };
static struct {
    uintptr_t begin, end;
    refusal kind;
} ranges[MAX_RANGES];
static size_t range_count;

static int note_object(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)context;
    const char *name = info->dlpi_name;
    bool zip = strstr(name, "libzip"), library = !*name || strstr(name, "libdeberta");
    for (int i = 0; (zip || library) && i < info->dlpi_phnum && range_count < MAX_RANGES; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        ranges[range_count].begin = info->dlpi_addr + part->p_vaddr;
        ranges[range_count].end = info->dlpi_addr + part->p_vaddr + part->p_memsz;
        ranges[range_count++].kind = zip ? REFUSED_ZIP : REFUSED_LIBRARY;
    }
    return 0;
}

static int (*real_pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

void allocation_setup(void)
{
    void *symbol = dlsym(RTLD_NEXT, "pthread_create");
    memcpy(&real_pthread_create, &symbol, sizeof symbol);
    dl_iterate_phdr(note_object, NULL);
}

/* Counts a request from `caller`; true if it must fail. other: what to call a refusal that is not of plain memory. */
static bool refuse(const void *caller, refusal other)
{
    atomic_fetch_add(&requests, 1);
    if (atomic_load(&until_failure) == 0) return false;
    for (size_t i = 0; i < range_count; i++) {
        if ((uintptr_t)caller < ranges[i].begin || (uintptr_t)caller >= ranges[i].end) continue;
        if (atomic_fetch_sub(&until_failure, 1) != 1) return false;
        atomic_store(&refused, other ? (int)other : (int)ranges[i].kind);
        return true;
    }
    return false;
}

size_t allocation_requests(void) { return atomic_load(&requests); }
size_t allocation_live_bytes(void) { return atomic_load(&live_bytes); }
refusal allocation_refused(void) { return (refusal)atomic_load(&refused); }

void allocation_fail(size_t k)
{
    atomic_store(&refused, REFUSED_NONE);
    atomic_store(&until_failure, k);
}

/* ----------------------------------------------------------------------------------------------------- replacements */

static void *account(void *memory)
{
    if (memory) atomic_fetch_add(&live_bytes, malloc_usable_size(memory));
    return memory;
}

static void *out_of_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

void *malloc(size_t bytes)
{
    return refuse(__builtin_return_address(0), REFUSED_NONE) ? out_of_memory() : account(__libc_malloc(bytes));
}

void *calloc(size_t count, size_t bytes)
{
    return refuse(__builtin_return_address(0), REFUSED_NONE) ? out_of_memory() : account(__libc_calloc(count, bytes));
}

void *realloc(void *old, size_t bytes)
{
    if (refuse(__builtin_return_address(0), REFUSED_NONE)) return out_of_memory();
    size_t before = old ? malloc_usable_size(old) : 0;
    void *memory = __libc_realloc(old, bytes);
    if (memory || bytes == 0) atomic_fetch_sub(&live_bytes, before);
    return account(memory);
}

void *memalign(size_t alignment, size_t bytes)
{
    return refuse(__builtin_return_address(0), REFUSED_NONE) ? out_of_memory()
                                                             : account(__libc_memalign(alignment, bytes));
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return refuse(__builtin_return_address(0), REFUSED_NONE) ? out_of_memory()
                                                             : account(__libc_memalign(alignment, bytes));
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    if (refuse(__builtin_return_address(0), REFUSED_NONE)) return ENOMEM;
    void *got = account(__libc_memalign(alignment, bytes));
    if (!got) return ENOMEM;
    *memory = got;
    return 0;
}

void free(void *memory)
{
    if (memory) atomic_fetch_sub(&live_bytes, malloc_usable_size(memory));
    __libc_free(memory);
}

void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset)
{
    if (refuse(__builtin_return_address(0), REFUSED_MAPPING)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    void *mapped = (void *)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
    if (mapped != MAP_FAILED) atomic_fetch_add(&live_bytes, bytes);
    return mapped;
}

int munmap(void *address, size_t bytes)
{
    atomic_fetch_sub(&live_bytes, bytes);
    return (int)syscall(SYS_munmap, address, bytes);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument)
{
    if (refuse(__builtin_return_address(0), REFUSED_THREAD)) return EAGAIN;
    return real_pthread_create(thread, attributes, body, argument);
}
