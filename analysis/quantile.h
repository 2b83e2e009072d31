/* Quantiles of a sample. SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/* The q-quantile (0 ... 1) with linear interpolation between order statistics; NaN of nothing. Sorts the values. */
double quantile(double *values, size_t count, double q);
