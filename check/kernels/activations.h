/* The activations and their slopes in float64, from their definitions. SPDX-License-Identifier: MIT */
#pragma once

#include "check/kernels/kernel_problem.h"

const char *activation_name(kernel_activation function);

/* The three functions from which all others are made, from one library or another. */
typedef struct mathematics {
    double (*exp)(double), (*tanh)(double), (*erfc)(double);
} mathematics;

double activation_by(const mathematics *from, double x, kernel_activation function);
/* By the C library. */
double exact_activation(double x, kernel_activation function);
/* What gelu_tanh and gelu_quick hand to the logistic function; of others, x. */
double gate_argument(double x, kernel_activation function);
/* With the bounds of simd/math_coefficients.h, for gelu rounded up. */
exact_value activation_value(double x, kernel_activation function);
/* f'(x), and how large what it is made of can be. */
exact_sum exact_slope(double x, kernel_activation function);
