/* Interpolates quantiles between neighbours of the sorted sample. SPDX-License-Identifier: MIT */
#include "analysis/quantile.h"

#include <math.h>

#include "core/base/numbers.h"

double quantile(double *values, size_t count, double q)
{
    if (count == 0) return NAN;
    sort_doubles(values, count);
    const double place = q * (double)(count - 1);
    const size_t below = (size_t)place;
    return below + 1 < count ? values[below] + (place - (double)below) * (values[below + 1] - values[below])
                             : values[below];
}
