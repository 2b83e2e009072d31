/* Maps a file read-only, and provides the one bounds check that every reader of files uses.
 *
 * Refuses, with the reason, everything that is not a file with content: folders, pipes, devices, empty files, git-lfs
 * pointers. A file that another program shortens while it is mapped raises SIGBUS, as in every program that maps files,
 * unless the caller has called deberta_guard_files: then the missing bytes are zeros, and mapped_file_intact says so
 * afterwards.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>
#include <time.h>

#include "core/base/status.h"
#include "core/io/quote.h"

typedef struct mapped_file {
    const uint8_t *bytes;
    size_t size_bytes; /* at least 1 while open */
    size_t guard;      /* mapping_guard_add */
    struct timespec modified;
    quoted name; /* the path, fit for messages */
} mapped_file;

/* On failure *file is empty and nothing needs to be closed. */
deberta_status mapped_file_open(mapped_file *file, const char *path, deberta_error *err);
/* For files that are read through: one of more than most_bytes is refused before anything of it is read. */
deberta_status mapped_file_open_at_most(mapped_file *file, const char *path, size_t most_bytes, deberta_error *err);
/* Takes the whole pages within that range out of the process's memory, which counts what it has read of a file; read
 * again, they come back from the system's cache. */
void mapped_file_forget(const mapped_file *file, size_t offset, size_t length);
/* Brings the file's first `length` bytes into the process's page table now, rather than a page at a time at first
 * touch. */
void mapped_file_populate(const mapped_file *file, size_t length);
/* DEBERTA_E_FILE: it became shorter or unreadable, and what was read of it since then is of no use. */
deberta_status mapped_file_intact(const mapped_file *file, deberta_error *err);
/* Closes it after it was read through with that status, and returns the status; or that the file did not stay intact.
 */
deberta_status mapped_file_end(mapped_file *file, deberta_status status, deberta_error *err);
/* Accepts an empty one. */
void mapped_file_close(mapped_file *file);

/* Do `length` bytes at `offset` lie inside `size` bytes? Whatever the numbers, nothing wraps around. */
static inline bool range_is_inside(uint64_t offset, uint64_t length, uint64_t size)
{
    return offset <= size && length <= size - offset;
}

/* What a file that is not of the expected kind seems to be ("a zip archive"), or NULL. For messages only. */
const char *content_guess(const uint8_t *bytes, size_t size_bytes);

/* Little-endian integers at any alignment. */
uint32_t load_u32(const uint8_t *at);
uint64_t load_u64(const uint8_t *at);
