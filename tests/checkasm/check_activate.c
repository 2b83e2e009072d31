/* activate_f32: every function over the whole range of float32 against its formula in float64, in ULP, and all tails.
 *
 * The bounds are those of simd/math_coefficients.h, for gelu rounded up. Where SLEEF is there it is the second opinion
 * twice over: its float64 functions must agree with the C library's, from which the formulas here are made, and the
 * accuracy of its float32 functions is printed beside ours.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm.h"

#include <float.h>
#include <math.h>

#ifndef HAVE_SLEEF
#define HAVE_SLEEF 0
#endif
#if HAVE_SLEEF
#include <sleef.h>
#endif

typedef struct activate_case {
    kernel_activation function;
    size_t n;
    uint32_t first_bits, step; /* of the dense walk; step 0: special and random values instead */
    test_buffer *x;
} activate_case;

typedef struct activate_task {
    float *x;
    size_t n;
    kernel_activation function;
} activate_task;

static void call_activate(const kernels *table, const void *task)
{
    const activate_task *t = task;
    table->activate_f32(t->x, t->n, t->function);
}

static const void *activate_task_for(void *context, int copy)
{
    static activate_task task;
    const activate_case *c = context;
    task = (activate_task){.x = c->x->copy[copy], .n = c->n, .function = c->function};
    return &task;
}

const char *activation_name(kernel_activation function)
{
    static const char *const names[] = {[KERNEL_GELU] = "gelu",
                                        [KERNEL_GELU_TANH] = "gelu_tanh",
                                        [KERNEL_GELU_QUICK] = "gelu_quick",
                                        [KERNEL_RELU] = "relu",
                                        [KERNEL_SILU] = "silu",
                                        [KERNEL_TANH] = "tanh",
                                        [KERNEL_SIGMOID] = "sigmoid",
                                        [KERNEL_EXP] = "exp"};
    return names[function];
}

/* --------------------------------------------------------------------------------------------------------- formulas */

/* The three functions from which all others are made, from one library or the other. */
typedef struct mathematics {
    double (*exp)(double), (*tanh)(double), (*erfc)(double);
} mathematics;

static double sigmoid(const mathematics *m, double x)
{
    return x < 0 ? m->exp(x) / (1 + m->exp(x)) : 1 / (1 + m->exp(-x));
}

/* What gelu_tanh and gelu_quick hand to the sigmoid: 2 sqrt(2 / pi) (x + 0.044715 x^3) and 1.702 x. */
static double gate_argument(double x, kernel_activation function)
{
    if (function == KERNEL_GELU_TANH) return 2 * sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x);
    if (function == KERNEL_GELU_QUICK) return 1.702 * x;
    return x;
}

static double activation(const mathematics *m, double x, kernel_activation function)
{
    if (isnan(x)) return x;
    switch (function) {
    case KERNEL_GELU: return x == -INFINITY ? 0 : 0.5 * x * m->erfc(-x / sqrt(2));
    case KERNEL_GELU_TANH:
    case KERNEL_GELU_QUICK:
    case KERNEL_SILU: return x == -INFINITY ? 0 : x * sigmoid(m, gate_argument(x, function));
    case KERNEL_RELU: return x < 0 ? 0 : x;
    case KERNEL_TANH: return m->tanh(x);
    case KERNEL_SIGMOID: return sigmoid(m, x);
    case KERNEL_EXP: return m->exp(x);
    }
    return NAN;
}

double reference_activation(double x, kernel_activation function)
{
    static const mathematics c_library = {exp, tanh, erfc};
    return activation(&c_library, x, function);
}

/* ----------------------------------------------------------------------------------------------------------- bounds */

typedef struct error_bounds {
    double ulp, absolute; /* either is enough */
} error_bounds;

static double gelu_ulp(double x) { return x > 0 ? 2.5 : x > -1 ? 3 : x >= -3 ? 6 : x >= -5 ? 11 : x >= -5.5 ? 18 : 25; }

static error_bounds bounds_of(double x, kernel_activation function)
{
    /* What is below the exponential's range counts as 0. Rounding the argument u of a gate costs as much as u is large.
     * */
    const double u = gate_argument(x, function);
    const double gate_absolute = u < -87.3 ? 0x1p-119 : 0;
    const double amplification = isfinite(u) ? fabs(u) / (1 + exp(u)) : 0;
    switch (function) {
    case KERNEL_GELU: return (error_bounds){gelu_ulp(x), x < -5.75 ? 2.7e-10 : 0};
    case KERNEL_GELU_TANH: return (error_bounds){3.7 + 3 * amplification, gate_absolute};
    case KERNEL_GELU_QUICK: return (error_bounds){3.7 + 1.5 * amplification, gate_absolute};
    case KERNEL_SILU: return (error_bounds){3.7, gate_absolute};
    case KERNEL_RELU: return (error_bounds){0, 0};
    case KERNEL_TANH: return (error_bounds){1.4, 0};
    case KERNEL_SIGMOID: return (error_bounds){2.7, x < -87.3 ? 0x1p-126 : 0};
    case KERNEL_EXP: return (error_bounds){x > 88.37 ? 6 : 1.3, x < -87.3365 ? 0x1p-126 : 0};
    }
    return (error_bounds){0, 0};
}

static bool compare_value(test_run *run, size_t index, float x, float got, kernel_activation function)
{
    double want = reference_activation((double)x, function);
    if (want > (double)FLT_MAX) want = INFINITY;
    const error_bounds allowed = bounds_of((double)x, function);
    if (fabs((double)got - want) <= allowed.absolute) return true;
    if (fabsf(x) <= 5.0f) run->near_zero = fmax(run->near_zero, fabs((double)got - want) / ulp_of(want));
    if (run_error(run, "x", index, (double)got, want, UNIT_ULP, ulp_of(want), allowed.ulp)) return true;
    if (!run->quiet) printf("      that is %s(%.9g)\n", activation_name(function), (double)x);
    return false;
}

/* ------------------------------------------------------------------------------------------------------------ SLEEF */

#if HAVE_SLEEF
/* Under the plain signatures: SLEEF declares its parameters const. */
static double sleef_exp(double x) { return Sleef_exp_u10(x); }
static double sleef_tanh(double x) { return Sleef_tanh_u10(x); }
static double sleef_erfc(double x) { return Sleef_erfc_u15(x); }

static float sleef_gate(float x, float u) { return x / (1.0f + Sleef_expf_u10(-u)); }

static float sleef_activation(float x, kernel_activation function)
{
    switch (function) {
    case KERNEL_GELU: return 0.5f * x * Sleef_erfcf_u15(x * -0.70710678f);
    case KERNEL_GELU_TANH:
    case KERNEL_GELU_QUICK:
    case KERNEL_SILU: return sleef_gate(x, (float)gate_argument((double)x, function));
    case KERNEL_RELU: return fmaxf(x, 0.0f);
    case KERNEL_TANH: return Sleef_tanhf_u10(x);
    case KERNEL_SIGMOID: return sleef_gate(1.0f, x);
    case KERNEL_EXP: return Sleef_expf_u10(x);
    }
    return NAN;
}

static void ask_sleef(test_run *run, float x, kernel_activation function)
{
    static const mathematics sleef = {sleef_exp, sleef_tanh, sleef_erfc};
    const double want = reference_activation((double)x, function), second = activation(&sleef, (double)x, function);
    if (!(fabs(want - second) <= 1e-13 * fabs(want)) && isfinite(want) && fabs(want) > 1e-300)
        run_fail(run, "float64 %s(%.9g): the C library gives %.17g, SLEEF %.17g", activation_name(function), (double)x,
                 want, second);
    const double error = fabs((double)sleef_activation(x, function) - want) / ulp_of(want);
    if (fabsf(x) <= 5.0f) run->sleef_near_zero = fmax(run->sleef_near_zero, error);
}
#else
static void ask_sleef(test_run *run, float x, kernel_activation function) { (void)run, (void)x, (void)function; }
#endif

/* ------------------------------------------------------------------------------------------------------------ cases */

static float special_value(test_run *run)
{
    static const float specials[] = {0.0f,       -0.0f,   INFINITY, -INFINITY, NAN,     0x1p-149f, -0x1p-149f,
                                     0x1p-126f,  FLT_MAX, -FLT_MAX, 88.0f,     88.5f,   88.72283f, 88.8f,
                                     -87.33654f, -87.5f,  -104.0f,  13.06f,    -13.05f, -13.1f,    -5.75f,
                                     5.75f,      0.625f,  -0.625f,  10.0f,     -100.5f};
    return specials[random_index(run, sizeof specials / sizeof *specials)];
}

static void fill_values(test_run *run, const activate_case *c)
{
    for (size_t e = 0; e < c->n; e++) {
        float *x = &c->x->copy[COPY_INITIAL][e];
        if (c->step) {
            *x = float_from_bits(c->first_bits + (uint32_t)e * c->step + (uint32_t)random_index(run, c->step));
            if (float_bits(*x) == POISON) *x = 0.0f;
        } else {
            *x = random_index(run, 3) ? 4.0f * random_bell(run) : special_value(run);
        }
    }
}

static void activate_body(test_run *run, const void *parameters)
{
    activate_case c = *(const activate_case *)parameters;
    c.x = run_buffer(run, "x", c.n, BUFFER_OUTPUT);
    fill_values(run, &c);
    const bool same = run_kernels(run, call_activate, activate_task_for, &c);
    /* float64 is slow and the left edge has the same values. */
    if (!same || !run->right_edge) return;
    for (size_t e = 0; e < c.n; e++) {
        const float x = c.x->copy[COPY_INITIAL][e];
        if (!compare_value(run, e, x, c.x->copy[COPY_TESTED][e], c.function)) return;
        if (run->tested == run->expected) ask_sleef(run, x, c.function);
    }
}

void check_activate_tails(test_run *run)
{
    activate_case c = {0};
    for (int function = KERNEL_GELU; function <= KERNEL_EXP; function++)
        for (c.n = 0; c.n <= 4 * PANEL + 1; c.n++) {
            c.function = (kernel_activation)function;
            run_case(run, 10, activate_body, &c, "%s of %zu values", activation_name(c.function), c.n);
        }
}

/* All 2^32 bit patterns in 256 cases, from each of which equally spaced patterns are taken, moved by a random amount.
 * */
static void walk_all_floats(test_run *run, kernel_activation function)
{
    const size_t n = run->options->quick ? 1 << 5 : 1 << 12;
    for (uint32_t part = 0; part < 256; part++) {
        const activate_case c = {
            .function = function, .n = n, .first_bits = part << 24, .step = (uint32_t)((1u << 24) / n)};
        run_case(run, 1, activate_body, &c, "%s of %zu of the values %08x to %08x", activation_name(function), n,
                 part << 24, (part << 24) + 0xffffff);
    }
}

void check_activate_gelu(test_run *run) { walk_all_floats(run, KERNEL_GELU); }
void check_activate_gelu_tanh(test_run *run) { walk_all_floats(run, KERNEL_GELU_TANH); }
void check_activate_gelu_quick(test_run *run) { walk_all_floats(run, KERNEL_GELU_QUICK); }
void check_activate_relu(test_run *run) { walk_all_floats(run, KERNEL_RELU); }
void check_activate_silu(test_run *run) { walk_all_floats(run, KERNEL_SILU); }
void check_activate_tanh(test_run *run) { walk_all_floats(run, KERNEL_TANH); }
void check_activate_sigmoid(test_run *run) { walk_all_floats(run, KERNEL_SIGMOID); }
void check_activate_exp(test_run *run) { walk_all_floats(run, KERNEL_EXP); }
