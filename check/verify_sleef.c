/* Compares our exp, GELU and tanh and SLEEF's with float64, which is computed twice. SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/reference/sleef_math.h"
#include "check/kernels/activations.h"
#include "check/verify.h"
#include "core/base/numbers.h"
#include "core/base/status.h"
#include "core/dispatch.h"

enum { VALUES = 1 << 14 };

/* Limits in eps times the scale of verify_kernels' activate_f32. */
static const double limit_of_ours = 8, limit_of_theirs = 8;
/* Two libraries of float64 agree to a millionth of what is measured with them. */
static const double limit_of_float64 = 1e-6;

static const activation ours[SLEEF_FUNCTIONS] = {ACTIVATION_EXP, ACTIVATION_GELU, ACTIVATION_TANH};

typedef struct second_opinion {
    verify_report *report;
    sleef_function function;
    float *x, *scalar, *found; /* [VALUES] */
} second_opinion;

static void verify_sleef_add_row(const second_opinion *o, const char *whose, deberta_isa tier, double limit)
{
    verify_errors errors = {0};
    verify_row row = {.tier = tier, .values = VALUES, .limit = limit};
    snprintf(row.subject, sizeof row.subject, "%s%s", sleef_function_name(o->function), whose);
    const bool is_ours = *whose == '\0';
    for (size_t i = 0; i < VALUES; i++) {
        const double x = (double)o->x[i], exact = exact_activation(x, ours[o->function]);
        row.differing += is_ours && memcmp(&o->found[i], &o->scalar[i], sizeof *o->found) != 0;
        verify_errors_add(&errors, (double)o->found[i], exact, FLT_EPSILON * (fabs(exact) + 1e-2 * fabs(x) + 1e-30),
                          "element %zu", i, 0);
    }
    verify_report_add(o->report, &row, &errors);
}

static void compare_float64(const second_opinion *o)
{
    verify_errors errors = {0};
    verify_row row = {.tier = DEBERTA_ISA_SCALAR, .values = VALUES, .limit = limit_of_float64};
    snprintf(row.subject, sizeof row.subject, "%s of SLEEF in float64", sleef_function_name(o->function));
    for (size_t i = 0; i < VALUES; i++) {
        const double x = (double)o->x[i], exact = exact_activation(x, ours[o->function]);
        verify_errors_add(&errors, sleef_exact(o->function, x), exact, FLT_EPSILON * (fabs(exact) + 1e-30),
                          "element %zu", i, 0);
    }
    verify_report_add(o->report, &row, &errors);
}

static deberta_status compare_function(second_opinion *o, const verify_options *options, deberta_error *err)
{
    for (int t = DEBERTA_ISA_SCALAR; t < DEBERTA_ISA_COUNT; t++) {
        kernels table;
        if (t != DEBERTA_ISA_SCALAR && !options->tiers[t]) continue;
        DEBERTA_TRY(kernels_select(&table, (deberta_isa)t, err));
        memcpy(o->found, o->x, VALUES * sizeof *o->x);
        table.activate_f32(o->found, VALUES, ours[o->function]);
        if (t == DEBERTA_ISA_SCALAR) memcpy(o->scalar, o->found, VALUES * sizeof *o->found);
        verify_sleef_add_row(o, "", (deberta_isa)t, limit_of_ours);
    }
    memcpy(o->found, o->x, VALUES * sizeof *o->x);
    sleef_run(o->function, o->found, VALUES);
    verify_sleef_add_row(o, " of SLEEF", DEBERTA_ISA_SCALAR, limit_of_theirs);
    compare_float64(o);
    return DEBERTA_OK;
}

deberta_status verify_sleef(verify_report *report, const verify_options *options, deberta_error *err)
{
    if (!sleef_is_present()) return DEBERTA_OK;
    float *memory = memory_take(3 * VALUES, sizeof *memory);
    second_opinion o = {.report = report, .x = memory, .scalar = memory + VALUES, .found = memory + 2 * VALUES};
    uint64_t state = options->seed;
    /* Draws arguments in the range that they have in a softmax and in a feed-forward. */
    for (size_t i = 0; i < VALUES; i++) o.x[i] = (float)(20 * random_fraction(&state) - 10);
    deberta_status status = DEBERTA_OK;
    for (int f = 0; status == DEBERTA_OK && f < SLEEF_FUNCTIONS; f++) {
        o.function = (sleef_function)f;
        status = compare_function(&o, options, err);
    }
    free(memory);
    return status;
}
