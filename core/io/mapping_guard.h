/* Guards mapped files that become shorter, or whose disk fails, while they are read. If the caller enables it
 * (deberta_guard_files), a SIGBUS handler puts zeros in place of the missing bytes and marks the mapping; readers check
 * the mark afterwards.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Guards these pages and returns their number for the functions below. Returns 0, which every function accepts, if
 * there is no handler or no free slot. */
size_t mapping_guard_add(const void *bytes, size_t size_bytes);
/* Returns whether some of the pages could not be read and became zeros. */
bool mapping_guard_broke(size_t number);
/* Ends the guard; call it before unmapping the pages. */
void mapping_guard_remove(size_t number);
