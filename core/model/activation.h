/* Applies the activations of a configuration row by row. SPDX-License-Identifier: MIT */
#pragma once

#include "core/kernels.h"
#include "core/model/config.h"

/* Computes x[rows][columns] = f(x), row by row; does nothing for ACTIVATION_NONE. */
void activate_rows(const kernels *table, activation function, float *x, size_t ld, size_t rows, size_t columns);
/* Computes dy[rows][columns] = dy f'(x) and, unless y is NULL, y = f(x), all with the same stride. */
void activate_rows_backward(const kernels *table, activation function, float *dy, float *y, const float *x, size_t ld,
                            size_t rows, size_t columns);
