/* Keeps a folder in memory, for a library that reads files. SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

#define MEMORY_FOLDER "/model"

/* Adds a file. The caller keeps the bytes, which mmap returns in place until memory_files_clear. Returns -1 for too
 * many files, or too long a name. */
int memory_files_add(const char *name, const unsigned char *bytes, size_t size_bytes);
void memory_files_clear(void);
