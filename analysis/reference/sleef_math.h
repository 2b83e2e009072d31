/* Wraps SLEEF's exp, GELU (by its erfc) and tanh, an independent implementation to verify and measure ours against.
 *
 * A build without SLEEF (meson option `sleef`) has these functions too, and sleef_is_present says no. The engine does
 * not use them: docs/design.md says why.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef enum sleef_function { SLEEF_EXP, SLEEF_GELU, SLEEF_TANH, SLEEF_FUNCTIONS } sleef_function;

bool sleef_is_present(void);
const char *sleef_function_name(sleef_function function);
/* Compute x[0 ... count) in place: float32, four lanes at a time as on every processor that SLEEF's base tier runs on.
 * Promised to be within 1 ULP (exp, tanh) and 1.5 (erfc, to which GELU adds the rounding of two products and of its
 * argument). */
void sleef_run(sleef_function function, float *x, size_t count);
/* Computes the same function in float64 by SLEEF; a NaN without it. */
double sleef_exact(sleef_function function, double x);
