/* Sizes: the smaller, the larger, in units. SPDX-License-Identifier: MIT */
#ifndef CORE_BASE_INTEGERS_H
#define CORE_BASE_INTEGERS_H

#include <stddef.h>

static inline size_t minimum(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t maximum(size_t a, size_t b) { return a > b ? a : b; }
static inline size_t ceiling_divide(size_t a, size_t b) { return a / b + (a % b != 0); }
static inline size_t round_up(size_t a, size_t unit) { return ceiling_divide(a, unit) * unit; }

#endif
