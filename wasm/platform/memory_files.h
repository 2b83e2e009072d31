/* Keeps a folder in memory, for a library that reads files. SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

#define MEMORY_FOLDER "/model"

/* The bytes stay the caller's, and are shown in place by mmap until memory_files_clear. -1: too many, or too long a
 * name. */
int memory_files_add(const char *name, const unsigned char *bytes, size_t size_bytes);
void memory_files_clear(void);
