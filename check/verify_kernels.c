/* Verifies kernels on random problems: each tier against scalar's bits, and against float64. The exhaustive version,
 * with guard pages and every edge, is tests/checkasm; this one runs anywhere in a second.
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/kernels/kernel_slots.h"
#include "check/verify.h"
#include "core/base/numbers.h"
#include "core/base/status.h"
#include "core/dispatch.h"

enum { TIERS = DEBERTA_ISA_COUNT };

static const struct {
    const char *suffix; /* end of the report's subject */
    problem_values values;
    int rounds;
} input_kinds[] = {{"", VALUES_ORDINARY, 60},
                   {" huge", VALUES_HUGE, 20},
                   {" ties", VALUES_TIES, 20},
                   {" subnormal", VALUES_SUBNORMAL, 20},
                   {" constant", VALUES_CONSTANT, 20}};

typedef struct verify_rounds {
    kernels tables[TIERS];
    bool present[TIERS];
    uint64_t state;
    verify_errors errors[TIERS];
    size_t values[TIERS], differing[TIERS];
    double limit; /* largest limit of a row */

    /* members of one round */
    float *memory;
    float *arrays[TIERS][PROBLEM_ARRAYS];
    char names[PROBLEM_ARRAYS][32]; /* names of the arrays, each with a separator before a place in it */
    bool alike[TIERS];              /* whether the judge adds a value to the row of the tier */
} verify_rounds;

#define EACH_TIER(t)                                                                                                   \
    for (int t = 0; t < TIERS; t++)                                                                                    \
        if (k->present[t])

/* --------------------------------------------------------------------------------------------------------- problems */

/* Draws a size from 1 to the limit, in units. Half of the sizes are at the end of some tile, or one beside it. */
static size_t draw_size(verify_rounds *k, size_t limit, size_t unit)
{
    size_t tile = PANEL;
    if (unit > 1) return unit * (1 + random_below(&k->state, limit / unit));
    if (random_below(&k->state, 2)) return 1 + random_below(&k->state, limit);
    const size_t tier = random_below(&k->state, TIERS);
    if (k->present[tier] && random_below(&k->state, 2)) tile = k->tables[tier].tile_rows;
    const size_t edge = limit < tile ? limit : tile * (1 + random_below(&k->state, limit / tile)),
                 size = edge + random_below(&k->state, 3) - 1;
    return size < 1 ? 1 : size > limit ? limit : size;
}

static kernel_problem draw_problem(verify_rounds *k, kernel_slot slot, problem_values values)
{
    enum { MOST_PARTS = 5 };
    const kernel_description *d = problem_description(slot);
    kernel_problem p = {.slot = slot, .values = values};
    if (d->drawn.rows) p.rows = draw_size(k, d->drawn.rows, 1);
    if (d->drawn.depth) p.depth = draw_size(k, d->drawn.depth, d->depth_unit);
    if (d->drawn.columns) p.columns = draw_size(k, d->drawn.columns, d->column_unit);
    p.options = (unsigned)random_next(&k->state) & d->optional;
    if (d->has_function) p.function = (activation)(ACTIVATION_GELU + random_below(&k->state, ACTIVATION_EXP));
    if (d->has_map) p.map = (problem_map)random_below(&k->state, MAP_ANY + 1);
    if (d->has_map) p.distance = (ptrdiff_t)random_below(&k->state, 200) - 100;
    if (d->has_parts && random_below(&k->state, 2)) p.parts = (size_t)1 << random_below(&k->state, MOST_PARTS);
    p.random = random_next(&k->state);
    return p;
}

/* Places every array at a different address in every tier, except inputs, which all tiers share. */
static void place_arrays(verify_rounds *k, kernel_problem *p)
{
    size_t words = 0;
    for (size_t a = 0; a < PROBLEM_ARRAYS; a++) words += p->arrays[a].words + PANEL;
    k->memory = memory_take(words * (TIERS + 1), sizeof *k->memory);
    poison_words(k->memory, words * (TIERS + 1));
    float *place = k->memory;
    for (size_t a = 0; a < PROBLEM_ARRAYS; a++) {
        problem_array *array = &p->arrays[a];
        if (!array->name) continue;
        snprintf(k->names[a], sizeof k->names[a], "%s ", array->name);
        array->initial = place + random_below(&k->state, PANEL);
        place += array->words + PANEL;
        EACH_TIER(t)
        {
            k->arrays[t][a] = array->initial;
            if (array->kind == ARRAY_INPUT) continue;
            k->arrays[t][a] = place + random_below(&k->state, PANEL);
            place += array->words + PANEL;
        }
    }
}

static void use_arrays(const verify_rounds *k, kernel_problem *p, int tier)
{
    for (size_t a = 0; a < PROBLEM_ARRAYS; a++)
        if (p->arrays[a].name) p->arrays[a].at = k->arrays[tier][a];
}

/* -------------------------------------------------------------------------------------------------------- comparing */

/* Counts the words of the tier's outputs that differ from scalar's. */
static size_t count_differing(const verify_rounds *k, const kernel_problem *p, int tier)
{
    size_t differing = 0;
    for (size_t a = 0; a < PROBLEM_ARRAYS; a++) {
        const problem_array *array = &p->arrays[a];
        const float *found = k->arrays[tier][a], *base = k->arrays[DEBERTA_ISA_SCALAR][a];
        for (size_t i = 0; array->kind != ARRAY_INPUT && i < array->words; i++)
            differing += !same_word(float_bits(found[i]), float_bits(base[i]), array->kind);
    }
    return differing;
}

static size_t count_values(const kernel_problem *p)
{
    size_t values = 0;
    for (size_t a = 0; a < PROBLEM_ARRAYS; a++)
        if (p->arrays[a].kind != ARRAY_INPUT) values += p->arrays[a].blocks * p->arrays[a].rows * p->arrays[a].width;
    return values;
}

/* The report counts in eps = 2^-23, an ULP of 1; bounds in ULP, which differ from place to place, it counts in eighths.
 */
static bool add_error(void *context, const kernel_problem *p, size_t a, size_t index, double found,
                      const exact_value *want)
{
    verify_rounds *k = context;
    const problem_array *array = &p->arrays[a];
    enum { EIGHTHS = 8 };
    const bool in_ulp = want->unit == UNIT_ULP && want->limit > 0;
    const double unit = in_ulp ? want->limit / EIGHTHS : want->unit == UNIT_EPS_S ? FLT_EPSILON / EPS : 1;
    const size_t row = array->ld ? index / array->ld : 0, column = array->ld ? index % array->ld : index;
    k->limit = fmax(k->limit, want->limit / unit);
    EACH_TIER(t)
    {
        if (!k->alike[t]) continue;
        k->errors[t].prefix = k->names[a];
        verify_errors_add(&k->errors[t], found, want->value, want->size * unit, "row %zu, column %zu", row, column);
    }
    return true;
}

/* Tiers with scalar's bits have scalar's errors. */
static void verify_kernels_compare(verify_rounds *k, kernel_problem *p)
{
    const exact_judge judge = {add_error, k};
    size_t differing[TIERS];
    EACH_TIER(t)
    {
        differing[t] = count_differing(k, p, t);
        k->differing[t] += differing[t];
        k->values[t] += count_values(p);
    }
    EACH_TIER(t)
    {
        if (t != DEBERTA_ISA_SCALAR && !differing[t]) continue;
        for (int other = 0; other < TIERS; other++)
            k->alike[other] = other == t || (t == DEBERTA_ISA_SCALAR && k->present[other] && !differing[other]);
        use_arrays(k, p, t);
        problem_exact(p, &judge);
    }
}

static void run_round(verify_rounds *k, kernel_slot slot, problem_values values)
{
    kernel_problem p = draw_problem(k, slot, values);
    problem_lay_out(&p);
    place_arrays(k, &p);
    problem_fill(&p);
    EACH_TIER(t)
    {
        use_arrays(k, &p, t);
        for (size_t a = 0; a < PROBLEM_ARRAYS; a++)
            if (p.arrays[a].name && p.arrays[a].at != p.arrays[a].initial)
                memcpy(p.arrays[a].at, p.arrays[a].initial, p.arrays[a].words * sizeof(float));
        problem_call(&k->tables[t], &p);
    }
    verify_kernels_compare(k, &p);
    free(k->memory);
    k->memory = NULL;
}

/* ------------------------------------------------------------------------------------------------------- the report */

/* Checks one kernel on one kind of inputs: a row for each tier. */
static void check_slot(verify_rounds *k, kernel_slot slot, size_t kind, verify_report *report)
{
    memset(k->values, 0, sizeof k->values);
    memset(k->differing, 0, sizeof k->differing);
    k->limit = 0;
    for (int round = 0; round < input_kinds[kind].rounds; round++) run_round(k, slot, input_kinds[kind].values);
    EACH_TIER(t)
    {
        verify_row row = {
            .tier = (deberta_isa)t, .values = k->values[t], .differing = k->differing[t], .limit = k->limit};
        snprintf(row.subject, sizeof row.subject, "%s%s", slot_name(slot), input_kinds[kind].suffix);
        verify_report_add(report, &row, &k->errors[t]);
    }
}

static void check_all(verify_rounds *k, verify_report *report, uint64_t seed)
{
    for (size_t kind = 0; kind < sizeof input_kinds / sizeof *input_kinds; kind++)
        for (int slot = 0; slot < KERNEL_SLOTS; slot++) {
            k->state = seed + (uint64_t)slot + (uint64_t)kind * 100;
            check_slot(k, (kernel_slot)slot, kind, report);
        }
}

deberta_status verify_kernels(verify_report *report, const verify_options *options, deberta_error *err)
{
    verify_rounds *k = memory_take(1, sizeof *k);
    deberta_status status = DEBERTA_OK;
    for (int t = DEBERTA_ISA_SCALAR; status == DEBERTA_OK && t < TIERS; t++)
        if (t == DEBERTA_ISA_SCALAR || options->tiers[t]) {
            status = kernels_select_with_tiles(&k->tables[t], (deberta_isa)t, err);
            k->present[t] = status == DEBERTA_OK;
        }
    if (status == DEBERTA_OK) check_all(k, report, options->seed);
    for (int t = 0; t < TIERS; t++) verify_errors_free(&k->errors[t]);
    free(k->memory);
    free(k);
    return status;
}
