/* Ratios of errors are collected, and quantiles of them are told. SPDX-License-Identifier: MIT */
#include "tests/golden/pytorch_ratio.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool pytorch_ratios_add(pytorch_ratios *ratios, const char *case_name, size_t kind, double listed, double error)
{
    if (!(listed > 0)) return true;
    for (size_t k = 0; k < ratios->count; k++) {
        if (ratios->results[k].kind != kind || strcmp(ratios->results[k].name, case_name) != 0) continue;
        if (!(error <= ratios->results[k].error)) ratios->results[k].error = error;
        return true;
    }
    if (ratios->count == PYTORCH_RATIOS_MOST) return false;
    snprintf(ratios->results[ratios->count].name, sizeof ratios->results->name, "%s", case_name);
    ratios->results[ratios->count].kind = kind;
    ratios->results[ratios->count].listed = listed;
    ratios->results[ratios->count++].error = error;
    return true;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double pytorch_ratios_quantile(const pytorch_ratios *ratios, double part)
{
    double sorted[PYTORCH_RATIOS_MOST];
    for (size_t k = 0; k < ratios->count; k++) {
        const double ratio = ratios->results[k].error / ratios->results[k].listed;
        sorted[k] = isnan(ratio) ? INFINITY : ratio;
    }
    if (!ratios->count) return NAN;
    qsort(sorted, ratios->count, sizeof *sorted, by_size);
    const double at = part * (double)(ratios->count - 1), low = floor(at);
    const size_t k = (size_t)low, next = k + 1 < ratios->count ? k + 1 : k;
    return sorted[k] + (at - low) * (sorted[next] - sorted[k]);
}
