/* Points and weights of a quadrature over [0, 1]. SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/* Fills points [count], in ascending order, and weights [count], whose sum is 1. The results are the same on every
 * machine: no function of a mathematical library is called. */
void gauss_legendre(size_t count, double *points, double *weights);
