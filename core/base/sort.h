/* Numbers in order. SPDX-License-Identifier: MIT */
#pragma once

#include <stdlib.h>

static inline int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static inline void sort_doubles(double *values, size_t count) { qsort(values, count, sizeof *values, compare_doubles); }
