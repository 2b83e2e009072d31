/* Wraps SLEEF's functions in plain signatures; no other file of the program includes SLEEF.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/reference/sleef_math.h"

#include <math.h>

const char *sleef_function_name(sleef_function function)
{
    static const char *const names[SLEEF_FUNCTIONS] = {"exp", "gelu", "tanh"};
    return names[function];
}

#if HAVE_SLEEF
#include <sleef.h>
#include <string.h>

enum { LANES = 4 };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

bool sleef_is_present(void) { return true; }

double sleef_exact(sleef_function function, double x)
{
    switch (function) {
    case SLEEF_GELU: return 0.5 * x * Sleef_erfc_u15(-x * M_SQRT1_2);
    case SLEEF_TANH: return Sleef_tanh_u10(x);
    default: return Sleef_exp_u10(x);
    }
}

static lanes run_lanes(sleef_function function, lanes x)
{
    switch (function) {
    case SLEEF_GELU: return 0.5f * x * Sleef_erfcf4_u15(x * -(float)M_SQRT1_2);
    case SLEEF_TANH: return Sleef_tanhf4_u10(x);
    default: return Sleef_expf4_u10(x);
    }
}

void sleef_run(sleef_function function, float *x, size_t count)
{
    for (size_t i = 0; i < count; i += LANES) {
        const size_t there = count - i < LANES ? count - i : LANES;
        lanes values = {0};
        memcpy(&values, x + i, there * sizeof *x);
        values = run_lanes(function, values);
        memcpy(x + i, &values, there * sizeof *x);
    }
}
#else
bool sleef_is_present(void) { return false; }
double sleef_exact(sleef_function function, double x) { return (void)function, (void)x, NAN; }
void sleef_run(sleef_function function, float *x, size_t count) { (void)function, (void)x, (void)count; }
#endif
