/* SPDX-License-Identifier: MIT */
#include "study/quantile.h"

#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double quantile(double *values, size_t count, double q)
{
    if (count == 0) return NAN;
    qsort(values, count, sizeof *values, by_value);
    const double place = q * (double)(count - 1);
    const size_t below = (size_t)place;
    return below + 1 < count ? values[below] + (place - (double)below) * (values[below + 1] - values[below])
                             : values[below];
}
