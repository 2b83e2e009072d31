/* Applies the kernel of an activation row by row; the identity needs no kernel.
 *
 * SPDX-License-Identifier: MIT */
#include "core/model/activation.h"

#include <string.h>

void activate_rows(const kernels *table, activation function, float *x, size_t ld, size_t rows, size_t columns)
{
    if (function == ACTIVATION_NONE) return;
    for (size_t i = 0; i < rows; i++) table->activate_f32(x + i * ld, columns, function);
}

void activate_rows_backward(const kernels *table, activation function, float *dy, float *y, const float *x, size_t ld,
                            size_t rows, size_t columns)
{
    for (size_t i = 0; i < rows; i++) {
        float *value = y ? y + i * ld : NULL;
        if (function != ACTIVATION_NONE)
            table->activate_backward_f32(dy + i * ld, value, x + i * ld, columns, function);
        else if (value && value != x + i * ld)
            memcpy(value, x + i * ld, columns * sizeof *value);
    }
}
