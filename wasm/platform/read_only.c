/* Replaces atomic_file.c and mapping_guard.c: there is no disk to write to, and files are in memory.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/io/atomic_file.h"
#include "core/io/mapping_guard.h"

static deberta_status refuse(deberta_error *err)
{
    DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "WebAssembly writes no files");
}

deberta_status atomic_file_target(char **target, const char *path, deberta_error *err)
{
    (void)path;
    *target = NULL;
    return refuse(err);
}

deberta_status atomic_file_open(atomic_file **file, const char *path, deberta_error *err)
{
    (void)path;
    *file = NULL;
    return refuse(err);
}

deberta_status atomic_file_stream(FILE **stream, atomic_file *file, deberta_error *err)
{
    (void)file;
    *stream = NULL;
    return refuse(err);
}

deberta_status atomic_file_write(atomic_file *file, uint64_t offset, const void *bytes, size_t count_bytes,
                                 deberta_error *err)
{
    return (void)file, (void)offset, (void)bytes, (void)count_bytes, refuse(err);
}

deberta_status atomic_file_set_size(atomic_file *file, uint64_t size_bytes, deberta_error *err)
{
    return (void)file, (void)size_bytes, refuse(err);
}

deberta_status atomic_file_commit(atomic_file **file, deberta_error *err) { return *file = NULL, refuse(err); }
void atomic_file_discard(atomic_file **file) { *file = NULL; }

deberta_status atomic_file_replace(const char *path, const void *bytes, size_t count_bytes, deberta_error *err)
{
    return (void)path, (void)bytes, (void)count_bytes, refuse(err);
}

const char *atomic_file_temporary(const atomic_file *file) { return (void)file, ""; }
bool atomic_file_is_temporary(const char *name) { return (void)name, false; }
bool file_sync(int descriptor) { return (void)descriptor, false; }
deberta_status folder_sync_of(const char *path, deberta_error *err) { return (void)path, refuse(err); }

size_t mapping_guard_add(const void *bytes, size_t size_bytes) { return (void)bytes, (void)size_bytes, 0; }
bool mapping_guard_broke(size_t number) { return (void)number, false; }
void mapping_guard_remove(size_t number) { (void)number; }

deberta_status deberta_guard_files(deberta_error *err)
{
    DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "WebAssembly maps no files");
}
