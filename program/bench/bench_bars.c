/* Draws the time of each engine as bars, a panel for each length. SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "program/bench/bench_drawing.h"

/* Facets that differ within a panel; everything else is the same work. */
enum { WHO = BENCH_ENGINE | BENCH_ISA | BENCH_PRECISION };
/* Greys of the same ink; the bars of this project are dark. */
#define OWN_SHADE   0.35
#define OTHER_SHADE 0.75

/* Returns true for an engine of this project; "accelerate" is its package inside transformers. */
static bool is_own(const bench_result *r)
{
    return strncmp(r->engine, "deberta", strlen("deberta")) == 0 || strcmp(r->engine, "accelerate") == 0;
}

static int by_time(const void *left, const void *right)
{
    const bench_result *const *a = left, *const *b = right;
    return ((*a)->time.median > (*b)->time.median) - ((*a)->time.median < (*b)->time.median);
}

/* Collects the results of a row, the fastest first. */
static size_t row_of(const bench_results *all, const bench_result *first, const bench_result **members)
{
    size_t count = 0;
    for (size_t k = 0; k < all->count; k++)
        if (bench_result_alike(first, &all->result[k], WHO)) members[count++] = &all->result[k];
    qsort(members, count, sizeof(const bench_result *), by_time);
    return count;
}

static bool engines_vary(const bench_result *const *members, size_t count)
{
    for (size_t k = 1; k < count; k++)
        if (strcmp(members[k]->engine, members[0]->engine) != 0) return true;
    return false;
}

/* Returns "40 tokens", and further facets that distinguish the row from others. */
static const char *row_title(bench_drawing *drawing, const bench_result *first)
{
    const bench_results *all = drawing->results;
    bool threads = false, models = false, batches = false, layers = false;
    for (size_t k = 0; k < all->count; k++) {
        threads = threads || all->result[k].threads != first->threads;
        models = models || !bench_same_model(&all->result[k], first);
        layers = layers || all->result[k].layers != first->layers;
        batches = batches || all->result[k].batch != first->batch;
    }
    const char *title = bench_count_text(drawing, first->n, "token");
    if (models) title = options_text(drawing->options, "%s, %s", first->model, title);
    if (batches)
        title = options_text(drawing->options, "%s × %s", bench_count_text(drawing, first->batch, "text"), title);
    if (layers)
        title = options_text(drawing->options, "%s, %s", title, bench_count_text(drawing, first->layers, "layer"));
    if (threads)
        title = options_text(drawing->options, "%s, %s", title, bench_count_text(drawing, first->threads, "thread"));
    return title;
}

/* The precisions of all results, float32 first, with a colour each, and whether an earlier panel's legend lists
 * them. */
typedef struct precision_list {
    const char **names;
    bool (*listed)[2]; /* [0]: other engines, [1]: this project */
    size_t count;
} precision_list;

static bool knows(const precision_list *list, const char *name)
{
    for (size_t k = 0; k < list->count; k++)
        if (strcmp(list->names[k], name) == 0) return true;
    return false;
}

static precision_list find_precisions(const bench_drawing *drawing)
{
    const bench_results *all = drawing->results;
    precision_list list = {.names = options_take(drawing->options, all->count, sizeof *list.names),
                           .listed = options_take(drawing->options, all->count, sizeof *list.listed)};
    for (int floats = 1; floats >= 0; floats--)
        for (size_t k = 0; k < all->count; k++) {
            const char *name = all->result[k].precision;
            if ((strcmp(name, "float32") == 0) == floats && !knows(&list, name)) list.names[list.count++] = name;
        }
    return list;
}

/* Adds the bars of one precision, of this project or of others, at their places among all bars. */
static void add_bars(bench_drawing *drawing, const bench_result *const *members, size_t count,
                     const precision_list *precisions, size_t which, bool own)
{
    chart_columns *c = &drawing->chart;
    const char *precision = precisions->names[which];
    chart_add_series(c, (chart_series){.kind = CHART_BARS, .look = which + 1, .shade = own ? OWN_SHADE : OTHER_SHADE});
    for (size_t k = 0; k < count; k++)
        if (is_own(members[k]) == own && strcmp(members[k]->precision, precision) == 0)
            chart_add_point(c, (double)k, 1e3 * members[k]->time.median);
    chart_series *added = chart_last_series(c);
    if (!added || !added->count) {
        chart_drop_series(c);
        return;
    }
    if (!precisions->listed[which][own])
        added->name = options_text(drawing->options, "%s%s", precision, own ? ", this project" : "");
    precisions->listed[which][own] = true;
}

static void add_row(bench_drawing *drawing, const bench_result *const *members, size_t count,
                    const precision_list *precisions)
{
    chart_columns *c = &drawing->chart;
    chart_add_panel(c, (chart_panel){.title = row_title(drawing, members[0]),
                                     .x = {.scale = CHART_CATEGORIES},
                                     .y = {.label = "median (ms)", .from_zero = true},
                                     .stacked = true}); /* one at each place, so a bar takes the full width */
    for (size_t k = 0; k < count; k++) chart_add_category(c, members[k]->engine);
    for (size_t which = 0; which < precisions->count; which++)
        for (int own = 1; own >= 0; own--) add_bars(drawing, members, count, precisions, which, own);
    drawing->panel_count++;
}

static int by_length(const void *left, const void *right)
{
    const bench_result *a = *(const bench_result *const *)left, *b = *(const bench_result *const *)right;
    return a->n != b->n ? (a->n > b->n) - (a->n < b->n) : (a > b) - (a < b);
}

/* Finds the first result of each row, the shortest row first; returns the number of rows. */
static size_t find_rows(const bench_results *all, const bench_result **firsts)
{
    size_t count = 0;
    for (size_t k = 0; k < all->count; k++) {
        bool known = false;
        for (size_t j = 0; j < count && !known; j++) known = bench_result_alike(firsts[j], &all->result[k], WHO);
        if (!known) firsts[count++] = &all->result[k];
    }
    qsort(firsts, count, sizeof(const bench_result *), by_length);
    return count;
}

static double most_of_others(const bench_results *all)
{
    double most = 0;
    for (size_t k = 0; k < all->count; k++) most = fmax(most, all->result[k].other_cores);
    return most;
}

void bench_fill_bars(bench_drawing *drawing)
{
    const bench_results *all = drawing->results;
    const bench_result **members = options_take(drawing->options, all->count, sizeof *members),
                       **firsts = options_take(drawing->options, all->count, sizeof *firsts);
    const precision_list precisions = find_precisions(drawing);
    const size_t rows = find_rows(all, firsts);
    for (size_t k = 0; k < rows; k++) {
        const size_t count = row_of(all, firsts[k], members);
        if (engines_vary(members, count)) add_row(drawing, members, count, &precisions);
    }
    if (!drawing->panel_count) return;
    bench_add_note(drawing, "Bars are medians of one encode.");
    const double others = most_of_others(all);
    if (others > NOISY_CORES)
        bench_add_note(drawing,
                       options_text(drawing->options, "Other processes used up to %.1f cores meanwhile.", others));
}
