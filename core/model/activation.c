/* Each activation goes to the kernel of its kind, row by row; one that is none needs no kernel.
 *
 * SPDX-License-Identifier: MIT */
#include "core/model/activation.h"

#include <string.h>

static const kernel_activation kernel_of[ACTIVATION_COUNT] = {
    [ACTIVATION_GELU] = KERNEL_GELU,
    [ACTIVATION_GELU_TANH] = KERNEL_GELU_TANH,
    [ACTIVATION_GELU_QUICK] = KERNEL_GELU_QUICK,
    [ACTIVATION_RELU] = KERNEL_RELU,
    [ACTIVATION_SILU] = KERNEL_SILU,
    [ACTIVATION_TANH] = KERNEL_TANH,
    [ACTIVATION_SIGMOID] = KERNEL_SIGMOID,
};

void activate_rows(const kernels *table, activation function, float *x, size_t ld, size_t rows, size_t columns)
{
    if (function == ACTIVATION_NONE) return;
    for (size_t i = 0; i < rows; i++) table->activate_f32(x + i * ld, columns, kernel_of[function]);
}

void activate_rows_backward(const kernels *table, activation function, float *dy, float *y, const float *x, size_t ld,
                            size_t rows, size_t columns)
{
    for (size_t i = 0; i < rows; i++) {
        float *value = y ? y + i * ld : NULL;
        if (function != ACTIVATION_NONE)
            table->activate_backward_f32(dy + i * ld, value, x + i * ld, columns, kernel_of[function]);
        else if (value && value != x + i * ld)
            memcpy(value, x + i * ld, columns * sizeof *value);
    }
}
