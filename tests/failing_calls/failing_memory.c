/* A library to preload: it lets one request of a program for memory or a thread fail.
 *
 *     LD_PRELOAD=failing_memory.so FAIL_AT=3 FAIL_REPORT=FILE deberta encode ...
 *
 * What counts: calls of malloc, calloc, realloc, mmap and pthread_create by the program's own code; other libraries are
 * left alone. FAIL_AT is the number of the call that fails, from 1; 0 only counts. FAIL_REPORT, a file of
 * sizeof(struct report) bytes, tells how many calls there were, and whether one failed. FAIL_LOG, a file, gets a line
 * for each call that counts: the place in the program that makes it. SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The names under which the C library has its own. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);

/* In shared memory: children that the program makes count on. */
struct report {
    uint64_t calls, failed;
};

static struct report own_report, *report = &own_report;
static uint64_t fail_at;
static int log_file = -1;
static uintptr_t first_byte, end_byte; /* of the program's code */

/* The first object is the program. */
static int find_program(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size, (void)context;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        first_byte = info->dlpi_addr + part->p_vaddr;
        end_byte = first_byte + part->p_memsz;
    }
    return 1;
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("FAIL_REPORT"), *at = getenv("FAIL_AT");
    const int file = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (file >= 0 && ftruncate(file, sizeof *report) == 0) {
        void *shared = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (shared != MAP_FAILED) report = shared;
    }
    if (file >= 0) close(file);
    if (getenv("FAIL_LOG")) log_file = open(getenv("FAIL_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    fail_at = at ? strtoull(at, NULL, 10) : 0;
    dl_iterate_phdr(find_program, NULL);
}

static void log_place(uintptr_t place)
{
    char line[32];
    const int length = snprintf(line, sizeof line, "%zx\n", (size_t)place);
    if (write(log_file, line, (size_t)length) != length) abort();
}

static bool fails(const void *caller)
{
    if ((uintptr_t)caller < first_byte || (uintptr_t)caller >= end_byte) return false;
    const uint64_t count = __atomic_add_fetch(&report->calls, 1, __ATOMIC_RELAXED);
    if (log_file >= 0) log_place((uintptr_t)caller - first_byte);
    if (count != fail_at) return false;
    report->failed = 1;
    errno = ENOMEM;
    return true;
}

__attribute__((visibility("default"))) void *malloc(size_t bytes)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
}

__attribute__((visibility("default"))) void *calloc(size_t count, size_t bytes)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, bytes);
}

__attribute__((visibility("default"))) void *realloc(void *old, size_t bytes)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(old, bytes);
}

__attribute__((visibility("default"))) void *mmap(void *at, size_t bytes, int protection, int flags, int file,
                                                  off_t offset)
{
    if (fails(__builtin_return_address(0))) return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
}

__attribute__((visibility("default"))) int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                                                          void *(*run)(void *), void *context)
{
    if (fails(__builtin_return_address(0))) return EAGAIN;
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    return create ? create(thread, attributes, run, context) : EAGAIN;
}
