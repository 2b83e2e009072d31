/* Allocates zeroed pages of the system for the arena. SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Computes the bytes that a block of this capacity occupies, in whole pages. False on overflow. */
bool pages_occupied(size_t capacity_bytes, size_t *bytes);
/* Maps zero-filled pages, aligned to pages at least; bytes: as pages_occupied computes. NULL, with errno, where the
 * system refuses. */
unsigned char *pages_map(size_t bytes);
void pages_unmap(unsigned char *block, size_t bytes);
