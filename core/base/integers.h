/* Sizes: the smaller, the larger, in units, in powers of two. SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

static inline size_t minimum(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t maximum(size_t a, size_t b) { return a > b ? a : b; }
static inline size_t ceiling_divide(size_t a, size_t b) { return a / b + (a % b != 0); }
static inline size_t round_up(size_t a, size_t unit) { return ceiling_divide(a, unit) * unit; }

/* The least k with count <= 2^k: levels of a binary tree over so many. */
static inline size_t tree_levels(size_t count)
{
    size_t levels = 0;
    while ((size_t)1 << levels < count) levels++;
    return levels;
}
