/* Implements the tools that descriptions share: arrays with gaps, numbers to fill them, exact values.
 *
 * SPDX-License-Identifier: MIT */
#include "check/kernels/kernel_problem.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/base/numbers.h"
#include "core/model/pack.h"

/* ----------------------------------------------------------------------------------------------------------- arrays */

size_t problem_stride(kernel_problem *p, size_t width)
{
    static const size_t gaps[] = {0, 1, 7};
    return p->plain ? row_stride(width) : width + gaps[draw_below(p, 3)];
}

void count_words(problem_array *a)
{
    const bool is_empty = !a->blocks || !a->rows || !a->width;
    a->words = is_empty ? 0 : (a->blocks - 1) * a->block_stride + (a->rows - 1) * a->ld + a->width;
}

static problem_array *kernel_problem_take(kernel_problem *p, size_t k, problem_array array)
{
    array.scale *= p->scale != 0 ? p->scale : 1;
    p->arrays[k] = array;
    count_words(&p->arrays[k]);
    return &p->arrays[k];
}

problem_array *take_vector(kernel_problem *p, size_t k, const char *name, array_kind kind, size_t width, float scale)
{
    return kernel_problem_take(p, k, (problem_array){name, kind, 1, width, 1, width, width, .scale = scale});
}

problem_array *take_matrix(kernel_problem *p, size_t k, const char *name, array_kind kind, size_t rows, size_t width,
                           float scale)
{
    const size_t ld = problem_stride(p, width);
    return kernel_problem_take(p, k, (problem_array){name, kind, 1, rows * ld, rows, ld, width, .scale = scale});
}

problem_array *take_panels(kernel_problem *p, size_t k, const char *name, array_kind kind, size_t rows, size_t panels,
                           float scale)
{
    const bool by_panels = !p->plain && draw_flag(p);
    const size_t ld = problem_stride(p, by_panels ? PANEL : panels * PANEL);
    const size_t stride = by_panels ? problem_stride(p, rows * ld) : PANEL;
    return kernel_problem_take(p, k, (problem_array){name, kind, panels, stride, rows, ld, PANEL, .scale = scale});
}

void take_bytes(kernel_problem *p, size_t k, const char *name, array_kind kind, size_t bytes)
{
    take_vector(p, k, name, kind, bytes / sizeof(float) + (bytes % sizeof(float) != 0), 0);
}

/* ---------------------------------------------------------------------------------------------------------- numbers */

size_t draw_below(kernel_problem *p, size_t limit) { return random_below(&p->random, limit); }
bool draw_flag(kernel_problem *p) { return random_next(&p->random) >> 63; }

float draw_uniform(kernel_problem *p, float low, float high)
{
    return low + (high - low) * (float)(random_next(&p->random) >> 40) * 0x1p-24f;
}

/* Returns the sum of four uniform 16-bit numbers from one draw, which is nearly normal. */
float draw_bell(kernel_problem *p)
{
    const uint64_t bits = random_next(&p->random);
    const uint32_t sum = (uint32_t)(bits & 0xffff) + (uint32_t)(bits >> 16 & 0xffff) + (uint32_t)(bits >> 32 & 0xffff) +
                         (uint32_t)(bits >> 48);
    return ((float)sum - 131070.0f) * (1.732f / 65536.0f);
}

float draw_number(kernel_problem *p)
{
    const float u = draw_uniform(p, -1, 1);
    switch (p->values) {
    case VALUES_HUGE: return draw_flag(p) ? u * 1e15f : u * 2;
    case VALUES_TIES: return u < 0 ? -1.0f : 1.0f;
    case VALUES_SUBNORMAL: return draw_flag(p) ? u * 1e-38f : u * 2;
    case VALUES_CONSTANT:
    case VALUES_ORDINARY: return draw_below(p, 50) == 0 ? u * 30 : draw_below(p, 50) == 0 ? u * 1e-4f : u * 2;
    case VALUES_UNIFORM: return u;
    case VALUES_BELL: return draw_bell(p);
    case VALUES_WIDE: return draw_bell(p) * exp2f(6.0f * draw_bell(p));
    case VALUES_WHOLE: return (float)draw_below(p, 17) - 8.0f;
    }
    return 0;
}

void draw_array(kernel_problem *p, size_t k)
{
    const problem_array *a = &p->arrays[k];
    const float same = p->values == VALUES_CONSTANT ? a->scale * draw_number(p) : 0;
    for (size_t b = 0; b < a->blocks; b++)
        for (size_t i = 0; i < a->rows; i++)
            for (size_t j = 0; j < a->width; j++)
                a->initial[b * a->block_stride + i * a->ld + j] =
                    p->values == VALUES_CONSTANT ? same : a->scale * draw_number(p);
}

uint32_t float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

float float_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

void poison_words(float *words, size_t count)
{
    const uint32_t poison = POISON;
    for (size_t i = 0; i < count; i++) memcpy(&words[i], &poison, sizeof poison);
}

static bool is_nan(uint32_t bits) { return (bits & 0x7fffffffu) > 0x7f800000u; }

bool same_word(uint32_t found, uint32_t expected, array_kind kind)
{
    if (found == expected) return true;
    if (is_nan(found) && is_nan(expected)) return found != POISON && expected != POISON;
    return kind == ARRAY_OUTPUT_ANY_ZERO && ((found | expected) & 0x7fffffffu) == 0;
}

double ulp_of(double x)
{
    int exponent;
    frexp(x, &exponent);
    return ldexp(1.0, (x == 0 || exponent < -125 ? -125 : exponent) - 24);
}

/* ----------------------------------------------------------------------------------------------------- exact values */

const char *unit_name(error_unit unit)
{
    static const char *const names[UNIT_COUNT] = {"ULP", "eps S", "half steps"};
    return names[unit];
}

void add_term(exact_sum *sum, double term)
{
    sum->value += term;
    sum->terms += fabs(term);
}

bool expect_result(const kernel_problem *p, const exact_judge *judge, size_t k, size_t index, exact_value want)
{
    return judge->judge(judge->context, p, k, index, (double)p->arrays[k].at[index], &want);
}

bool expect_sum(const kernel_problem *p, const exact_judge *judge, size_t k, size_t index, exact_sum want, double limit)
{
    const bool fits = !(fabs(want.value) > (double)FLT_MAX);
    const double value = fits ? want.value : copysign(INFINITY, want.value);
    return expect_result(p, judge, k, index, (exact_value){value, EPS * want.terms + 0x1p-149, limit, UNIT_EPS_S});
}
