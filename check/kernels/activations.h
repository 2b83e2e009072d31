/* Declares the expected values of kernels of activations. SPDX-License-Identifier: MIT */
#pragma once

#include "analysis/reference/exact_activation.h"
#include "check/kernels/kernel_problem.h"

/* Returns the name of the function in `bench kernel` and `verify`: "gelu", "exp". */
const char *activation_name(activation function);
/* Computes f(x), with the kernels' bounds. */
exact_value activation_value(double x, activation function);
/* Computes f'(x), and an upper bound of the terms of which it is the sum. */
exact_sum exact_slope(double x, activation function);
