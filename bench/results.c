/* Results get the names of what they were measured with, and are compared for likeness.
 *
 * SPDX-License-Identifier: MIT */
#include "bench/results.h"

#include <string.h>

static const struct {
    term_selection terms;
    const char *name;
} selections[] = {
    {TERM_SELECTION_FULL, "full"},
    {TERM_SELECTION_C2C, "c2c"},
    {TERM_SELECTION_C2C_C2P, "c2c+c2p"},
    {TERM_SELECTION_C2C_P2C, "c2c+p2c"},
};
enum { SELECTIONS = sizeof selections / sizeof *selections };

const char *term_selection_name(term_selection terms)
{
    for (size_t i = 0; i < SELECTIONS; i++)
        if (selections[i].terms == terms) return selections[i].name;
    return "unknown";
}

deberta_status term_selection_from_name(term_selection *terms, const char *name, deberta_error *err)
{
    for (size_t i = 0; i < SELECTIONS; i++) {
        if (strcmp(name, selections[i].name) == 0) {
            *terms = selections[i].terms;
            return DEBERTA_OK;
        }
    }
    DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "unknown attention '%s'; known are full, c2c, c2c+c2p and c2c+p2c", name);
}

deberta_precision bench_precision(const bench_result *result)
{
    for (int p = 0; p < DEBERTA_PRECISION_COUNT; p++)
        if (strcmp(result->precision, deberta_precision_name((deberta_precision)p)) == 0) return (deberta_precision)p;
    return DEBERTA_PRECISION_FLOAT32;
}

static bool same_lengths(const bench_result *a, const bench_result *b)
{
    if (a->n != b->n || !a->lengths != !b->lengths) return false;
    return !a->lengths || (a->batch == b->batch && memcmp(a->lengths, b->lengths, a->batch * sizeof *a->lengths) == 0);
}

bool bench_result_alike(const bench_result *a, const bench_result *b, unsigned except)
{
    return (except & BENCH_MODEL || strcmp(a->model, b->model) == 0) &&
           (except & BENCH_ENGINE || strcmp(a->engine, b->engine) == 0) &&
           (except & BENCH_ISA || strcmp(a->isa, b->isa) == 0) &&
           (except & BENCH_THREADS || a->threads == b->threads) && (except & BENCH_LAYERS || a->layers == b->layers) &&
           (except & BENCH_LENGTH || same_lengths(a, b)) &&
           (except & BENCH_PRECISION || strcmp(a->precision, b->precision) == 0) &&
           strcmp(a->attention, b->attention) == 0 && a->position_cache == b->position_cache && a->cold == b->cold &&
           a->batch == b->batch;
}
