/* The JSON of results: one member a fact, units in the names. results_read.c reads back the same.
 *
 * SPDX-License-Identifier: MIT */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "bench/result_fields.h"
#include "output/json_text.h"

/* Members are added through these; jansson frees a value that it cannot add, and `failed` remembers that one was lost.
 */
typedef struct writer {
    json_t *object;
    bool *failed;
} writer;

static void put(writer w, const char *name, json_t *value)
{
    if (!value || json_object_set_new(w.object, name, value) != 0) *w.failed = true;
}

static void put_size(writer w, const char *name, size_t value) { put(w, name, json_integer((json_int_t)value)); }

/* Not finite means not known. */
static void put_number(writer w, const char *name, double value)
{
    put(w, name, isfinite(value) ? json_real(value) : json_null());
}

static void put_record(writer w, const record_field *fields, const void *record)
{
    if (!record_write(w.object, fields, record)) *w.failed = true;
}

static writer put_object(writer w, const char *name)
{
    writer inner = {.object = json_object(), .failed = w.failed};
    put(w, name, inner.object);
    return inner;
}

static void append(json_t *array, json_t *value, bool *failed)
{
    if (!value || json_array_append_new(array, value) != 0) *failed = true;
}

static json_t *put_array(writer w, const char *name)
{
    json_t *array = json_array();
    put(w, name, array);
    return array;
}

static void put_tiers(writer w, const char *tiers)
{
    json_t *array = put_array(w, "tiers");
    for (const char *at = tiers; *at;) {
        size_t length = strcspn(at, " ");
        append(array, json_stringn(at, length), w.failed);
        at += length + (at[length] == ' ');
    }
}

static void put_roofs(writer w, const machine_roofs *roofs)
{
    json_t *array = put_array(w, "roofs");
    for (size_t i = 0; i < roofs->count; i++) {
        const writer one = {.object = json_object(), .failed = w.failed};
        put_record(one, bench_roof_fields, &roofs->roof[i]);
        append(array, one.object, w.failed);
    }
    put_size(w, "stream_bytes", roofs->stream_bytes);
}

/* The best tier's peak with one thread and with the most; the most bandwidth of any number of threads. */
static void put_peaks(writer w, const machine_sheet *s)
{
    deberta_isa isa = DEBERTA_ISA_AUTO;
    deberta_isa_from_name(&isa, s->isa, NULL);
    double one = machine_peak_gflops(&s->roofs, isa, 1), all = 0, stream = 0;
    for (size_t i = 0; i < s->roofs.count; i++) {
        all = fmax(all, s->roofs.roof[i].gflops[isa]);
        stream = fmax(stream, s->roofs.roof[i].triad_gbs);
    }
    put_number(w, "peak_gflops_1t", one > 0 ? one : NAN);
    put_number(w, "peak_gflops", all > 0 ? all : NAN);
    put_number(w, "stream_gbs", stream > 0 ? stream : NAN);
}

static void put_environment(writer w, const bench_results *results)
{
    const machine_sheet *s = &results->sheet;
    put_record(w, bench_environment_fields, results);
    put_record(put_object(w, "caches"), bench_cache_fields, results);
    put_tiers(w, s->tiers);
    put_peaks(w, s);
    put_roofs(w, &s->roofs);
    json_t *notes = put_array(w, "notes");
    for (size_t i = 0; i < s->note_count; i++) append(notes, json_clean_text(s->notes[i]), w.failed);
}

static void put_parts(writer w, const bench_result *r)
{
    for (int p = 0; p < PROFILE_PARTS; p++) {
        put_record(put_object(w, cost_part_name((profile_part)p)), bench_part_fields, &r->parts[p]);
    }
}

static void put_breakdown(writer w, const bench_result *r)
{
    writer stages = put_object(w, "breakdown");
    for (int s = 0; s < PROFILE_STAGES; s++) {
        writer stage = put_object(stages, cost_stage_name((profile_stage)s));
        put_record(stage, bench_stage_fields, &r->breakdown[s]);
        if (s == PROFILE_ATTENTION) put_parts(put_object(stage, "parts"), r);
    }
    put_number(put_object(stages, "waiting"), "s", r->waiting_s);
    put_number(w, "breakdown_s", r->breakdown_s);
}

static json_t *result_object(const bench_result *r, bool *failed)
{
    writer w = {.object = json_object(), .failed = failed};
    put_record(w, bench_result_fields, r);
    if (r->lengths) {
        json_t *lengths = put_array(w, "lengths");
        for (size_t i = 0; i < r->batch; i++) append(lengths, json_integer((json_int_t)r->lengths[i]), failed);
    }
    json_t *samples = put_array(w, "samples_s");
    for (size_t i = 0; i < r->time.count; i++) append(samples, json_real(r->samples[i]), failed);
    if (r->has_breakdown) put_breakdown(w, r);
    return w.object;
}

static json_t *trend_object(const bench_results *results, const trend *t, bool *failed)
{
    const bench_result *r = &results->result[t->like];
    const bool layers = t->axis == TREND_LAYERS;
    json_t *object =
        json_pack("{s:s, s:o, s:s, s:I, s:I, s:s, s:b, s:I, s:I, s:I, s:I}", "over", layers ? "layers" : "n", "model",
                  json_clean_text(r->model), "isa", r->isa, "threads", (json_int_t)r->threads, "batch",
                  (json_int_t)r->batch, "attention", r->attention, "position_cache", r->position_cache,
                  layers ? "n" : "layers", (json_int_t)(layers ? r->n : r->layers), "from", (json_int_t)t->from, "to",
                  (json_int_t)t->to, "points", (json_int_t)t->points);
    const writer w = {.object = object, .failed = failed};
    if (!object) *failed = true;
    json_t *coefficients = t->time.valid ? put_array(w, "coefficients_s") : NULL;
    for (size_t i = 0; i <= t->time.degree && coefficients; i++)
        append(coefficients, json_real(t->time.coefficient[i]), failed);
    if (t->time.valid) put_number(w, "worst_relative_error", t->time.worst);
    if (!layers && t->seconds.valid) put_number(w, "time_exponent", t->seconds.exponent);
    if (!layers && t->memory.valid) put_number(w, "workspace_exponent", t->memory.exponent);
    return w.object;
}

deberta_status bench_results_add_json(result *r, const bench_results *results, const trend_list *trends,
                                      deberta_error *err)
{
    bool failed = false;
    const writer w = {.object = result_json(r), .failed = &failed};
    put_environment(put_object(w, "environment"), results);
    json_t *points = put_array(w, "results"), *curves = put_array(w, "trends");
    for (size_t i = 0; i < results->count; i++) append(points, result_object(&results->result[i], &failed), &failed);
    for (size_t i = 0; i < trends->count; i++)
        append(curves, trend_object(results, &trends->trends[i], &failed), &failed);
    result_set_indent(r, 1); /* there are thousands of samples */
    if (failed) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for the JSON of %zu results", results->count);
    return DEBERTA_OK;
}
