/* Turns the float64 activations into the expected values of a kernel's results. SPDX-License-Identifier: MIT */
#include "check/kernels/activations.h"

#include <float.h>
#include <math.h>

const char *activation_name(activation function)
{
#define NAMED(NAME, name, ...) [ACTIVATION_##NAME] = #name,
    static const char *const names[] = {[ACTIVATION_NONE] = "none", ACTIVATIONS(NAMED)[ACTIVATION_EXP] = "exp"};
#undef NAMED
    return names[function];
}

exact_value activation_value(double x, activation function)
{
    const double y = exact_activation(x, function), want = y > (double)FLT_MAX ? INFINITY : y;
    const activation_bounds allowed = activation_bounds_of(x, function);
    const double ulp = ulp_of(want) * allowed.growth;
    const double size = allowed.ulp > 0 ? fmax(ulp, allowed.absolute / allowed.ulp) : ulp;
    return (exact_value){want, size, allowed.ulp, UNIT_ULP};
}

exact_sum exact_slope(double x, activation function)
{
    const exact_slope_value slope = exact_slope_of(x, function);
    return (exact_sum){slope.value, slope.size};
}
