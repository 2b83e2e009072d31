/* Writes the JSON of results, with a member for each value and units in the names. results_read.c reads it back.
 *
 * SPDX-License-Identifier: MIT */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "bench/result_fields.h"
#include "output/json_text.h"
#include "output/scope.h"

static void put_size(json_t *object, const char *name, size_t value)
{
    json_put(object, name, json_integer((json_int_t)value));
}

/* Writes a number; one that is not finite is unknown, and null. */
static void put_number(json_t *object, const char *name, double value)
{
    json_put(object, name, isfinite(value) ? json_real(value) : json_null());
}

static json_t *put_object(json_t *object, const char *name)
{
    json_t *inner = json_object();
    json_put(object, name, inner);
    return inner;
}

static json_t *put_array(json_t *object, const char *name)
{
    json_t *array = json_array();
    json_put(object, name, array);
    return array;
}

static void put_tiers(json_t *to, const char *tiers)
{
    json_t *array = put_array(to, "tiers");
    for (const char *at = tiers; *at;) {
        size_t length = strcspn(at, " ");
        json_add(array, json_stringn(at, length));
        at += length + (at[length] == ' ');
    }
}

static void put_roofs(json_t *to, const machine_roofs *roofs)
{
    json_t *array = put_array(to, "roofs");
    for (size_t i = 0; i < roofs->count; i++) {
        json_t *one = json_object();
        record_write(one, bench_roof_fields, &roofs->roof[i]);
        json_add(array, one);
    }
    put_size(to, "stream_bytes", roofs->stream_bytes);
}

/* Writes the best tier's peak with one thread and with the most, and the highest bandwidth of any number of
 * threads. */
static void put_peaks(json_t *to, const machine_sheet *s)
{
    deberta_isa isa = DEBERTA_ISA_AUTO;
    deberta_isa_from_name(&isa, s->isa, NULL);
    double one = machine_peak_gflops(&s->roofs, isa, 1), all = 0, stream = 0;
    for (size_t i = 0; i < s->roofs.count; i++) {
        all = fmax(all, s->roofs.roof[i].gflops[isa]);
        stream = fmax(stream, s->roofs.roof[i].triad_gbs);
    }
    put_number(to, "peak_gflops_1t", one > 0 ? one : NAN);
    put_number(to, "peak_gflops", all > 0 ? all : NAN);
    put_number(to, "stream_gbs", stream > 0 ? stream : NAN);
}

static void put_environment(json_t *to, const bench_results *results)
{
    const machine_sheet *s = &results->sheet;
    record_write(to, bench_environment_fields, results);
    record_write(put_object(to, "caches"), bench_cache_fields, results);
    put_tiers(to, s->tiers);
    put_peaks(to, s);
    put_roofs(to, &s->roofs);
    json_t *notes = put_array(to, "notes");
    for (size_t i = 0; i < s->note_count; i++) json_add(notes, json_clean_text(s->notes[i]));
}

/* Writes limits between encodes, if slices were measured. */
static void put_then(json_t *to, const char *name, const bench_then *then)
{
    if (then->slices) record_write(put_object(to, name), bench_then_fields, then);
}

static void put_parts(json_t *to, const bench_result *r)
{
    for (int p = 0; p < PROFILE_PARTS; p++) {
        record_write(put_object(to, cost_part_name((profile_part)p)), bench_part_fields, &r->parts[p]);
    }
}

static void put_breakdown(json_t *to, const bench_result *r)
{
    json_t *stages = put_object(to, "breakdown");
    for (int s = 0; s < PROFILE_STAGES; s++) {
        json_t *stage = put_object(stages, cost_stage_name((profile_stage)s));
        record_write(stage, bench_stage_fields, &r->breakdown[s]);
        if (s == PROFILE_ATTENTION) put_parts(put_object(stage, "parts"), r);
    }
    put_number(put_object(stages, "waiting"), "s", r->waiting_s);
    put_number(to, "breakdown_s", r->breakdown_s);
    put_then(to, "breakdown_peak_then", &r->breakdown_peak_then);
}

/* Writes for each sample its visit and its start, and for each visit the encodes before. */
static void put_visits(json_t *to, const bench_result *r)
{
    if (!r->visit || !r->at || !r->warm) return;
    json_t *visit = put_array(to, "visit"), *at = put_array(to, "at_s"), *warm = put_array(to, "warm");
    for (size_t i = 0; i < r->time.count; i++) {
        json_add(visit, json_integer((json_int_t)r->visit[i]));
        json_add(at, json_real(r->at[i]));
    }
    for (size_t i = 0; i < r->visits; i++) json_add(warm, json_integer((json_int_t)r->warm[i]));
}

static json_t *result_object(const bench_result *r)
{
    json_t *to = json_object();
    record_write(to, bench_result_fields, r);
    if (r->lengths) {
        json_t *lengths = put_array(to, "lengths");
        for (size_t i = 0; i < r->batch; i++) json_add(lengths, json_integer((json_int_t)r->lengths[i]));
    }
    json_t *samples = put_array(to, "samples_s");
    for (size_t i = 0; i < r->time.count; i++) json_add(samples, json_real(r->samples[i]));
    put_visits(to, r);
    put_then(to, "peak_then", &r->peak_then);
    if (r->has_breakdown) put_breakdown(to, r);
    return to;
}

static json_t *trend_object(const bench_results *results, const trend *t)
{
    const bench_result *r = &results->result[t->like];
    const bool layers = t->axis == TREND_LAYERS;
    json_t *to = json_pack("{s:s, s:o, s:s, s:I, s:I, s:s, s:b, s:I, s:I, s:I, s:I}", "over", layers ? "layers" : "n",
                           "model", json_clean_text(r->model), "isa", r->isa, "threads", (json_int_t)r->threads,
                           "batch", (json_int_t)r->batch, "attention", r->attention, "position_cache",
                           r->position_cache, layers ? "n" : "layers", (json_int_t)(layers ? r->n : r->layers), "from",
                           (json_int_t)t->from, "to", (json_int_t)t->to, "points", (json_int_t)t->points);
    if (!to) memory_short();
    json_t *coefficients = t->time.valid ? put_array(to, "coefficients_s") : NULL;
    for (size_t i = 0; i <= t->time.degree && coefficients; i++)
        json_add(coefficients, json_real(t->time.coefficient[i]));
    if (t->time.valid) put_number(to, "worst_relative_error", t->time.worst);
    if (!layers && t->seconds.valid) put_number(to, "time_exponent", t->seconds.exponent);
    if (!layers && t->memory.valid) put_number(to, "workspace_exponent", t->memory.exponent);
    return to;
}

void bench_results_add_json(result *r, const bench_results *results, const trend_list *trends)
{
    json_t *to = result_json(r);
    put_environment(put_object(to, "environment"), results);
    json_t *points = put_array(to, "results"), *curves = put_array(to, "trends");
    for (size_t i = 0; i < results->count; i++) json_add(points, result_object(&results->result[i]));
    for (size_t i = 0; i < trends->count; i++) json_add(curves, trend_object(results, &trends->trends[i]));
    result_set_indent(r, 1); /* one blank, since there are thousands of samples */
}
