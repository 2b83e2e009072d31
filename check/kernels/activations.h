/* Declares the expected values of kernels of activations. SPDX-License-Identifier: MIT */
#pragma once

#include "analysis/reference/exact_activation.h"
#include "check/kernels/kernel_problem.h"

/* Name of the function as `bench kernel` and `verify` write it: "gelu", "exp". */
const char *activation_name(activation function);
/* f(x) with the kernels' bounds. */
exact_value activation_value(double x, activation function);
/* f'(x), and how large what it is made of can be. */
exact_sum exact_slope(double x, activation function);
