/* Quantiles of a sample. SPDX-License-Identifier: MIT */
#ifndef ANALYSIS_QUANTILE_H
#define ANALYSIS_QUANTILE_H

#include <stddef.h>

/* The q-quantile (0 ... 1) with linear interpolation between order statistics; NaN of nothing. Sorts the values. */
double quantile(double *values, size_t count, double q);

#endif
