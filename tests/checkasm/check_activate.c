/* activate_f32 and activate_backward_f32: every function over the whole range of float32, all tails, and what lies
 * where they change; then kernels with a fault each, which these cases must catch.
 *
 * Where SLEEF is there it is the second opinion twice over: its float64 functions must agree with the C library's, from
 * which the exact values are made, and the accuracy of its float32 functions is printed beside ours.
 *
 * SPDX-License-Identifier: MIT */
#include "check/kernels/activations.h"
#include "tests/checkasm/checkasm.h"

#include <float.h>
#include <math.h>

#ifndef HAVE_SLEEF
#define HAVE_SLEEF 0
#endif
#if HAVE_SLEEF
#include <sleef.h>
#endif

/* ------------------------------------------------------------------------------------------------------------ SLEEF */

#if HAVE_SLEEF
/* Under the plain signatures: SLEEF declares its parameters const. */
static double sleef_exp(double x) { return Sleef_exp_u10(x); }
static double sleef_tanh(double x) { return Sleef_tanh_u10(x); }
static double sleef_erfc(double x) { return Sleef_erfc_u15(x); }

static float sleef_gate(float x, float u) { return x / (1.0f + Sleef_expf_u10(-u)); }

static float sleef_activation(float x, activation function)
{
    switch (function) {
    case ACTIVATION_NONE: return x;
    case ACTIVATION_GELU: return 0.5f * x * Sleef_erfcf_u15(x * -0.70710678f);
    case ACTIVATION_GELU_TANH:
    case ACTIVATION_GELU_QUICK:
    case ACTIVATION_SILU: return sleef_gate(x, (float)gate_argument((double)x, function));
    case ACTIVATION_RELU: return fmaxf(x, 0.0f);
    case ACTIVATION_TANH: return Sleef_tanhf_u10(x);
    case ACTIVATION_SIGMOID: return sleef_gate(1.0f, x);
    case ACTIVATION_EXP: return Sleef_expf_u10(x);
    default: return (float)exact_activation((double)x, function); /* SLEEF has no such function */
    }
}

static void ask_sleef(test_run *run, float x, activation function)
{
    static const mathematics sleef = {sleef_exp, sleef_tanh, sleef_erfc};
    const double want = exact_activation((double)x, function), second = activation_by(&sleef, (double)x, function);
    if (!(fabs(want - second) <= 1e-13 * fabs(want)) && isfinite(want) && fabs(want) > 1e-300)
        run_fail(run, "float64 %s(%.9g): the C library gives %.17g, SLEEF %.17g", activation_name(function), (double)x,
                 want, second);
    const double error = fabs((double)sleef_activation(x, function) - want) / ulp_of(want);
    if (fabsf(x) <= 5.0f) run->sleef_near_zero = fmax(run->sleef_near_zero, error);
}
#else
static void ask_sleef(test_run *run, float x, activation function) { (void)run, (void)x, (void)function; }
#endif

/* Of one case, beside what its bounds say: the accuracy on [-5, 5], ours and SLEEF's. */
static void look_near_zero(test_run *run, const kernel_problem *p)
{
    const problem_array *x = &p->arrays[0];
    for (size_t e = 0; run->right_edge && e < p->columns; e++) {
        const double want = exact_activation((double)x->initial[e], p->function);
        if (fabsf(x->initial[e]) <= 5.0f)
            run->near_zero = fmax(run->near_zero, fabs((double)x->at[e] - want) / ulp_of(want));
        if (run->tested == run->expected) ask_sleef(run, x->initial[e], p->function);
    }
}

/* ------------------------------------------------------------------------------------------------------------ walks */

static void plant_special(kernel_problem *p, const void *nothing)
{
    static const float specials[] = {0.0f,       -0.0f,   INFINITY, -INFINITY, NAN,     0x1p-149f, -0x1p-149f,
                                     0x1p-126f,  FLT_MAX, -FLT_MAX, 88.0f,     88.5f,   88.72283f, 88.8f,
                                     -87.33654f, -87.5f,  -104.0f,  13.06f,    -13.05f, -13.1f,    -5.75f,
                                     5.75f,      0.625f,  -0.625f,  10.0f,     -100.5f};
    (void)nothing;
    for (size_t e = 0; e < p->columns; e++)
        if (draw_below(p, 3) == 0)
            run_array(p, "x")->initial[e] = specials[draw_below(p, sizeof specials / sizeof *specials)];
}

static void check_tails(test_run *run)
{
    static const planted_values special = {"special values", plant_special, look_near_zero};
    kernel_problem p = {.rows = 1, .values = VALUES_BELL, .scale = 4};
    for (int function = ACTIVATION_GELU; function <= ACTIVATION_EXP; function++)
        for (p.columns = 0; p.columns <= 4 * PANEL + 1; p.columns++) {
            p.function = (activation)function;
            run_planted(run, 10, &p, &special, NULL);
        }
}

/* Bit patterns from `first` on, `step` apart, each moved by a random amount. */
typedef struct bit_patterns {
    uint32_t first, step;
} bit_patterns;

static void plant_patterns(kernel_problem *p, const void *what)
{
    const bit_patterns *patterns = what;
    for (size_t e = 0; e < p->columns; e++) {
        const uint32_t bits = patterns->first + (uint32_t)e * patterns->step + (uint32_t)draw_below(p, patterns->step);
        run_array(p, "x")->initial[e] = bits == POISON ? 0.0f : float_from_bits(bits);
    }
}

/* All 2^32 bit patterns in 256 cases. */
static void walk_all_floats(test_run *run, activation function)
{
    static const planted_values all = {"bit patterns", plant_patterns, look_near_zero};
    const size_t n = run->options->quick ? 1 << 5 : 1 << 12;
    for (uint32_t part = 0; part < 256; part++) {
        const bit_patterns patterns = {part << 24, (uint32_t)((1u << 24) / n)};
        run_planted(run, 1, &(kernel_problem){.rows = 1, .columns = n, .function = function}, &all, &patterns);
    }
}

#define WALK(NAME, name, ...)                                                                                          \
    static void check_##name(test_run *run) { walk_all_floats(run, ACTIVATION_##NAME); }
ACTIVATIONS(WALK)
WALK(EXP, exp, "")
#undef WALK

#define WALKED(NAME, name, ...) {"activate_f32/" #name, check_##name},
CHECKS_OF(activate_f32, {"activate_f32/tails", check_tails}, ACTIVATIONS(WALKED){"activate_f32/exp", check_exp})
#undef WALKED

/* ---------------------------------------------------------------------------------------------------------- slopes */

static void plant_ends(kernel_problem *p, const void *nothing)
{
    static const float ends[] = {0.0f,   -0.0f,   1e-30f, -1e-30f, 13.06f,   -13.06f,
                                 100.0f, -100.0f, 1e30f,  -1e30f,  INFINITY, -INFINITY};
    (void)nothing;
    for (size_t e = 0; e < p->columns; e++) {
        const float x = ends[draw_below(p, sizeof ends / sizeof *ends)];
        run_array(p, "x")->initial[e] = p->function == ACTIVATION_EXP ? fminf(x, 80.0f) : x;
    }
}

static void plant_one_nan(kernel_problem *p, const void *nothing)
{
    (void)nothing;
    run_array(p, "x")->initial[draw_below(p, p->columns)] = NAN;
}

static void check_slopes(test_run *run)
{
    static const planted_values ends = {"ends", plant_ends, NULL}, a_nan = {"a NaN", plant_one_nan, NULL};
    static const planted_values *const plants[] = {NULL, &ends, &a_nan};
    kernel_problem p = {.rows = 1, .values = VALUES_UNIFORM, .scale = 8};
    for (int function = ACTIVATION_GELU; function <= ACTIVATION_EXP; function++)
        for (size_t kind = 0; kind < 3; kind++)
            for (p.columns = 1; p.columns <= 2 * PANEL + 3; p.columns++) {
                p.function = (activation)function;
                p.options = (p.columns + kind) % 2 ? WITH_Y : 0;
                run_planted(run, 12, &p, plants[kind], NULL);
            }
    p.options = WITH_Y;
    p.columns = 5000;
    for (int function = ACTIVATION_GELU; function <= ACTIVATION_EXP; function++) {
        p.function = (activation)function;
        run_problem(run, 1, &p);
    }
}

CHECKS_OF(activate_backward_f32, {"activate_backward_f32/all", check_slopes})

/* ----------------------------------------------------------------------------------------------------------- faults */

static void activate_skips_tail(float *x, size_t n, activation function) { sound.activate_f32(x, n / 8 * 8, function); }

static void activate_gelu_by_tanh(float *x, size_t n, activation function)
{
    sound.activate_f32(x, n, function == ACTIVATION_GELU ? ACTIVATION_GELU_TANH : function);
}

static void activate_off_by_one_ulp(float *x, size_t n, activation function)
{
    sound.activate_f32(x, n, function);
    for (size_t e = 0; e < n; e++)
        if (function == ACTIVATION_TANH && isfinite(x[e]) && x[e] > 0.9f && x[e] < 1.0f)
            x[e] = float_from_bits(float_bits(x[e]) + 1);
}

static void activate_drops_nan(float *x, size_t n, activation function)
{
    for (size_t e = 0; e < n; e++)
        if (isnan(x[e])) x[e] = 0.0f;
    sound.activate_f32(x, n, function);
}

static void activate_nan_at_infinity(float *x, size_t n, activation function)
{
    for (size_t e = 0; e < n; e++)
        if (x[e] == -INFINITY) x[e] = NAN;
    sound.activate_f32(x, n, function);
}

static void activate_backward_by_tanh(float *dy, float *y, const float *x, size_t n, activation function)
{
    sound.activate_backward_f32(dy, y, x, n, function == ACTIVATION_GELU ? ACTIVATION_GELU_TANH : function);
}

FAULTS_OF(activate_f32, GROSS_FAULT(activate_f32, activate_skips_tail),
          GROSS_FAULT(activate_f32, activate_gelu_by_tanh), BITS_FAULT(activate_f32, activate_off_by_one_ulp),
          GROSS_FAULT(activate_f32, activate_drops_nan), GROSS_FAULT(activate_f32, activate_nan_at_infinity))

FAULTS_OF(activate_backward_f32, GROSS_FAULT(activate_backward_f32, activate_backward_by_tanh))
