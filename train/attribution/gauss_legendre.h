/* Computes the points and weights of the Gauss-Legendre quadrature over [0, 1]. SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/* Fills points [count], in ascending order, and weights [count], whose sum is 1. The results are the same on every
 * machine, because the function calls no mathematical library. */
void gauss_legendre(size_t count, double *points, double *weights);
