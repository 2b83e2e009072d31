/* Computes the activations and their slopes in float64 from their definitions, and bounds how far a kernel may be from
 * them.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/activation_list.h"

/* The three functions from which all others are computed, by one library or another. */
typedef struct mathematics {
    double (*exp)(double), (*tanh)(double), (*erfc)(double);
} mathematics;

/* A slope, and an upper bound of the terms of its sum. */
typedef struct exact_slope_value {
    double value, size;
} exact_slope_value;

/* Bounds of an error, of which one is enough: ulp, whose growth is given, or absolute. */
typedef struct activation_bounds {
    double ulp, absolute, growth;
} activation_bounds;

double activation_by(const mathematics *from, double x, activation function);
/* Computes the activation by the C library. */
double exact_activation(double x, activation function);
/* Computes f'(x). */
exact_slope_value exact_slope_of(double x, activation function);
/* Returns the bounds of simd/math_coefficients.h, rounded up for gelu. */
activation_bounds activation_bounds_of(double x, activation function);
/* Returns the argument that gelu_tanh and gelu_quick pass to the logistic function; x for the other activations. */
double gate_argument(double x, activation function);
