/* SPDX-License-Identifier: MIT */
#include "bench/compare.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define SIGNIFICANCE 0.05

/* ----------------------------------------------------------------------------------------------------- environments */

/* Collects "cpu: 'x' and 'y'" in one sentence. */
typedef struct differences {
    char text[400];
    size_t used;
} differences;

__attribute__((format(printf, 2, 3))) static void add_difference(differences *d, const char *format, ...)
{
    va_list arguments;
    if (d->used >= sizeof d->text) return;
    if (d->used > 0) d->used += (size_t)snprintf(d->text + d->used, sizeof d->text - d->used, "; ");
    if (d->used >= sizeof d->text) return;
    va_start(arguments, format);
    d->used += (size_t)vsnprintf(d->text + d->used, sizeof d->text - d->used, format, arguments);
    va_end(arguments);
}

static void differ_text(differences *d, const char *name, const char *a, const char *b)
{
    if (*a && *b && strcmp(a, b) != 0) add_difference(d, "%s '%.60s' and '%.60s'", name, a, b);
}

static void differ_size(differences *d, const char *name, size_t a, size_t b)
{
    if (a && b && a != b) add_difference(d, "%s %zu and %zu", name, a, b);
}

/* What is absent from a file of another program is not held against it. */
deberta_status compare_environments(const bench_results *a, const bench_results *b, deberta_error *err)
{
    const machine_sheet *left = &a->sheet, *right = &b->sheet;
    const topology_info *machine = &left->topology, *other = &right->topology;
    differences d = {0};
    differ_text(&d, "cpu", left->cpu, right->cpu);
    differ_text(&d, "architecture", left->architecture, right->architecture);
    differ_size(&d, "cores", machine->cores, other->cores);
    differ_size(&d, "usable cores", machine->usable_cores, other->usable_cores);
    differ_size(&d, "L2 bytes", machine->l2_bytes, other->l2_bytes);
    differ_size(&d, "L3 bytes", machine->l3_bytes, other->l3_bytes);
    differ_text(&d, "system", left->system, right->system);
    differ_text(&d, "governor", left->governor, right->governor);
    differ_text(&d, "compiler", left->compiler, right->compiler);
    differ_text(&d, "flags", left->flags, right->flags);
    if (d.used > 0) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "the two were not measured alike: %s", d.text);
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------------- pairing */

static bool same_lengths(const bench_result *a, const bench_result *b)
{
    if (!a->lengths || !b->lengths) return !a->lengths && !b->lengths;
    return memcmp(a->lengths, b->lengths, a->batch * sizeof *a->lengths) == 0;
}

static bool same_work(const bench_result *a, const bench_result *b)
{
    return strcmp(a->model, b->model) == 0 && strcmp(a->precision, b->precision) == 0 &&
           strcmp(a->attention, b->attention) == 0 && a->position_cache == b->position_cache && a->cold == b->cold &&
           a->threads == b->threads && a->layers == b->layers && a->n == b->n && a->batch == b->batch &&
           same_lengths(a, b);
}

static bool same_engine(const bench_result *a, const bench_result *b)
{
    return strcmp(a->engine, b->engine) == 0 && strcmp(a->isa, b->isa) == 0;
}

static compare_verdict judge(const statistics_comparison *c)
{
    if (!(c->p < SIGNIFICANCE)) return COMPARE_SAME;
    if (c->high < 1) return COMPARE_FASTER;
    return c->low > 1 ? COMPARE_SLOWER : COMPARE_SAME;
}

static deberta_status pair_up(compare_list *list, const bench_results *a, const bench_results *b, bool *used_a,
                              bool *used_b, bool strict, deberta_error *err)
{
    for (size_t i = 0; i < a->count; i++) {
        for (size_t j = 0; j < b->count && !used_a[i]; j++) {
            const bench_result *left = &a->result[i], *right = &b->result[j];
            if (used_b[j] || !same_work(left, right) || (strict && !same_engine(left, right))) continue;
            compare_pair *pair = &list->pairs[list->count];
            *pair = (compare_pair){.a = i, .b = j};
            DEBERTA_TRY(statistics_compare(&pair->time, left->samples, left->time.count, right->samples,
                                           right->time.count, err));
            pair->verdict = judge(&pair->time);
            pair->checksums_differ = left->checksum && right->checksum && left->checksum != right->checksum;
            used_a[i] = used_b[j] = true;
            list->count++;
        }
    }
    return DEBERTA_OK;
}

static int by_first(const void *left, const void *right)
{
    const compare_pair *a = left, *b = right;
    return (a->a > b->a) - (a->a < b->a);
}

deberta_status compare_results(compare_list *list, const bench_results *a, const bench_results *b, deberta_error *err)
{
    deberta_status status = DEBERTA_OK;
    bool *used_a = calloc(a->count + 1, sizeof *used_a), *used_b = calloc(b->count + 1, sizeof *used_b);
    *list = (compare_list){.pairs = calloc(a->count + 1, sizeof *list->pairs)};
    if (!used_a || !used_b || !list->pairs) {
        status =
            status_fail(err, DEBERTA_E_MEMORY, "out of memory to compare %zu with %zu results", a->count, b->count);
        goto fail;
    }
    DEBERTA_TRY_OR_FAIL(status, pair_up(list, a, b, used_a, used_b, true, err));
    DEBERTA_TRY_OR_FAIL(status, pair_up(list, a, b, used_a, used_b, false, err));
    list->only_a = a->count - list->count;
    list->only_b = b->count - list->count;
    qsort(list->pairs, list->count, sizeof *list->pairs, by_first);
    double sum = 0;
    for (size_t i = 0; i < list->count; i++) sum += log(list->pairs[i].time.ratio);
    list->mean_ratio = list->count ? exp(sum / (double)list->count) : 0;
fail:
    free(used_a);
    free(used_b);
    if (status != DEBERTA_OK) compare_free(list);
    return status;
}

void compare_free(compare_list *list)
{
    free(list->pairs);
    *list = (compare_list){0};
}

/* --------------------------------------------------------------------------------------------------------- printing */

static const char *verdict_text(const compare_pair *pair)
{
    if (pair->verdict == COMPARE_FASTER) return "faster";
    return pair->verdict == COMPARE_SLOWER ? "slower" : "no difference shown";
}

static void add_tier(text_table *table, const bench_result *a, const bench_result *b)
{
    if (same_engine(a, b)) {
        text_table_add(table, "%s", a->isa);
    } else if (strcmp(a->engine, b->engine) == 0) {
        text_table_add(table, "%s / %s", a->isa, b->isa);
    } else {
        text_table_add(table, "%s %s / %s %s", a->engine, a->isa, b->engine, b->isa);
    }
}

static void add_pair(text_table *table, const compare_pair *pair, const bench_result *a, const bench_result *b)
{
    const statistics_comparison *c = &pair->time;
    text_table_add(table, "%s", a->model);
    text_table_add(table, "%zu%s", a->n, a->lengths ? " (ragged)" : "");
    text_table_add(table, "%zu", a->batch);
    text_table_add(table, "%zu", a->layers);
    text_table_add(table, "%zu", a->threads);
    add_tier(table, a, b);
    text_table_add(table, "%s%s%s", a->attention, a->position_cache ? "" : ", no position cache",
                   a->cold ? ", cold" : "");
    text_table_add(table, "%.3f", 1e3 * a->time.median);
    text_table_add(table, "%.3f", 1e3 * b->time.median);
    text_table_add(table, "%.4f", c->ratio);
    text_table_add(table, "%.4f", c->low);
    text_table_add(table, "%.4f", c->high);
    text_table_add(table, "%.0f", 100 * c->coverage);
    text_table_add(table, "%.2g", c->p);
    text_table_add(table, "%+.2f", c->effect);
    text_table_add(table, "%s%s", verdict_text(pair), pair->checksums_differ ? "; other results" : "");
}

static void print_summary(const compare_list *list, FILE *out)
{
    size_t faster = 0, slower = 0;
    for (size_t i = 0; i < list->count; i++) {
        faster += list->pairs[i].verdict == COMPARE_FASTER;
        slower += list->pairs[i].verdict == COMPARE_SLOWER;
    }
    fprintf(out, "\n%zu compared: %zu faster, %zu slower; geometric mean of time B / time A %.4f\n", list->count,
            faster, slower, list->mean_ratio);
    fprintf(out, "by chance alone about %.1f of them would seem to differ (Mann-Whitney, p < %.2f)\n",
            SIGNIFICANCE * (double)list->count, SIGNIFICANCE);
    if (list->only_a || list->only_b)
        fprintf(out, "without a partner: %zu of A, %zu of B\n", list->only_a, list->only_b);
}

deberta_status compare_print(const compare_list *list, const bench_results *a, const bench_results *b, FILE *out,
                             text_table_style style, deberta_error *err)
{
    static const char *const titles[] = {"model", "n",     "batch", "layers", "threads", "isa", "attention", "A ms",
                                         "B ms",  "B / A", "low",   "high",   "conf. %", "p",   "effect",    "B is"};
    text_table table = text_table_make(sizeof titles / sizeof *titles);
    text_table_add_titles(&table, titles);
    for (size_t i = 0; i < list->count; i++)
        add_pair(&table, &list->pairs[i], &a->result[list->pairs[i].a], &b->result[list->pairs[i].b]);
    DEBERTA_TRY(text_table_finish(&table, out, style, err));
    if (style != TEXT_TABLE_CSV) print_summary(list, out);
    return DEBERTA_OK;
}
