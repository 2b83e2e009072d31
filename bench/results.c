/* Names the settings of results, and tests whether results are comparable. SPDX-License-Identifier: MIT */
#include "bench/results.h"

#include <stdarg.h>
#include <string.h>

#include "core/load/synthetic.h"

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

/* Normalizes a folder's path: removes "./" in front, repeated "/" and a last "/". */
static void tidy_path(char *path)
{
    char *to = path;
    const char *from = path;
    while (from[0] == '.' && from[1] == '/') from += 1 + strspn(from + 1, "/");
    for (; *from; from++)
        if (*from != '/' || from[1] != '/') *to++ = *from;
    if (to > path + 1 && to[-1] == '/') to--;
    *to = '\0';
}

static void tidy_name(char name[sizeof((bench_result *)0)->model], const bench_result *r)
{
    const size_t bytes = sizeof r->model;
    if (synthetic_names(r->model) && synthetic_canonical(name, bytes, r->model)) return;
    memcpy(name, r->model, bytes);
    tidy_path(name);
}

bool bench_same_model(const bench_result *a, const bench_result *b)
{
    if (*a->model_sha256 && *b->model_sha256) return strcmp(a->model_sha256, b->model_sha256) == 0;
    if (strcmp(a->model, b->model) == 0) return true;
    char ours[sizeof a->model], theirs[sizeof b->model];
    tidy_name(ours, a);
    tidy_name(theirs, b);
    return strcmp(ours, theirs) == 0;
}

/* A sentence that collects facets. */
typedef struct difference_text {
    char *text;
    size_t used, count;
} difference_text;

__attribute__((format(printf, 2, 3))) static void add_difference(difference_text *d, const char *format, ...)
{
    va_list arguments;
    const char *separator = d->count++ ? "; " : "";
    if (d->used < BENCH_DIFFERENCE_BYTES)
        d->used += (size_t)snprintf(d->text + d->used, BENCH_DIFFERENCE_BYTES - d->used, "%s", separator);
    if (d->used >= BENCH_DIFFERENCE_BYTES) return;
    va_start(arguments, format);
    d->used += (size_t)vsnprintf(d->text + d->used, BENCH_DIFFERENCE_BYTES - d->used, format, arguments);
    va_end(arguments);
}

size_t bench_result_difference(char text[BENCH_DIFFERENCE_BYTES], const bench_result *a, const bench_result *b)
{
    difference_text d = {.text = text};
    *text = '\0';
    if (!bench_same_model(a, b) && strcmp(a->model, b->model) == 0)
        add_difference(&d, "model '%.100s' of other weights or settings, SHA-256 %.8s and %.8s", a->model,
                       a->model_sha256, b->model_sha256);
    else if (!bench_same_model(a, b))
        add_difference(&d, "model '%.100s' and '%.100s'", a->model, b->model);
    if (a->batch != b->batch) add_difference(&d, "batch %zu and %zu", a->batch, b->batch);
    if (a->n != b->n)
        add_difference(&d, "n %zu and %zu", a->n, b->n);
    else if (!same_lengths(a, b))
        add_difference(&d, "other lengths of the sequences");
    if (a->layers != b->layers) add_difference(&d, "layers %zu and %zu", a->layers, b->layers);
    if (a->threads != b->threads) add_difference(&d, "threads %zu and %zu", a->threads, b->threads);
    if (strcmp(a->engine, b->engine) != 0) add_difference(&d, "engine %s and %s", a->engine, b->engine);
    if (strcmp(a->precision, b->precision) != 0) add_difference(&d, "precision %s and %s", a->precision, b->precision);
    if (strcmp(a->isa, b->isa) != 0) add_difference(&d, "isa %s and %s", a->isa, b->isa);
    if (strcmp(a->attention, b->attention) != 0) add_difference(&d, "attention %s and %s", a->attention, b->attention);
    if (a->position_cache != b->position_cache) add_difference(&d, "one without the position cache");
    if (a->cold != b->cold) add_difference(&d, "one with cold caches");
    return d.count;
}

bool bench_result_alike(const bench_result *a, const bench_result *b, unsigned except)
{
    return (except & BENCH_MODEL || bench_same_model(a, b)) &&
           (except & BENCH_ENGINE || strcmp(a->engine, b->engine) == 0) &&
           (except & BENCH_ISA || strcmp(a->isa, b->isa) == 0) &&
           (except & BENCH_THREADS || a->threads == b->threads) && (except & BENCH_LAYERS || a->layers == b->layers) &&
           (except & BENCH_LENGTH || same_lengths(a, b)) &&
           (except & BENCH_PRECISION || strcmp(a->precision, b->precision) == 0) &&
           strcmp(a->attention, b->attention) == 0 && a->position_cache == b->position_cache && a->cold == b->cold &&
           a->batch == b->batch;
}
