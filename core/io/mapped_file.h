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
    size_t guard;      /* number from mapping_guard_add */
    struct timespec modified;
    quoted name; /* path, safe to print in messages */
} mapped_file;

/* Maps a file. On failure *file is empty and nothing needs to be closed. */
deberta_status mapped_file_open(mapped_file *file, const char *path, deberta_error *err);
/* Opens a file that the caller reads completely; refuses one of more than most_bytes before reading any of it. */
deberta_status mapped_file_open_at_most(mapped_file *file, const char *path, size_t most_bytes, deberta_error *err);
/* Releases the whole pages within that range from the process's resident memory; a later read gets them from the
 * system's cache. */
void mapped_file_forget(const mapped_file *file, size_t offset, size_t length);
/* Loads the file's first `length` bytes into the process's page table now, rather than page by page at first touch. */
void mapped_file_populate(const mapped_file *file, size_t length);
/* Fails with DEBERTA_E_FILE if the file became shorter or unreadable; bytes read since then are invalid. */
deberta_status mapped_file_intact(const mapped_file *file, deberta_error *err);
/* Closes the file after reading that ended with `status`, and returns the status, or an error if the file did not stay
 * intact. */
deberta_status mapped_file_end(mapped_file *file, deberta_status status, deberta_error *err);
/* Closes the file. Accepts an empty one. */
void mapped_file_close(mapped_file *file);

/* Returns whether `length` bytes at `offset` lie inside `size` bytes, without overflow. */
static inline bool range_is_inside(uint64_t offset, uint64_t length, uint64_t size)
{
    return offset <= size && length <= size - offset;
}

/* Guesses the kind of an unexpected file ("a zip archive"), or returns NULL. For messages only. */
const char *content_guess(const uint8_t *bytes, size_t size_bytes);

/* Load little-endian integers at any alignment. */
uint32_t load_u32(const uint8_t *at);
uint64_t load_u64(const uint8_t *at);

/* Computes the SHA-256 of a file, 64 hex digits as `sha256sum` prints them. */
deberta_status file_digest(const char *path, char digest[65], deberta_error *err);
