/* Collects results that differ in one axis, and fits least-squares curves to them.
 *
 * SPDX-License-Identifier: MIT */
#include "bench/trends.h"

#include <math.h>

bool trend_same_series(const bench_result *a, const bench_result *b, unsigned axes)
{
    return !a->lengths && !b->lengths && bench_result_alike(a, b, axes);
}

static size_t coordinate(const bench_result *result, trend_axis axis)
{
    return axis == TREND_LAYERS ? result->layers : result->n;
}

/* Points of a series, ascending along the axis. */
typedef struct series {
    const bench_result **members;
    double *x, *seconds, *bytes;
    size_t count;
} series;

static void insert(series *s, const bench_result *result, trend_axis axis)
{
    size_t place = s->count++;
    while (place > 0 && coordinate(s->members[place - 1], axis) > coordinate(result, axis)) {
        s->members[place] = s->members[place - 1];
        place--;
    }
    s->members[place] = result;
}

/* Collects the series of a result; returns false if an earlier result began the same series. */
static bool collect(series *s, const bench_results *results, size_t first, trend_axis axis)
{
    const bench_result *leader = &results->result[first];
    s->count = 0;
    for (size_t i = 0; i < results->count; i++) {
        const bench_result *result = &results->result[i];
        if (!trend_same_series(leader, result, axis)) continue;
        if (i < first) return false;
        if (result->time.median > 0) insert(s, result, axis);
    }
    return true;
}

static bool fit(trend *t, series *s, size_t like, trend_axis axis)
{
    bool has_memory = true;
    for (size_t i = 0; i < s->count; i++) {
        s->x[i] = (double)coordinate(s->members[i], axis);
        s->seconds[i] = s->members[i]->time.median;
        s->bytes[i] = (double)s->members[i]->workspace_bytes;
        has_memory = has_memory && s->members[i]->workspace_bytes > 0;
    }
    *t = (trend){.axis = axis, .like = like, .points = s->count};
    t->time = statistics_fit_polynomial(s->x, s->seconds, s->count, axis == TREND_LAYERS ? 1 : 2);
    t->from = coordinate(s->members[0], axis);
    t->to = coordinate(s->members[s->count - 1], axis);
    t->seconds = statistics_fit_growth(s->x, s->seconds, s->count);
    if (has_memory) t->memory = statistics_fit_growth(s->x, s->bytes, s->count);
    return t->time.valid || (axis == TREND_LENGTH && t->seconds.valid);
}

static void find_along(trend_list *list, const bench_results *results, series *s, trend_axis axis)
{
    for (size_t i = 0; i < results->count; i++) {
        if (collect(s, results, i, axis) && s->count > 0 && fit(&list->trends[list->count], s, i, axis)) list->count++;
    }
}

void trends_find(trend_list *list, const bench_results *results)
{
    const size_t n = results->count;
    *list = (trend_list){0};
    scope *memory = &list->memory;
    series s = {
        .members = scope_take(memory, n, sizeof *s.members),
        .x = scope_take(memory, n, sizeof *s.x),
        .seconds = scope_take(memory, n, sizeof *s.seconds),
        .bytes = scope_take(memory, n, sizeof *s.bytes),
    };
    list->trends = scope_take(memory, 2 * n, sizeof *list->trends);
    find_along(list, results, &s, TREND_LENGTH);
    find_along(list, results, &s, TREND_LAYERS);
}

static void say_growth(result *r, const char *before, const char *what, statistics_growth growth)
{
    if (growth.valid)
        result_say_more(r, "%s%s grows as n^%.2f (off by at most %.1f %%), at the end as n^%.2f", before, what,
                        growth.exponent, 100 * growth.worst, growth.last);
}

/* Adds a term of a formula with its sign. */
static void say_term(result *r, double value, const char *unit)
{
    result_say_more(r, " %c %.3f %s", value <= -0.0005 ? '-' : '+', fabs(value), unit);
}

void trend_say(result *r, const bench_results *results, const trend *t)
{
    const bench_result *of = &results->result[t->like];
    const double *c = t->time.coefficient;
    result_say(r, "%s, %zu thread%s, batch %zu, attention %s, position cache %s: ", of->isa, of->threads,
               of->threads == 1 ? "" : "s", of->batch, of->attention, of->position_cache ? "on" : "off");
    if (t->axis == TREND_LAYERS) {
        result_say_more(r, "n = %zu, %zu to %zu layers", of->n, t->from, t->to);
        result_say(r, "  time = %.3f ms", 1e3 * c[0]);
        say_term(r, 1e3 * c[1], "ms per layer");
    } else {
        result_say_more(r, "%zu layer%s, n = %zu to %zu", of->layers, of->layers == 1 ? "" : "s", t->from, t->to);
        if (t->time.valid) {
            result_say(r, "  time = %.3f ms", 1e3 * c[0]);
            say_term(r, 1e6 * c[1], "us n");
            say_term(r, 1e9 * c[2], "ns n^2");
        }
    }
    if (t->time.valid) result_say_more(r, " (off by at most %.1f %%)", 100 * t->time.worst);
    if (t->seconds.valid || t->memory.valid) result_say(r, "  ");
    say_growth(r, "", "time", t->seconds);
    say_growth(r, t->seconds.valid ? "; " : "", "workspace", t->memory);
}
