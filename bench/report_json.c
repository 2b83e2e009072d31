/* The JSON of a report: one member a fact, units in the names. What is written is read back the same.
 *
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/report.h"
#include "bench/trends.h"

#define SCHEMA "deberta-bench/1"
enum { SIGNIFICANT_DIGITS = 9 }; /* nanoseconds of a second */

/* ---------------------------------------------------------------------------------------------------------- writing */

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

static void put_text(writer w, const char *name, const char *text) { put(w, name, json_string(text)); }
static void put_size(writer w, const char *name, size_t value) { put(w, name, json_integer((json_int_t)value)); }
static void put_flag(writer w, const char *name, bool value) { put(w, name, json_boolean(value)); }

/* Not finite means not known. */
static void put_number(writer w, const char *name, double value)
{
    put(w, name, isfinite(value) ? json_real(value) : json_null());
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
        const machine_roof *roof = &roofs->roof[i];
        writer one = {.object = json_object(), .failed = w.failed};
        put_size(one, "threads", roof->threads);
        for (int isa = DEBERTA_ISA_SCALAR; isa < DEBERTA_ISA_COUNT; isa++) {
            char name[32];
            snprintf(name, sizeof name, "%s_gflops", deberta_isa_name((deberta_isa)isa));
            if (roof->gflops[isa] > 0) put_number(one, name, roof->gflops[isa]);
        }
        if (roof->read_gbs > 0) put_number(one, "read_gbs", roof->read_gbs);
        if (roof->triad_gbs > 0) put_number(one, "triad_gbs", roof->triad_gbs);
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

static void put_environment(writer w, const bench_report *report)
{
    const machine_sheet *s = &report->sheet;
    const topology_info *t = &s->topology;
    put_text(w, "version", s->version);
    put_text(w, "commit", s->commit);
    put_flag(w, "dirty", s->dirty);
    put_text(w, "date", s->date);
    put_text(w, "command", report->command);
    put_text(w, "compiler", s->compiler);
    put_text(w, "flags", s->flags);
    put_text(w, "cpu", s->cpu);
    put_text(w, "architecture", s->architecture);
    put_text(w, "system", s->system);
    put_flag(w, "virtual_machine", s->virtual_machine);
    put_tiers(w, s->tiers);
    put_text(w, "isa", s->isa);
    put_size(w, "cores", t->cores);
    put_size(w, "logical", t->logical);
    put_size(w, "packages", t->packages);
    put_size(w, "numa_nodes", t->numa_nodes);
    put_size(w, "usable_cores", t->usable_cores);
    put_number(w, "cpu_quota", t->cpu_quota);
    writer caches = put_object(w, "caches");
    put_size(caches, "l1d_bytes", t->l1d_bytes);
    put_size(caches, "l2_bytes", t->l2_bytes);
    put_size(caches, "l3_bytes", t->l3_bytes);
    put_size(w, "memory_bytes", s->memory_bytes);
    put_text(w, "governor", s->governor);
    put_number(w, "load", s->load);
    put_number(w, "clock_ghz", s->clock_ghz);
    put_number(w, "clock_ghz_after", s->clock_ghz_after);
    put_number(w, "other_cores", s->activity.others);
    put_number(w, "stolen_cores", s->activity.stolen);
    put_peaks(w, s);
    put_roofs(w, &s->roofs);
    put_size(w, "load_peak_rss_bytes", report->load_peak_rss_bytes);
    json_t *notes = put_array(w, "notes");
    for (size_t i = 0; i < s->note_count; i++) append(notes, json_string(s->notes[i]), w.failed);
}

static void put_breakdown(writer w, const bench_result *r)
{
    writer stages = put_object(w, "breakdown");
    for (int s = 0; s < PROFILE_STAGES; s++) {
        writer stage = put_object(stages, cost_stage_name((profile_stage)s));
        put_number(stage, "s", r->breakdown[s].seconds);
        put_number(stage, "gflop", r->breakdown[s].gflop);
        put_number(stage, "bytes", r->breakdown[s].bytes);
    }
    put_number(put_object(stages, "waiting"), "s", r->waiting_s);
    put_number(w, "breakdown_s", r->breakdown_s);
}

static json_t *result_object(const bench_result *r, bool *failed)
{
    writer w = {.object = json_object(), .failed = failed};
    char checksum[17];
    snprintf(checksum, sizeof checksum, "%016" PRIx64, r->checksum);
    put_text(w, "model", r->model);
    put_text(w, "engine", r->engine);
    put_text(w, "isa", r->isa);
    put_text(w, "precision", r->precision);
    put_size(w, "threads", r->threads);
    put_size(w, "batch", r->batch);
    put_size(w, "n", r->n);
    put_size(w, "tokens", r->tokens);
    if (r->lengths) {
        json_t *lengths = put_array(w, "lengths");
        for (size_t i = 0; i < r->batch; i++) append(lengths, json_integer((json_int_t)r->lengths[i]), failed);
    }
    put_size(w, "layers", r->layers);
    put_text(w, "attention", r->attention);
    put_flag(w, "position_cache", r->position_cache);
    put_flag(w, "cold", r->cold);
    put_size(w, "repetitions", r->time.count);
    json_t *samples = put_array(w, "samples_s");
    for (size_t i = 0; i < r->time.count; i++) append(samples, json_real(r->samples[i]), failed);
    put_number(w, "min_s", r->time.minimum);
    put_number(w, "median_s", r->time.median);
    put_number(w, "median_low_s", r->time.low);
    put_number(w, "median_high_s", r->time.high);
    put_number(w, "mad_s", r->time.mad);
    put_number(w, "p95_s", r->time.p95);
    put_number(w, "other_cores", r->other_cores);
    put_number(w, "gflop", r->gflop);
    put_number(w, "gflop_reachable", r->gflop_reachable);
    put_number(w, "table_rows", r->table_rows);
    put_number(w, "reachable_rows", r->reachable_rows);
    put_number(w, "gflops", r->gflops);
    put_number(w, "peak_fraction", r->peak_fraction > 0 ? r->peak_fraction : NAN);
    put_number(w, "tokens_per_s", r->tokens_per_s);
    put_size(w, "peak_rss_bytes", r->peak_rss_bytes);
    put_size(w, "workspace_bytes", r->workspace_bytes);
    put_text(w, "checksum", checksum);
    if (r->has_breakdown) put_breakdown(w, r);
    return w.object;
}

static json_t *trend_object(const bench_report *report, const trend *t, bool *failed)
{
    const bench_result *r = &report->results[t->like];
    writer w = {.object = json_object(), .failed = failed};
    put_text(w, "over", t->axis == TREND_LAYERS ? "layers" : "n");
    put_text(w, "model", r->model);
    put_text(w, "isa", r->isa);
    put_size(w, "threads", r->threads);
    put_size(w, "batch", r->batch);
    put_text(w, "attention", r->attention);
    put_flag(w, "position_cache", r->position_cache);
    if (t->axis == TREND_LAYERS) {
        put_size(w, "n", r->n);
    } else {
        put_size(w, "layers", r->layers);
    }
    put_size(w, "from", t->from);
    put_size(w, "to", t->to);
    put_size(w, "points", t->points);
    json_t *coefficients = put_array(w, "coefficients_s");
    for (size_t i = 0; i <= t->time.degree; i++) append(coefficients, json_real(t->time.coefficient[i]), failed);
    put_number(w, "worst_relative_error", t->time.worst);
    if (t->axis == TREND_LENGTH && t->seconds.valid) put_number(w, "time_exponent", t->seconds.exponent);
    if (t->axis == TREND_LENGTH && t->memory.valid) put_number(w, "workspace_exponent", t->memory.exponent);
    return w.object;
}

static json_t *report_object(const bench_report *report, const trend_list *trends, bool *failed)
{
    writer w = {.object = json_object(), .failed = failed};
    put_text(w, "schema", SCHEMA);
    put_environment(put_object(w, "environment"), report);
    json_t *results = put_array(w, "results");
    for (size_t i = 0; i < report->count; i++) append(results, result_object(&report->results[i], failed), failed);
    json_t *curves = put_array(w, "trends");
    for (size_t i = 0; i < trends->count; i++) append(curves, trend_object(report, &trends->trends[i], failed), failed);
    return w.object;
}

deberta_status report_write_json(const bench_report *report, FILE *out, deberta_error *err)
{
    bool failed = false;
    trend_list trends;
    DEBERTA_TRY(trends_find(&trends, report, err));
    json_t *root = report_object(report, &trends, &failed);
    trends_free(&trends);
    if (failed || !root) {
        json_decref(root);
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for the JSON of %zu results", report->count);
    }
    int code = json_dumpf(root, out, JSON_INDENT(1) | JSON_REAL_PRECISION(SIGNIFICANT_DIGITS));
    json_decref(root);
    if (code != 0 || fputc('\n', out) == EOF || fflush(out) != 0)
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "the results could not be written");
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------------- reading */

static void get_text(const json_t *object, const char *name, char *text, size_t capacity_bytes)
{
    const char *found = json_string_value(json_object_get(object, name));
    if (found) snprintf(text, capacity_bytes, "%s", found);
}

static double get_number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name)); /* 0 for what is no number */
}

static size_t get_size(const json_t *object, const char *name)
{
    double value = get_number(object, name);
    return value > 0 && value < 1e18 ? (size_t)value : 0;
}

static bool get_flag(const json_t *object, const char *name, bool fallback)
{
    const json_t *found = json_object_get(object, name);
    return json_is_boolean(found) ? json_is_true(found) : fallback;
}

static void get_tiers(const json_t *environment, char *text, size_t capacity_bytes)
{
    size_t index, used = 0;
    json_t *name;
    json_array_foreach(json_object_get(environment, "tiers"), index, name)
    {
        if (!json_is_string(name) || used >= capacity_bytes) continue;
        used += (size_t)snprintf(text + used, capacity_bytes - used, "%s%s", used ? " " : "", json_string_value(name));
    }
}

static void get_roofs(const json_t *environment, machine_roofs *roofs)
{
    size_t index;
    json_t *object;
    json_array_foreach(json_object_get(environment, "roofs"), index, object)
    {
        if (roofs->count == MACHINE_MAX_ROOFS) break;
        machine_roof *roof = &roofs->roof[roofs->count++];
        roof->threads = get_size(object, "threads");
        for (int isa = DEBERTA_ISA_SCALAR; isa < DEBERTA_ISA_COUNT; isa++) {
            char name[32];
            snprintf(name, sizeof name, "%s_gflops", deberta_isa_name((deberta_isa)isa));
            roof->gflops[isa] = get_number(object, name);
        }
        roof->read_gbs = get_number(object, "read_gbs");
        roof->triad_gbs = get_number(object, "triad_gbs");
    }
    roofs->stream_bytes = get_size(environment, "stream_bytes");
}

static void get_environment(const json_t *e, bench_report *report)
{
    machine_sheet *s = &report->sheet;
    topology_info *t = &s->topology;
#define TEXT(name, member) get_text(e, name, member, sizeof member)
    TEXT("version", s->version);
    TEXT("commit", s->commit);
    TEXT("date", s->date);
    TEXT("command", report->command);
    TEXT("compiler", s->compiler);
    TEXT("flags", s->flags);
    TEXT("cpu", s->cpu);
    TEXT("architecture", s->architecture);
    TEXT("system", s->system);
    TEXT("isa", s->isa);
    TEXT("governor", s->governor);
#undef TEXT
    get_tiers(e, s->tiers, sizeof s->tiers);
    s->dirty = get_flag(e, "dirty", false);
    s->virtual_machine = get_flag(e, "virtual_machine", false);
    t->cores = get_size(e, "cores");
    t->logical = get_size(e, "logical");
    t->packages = get_size(e, "packages");
    t->numa_nodes = get_size(e, "numa_nodes");
    t->usable_cores = get_size(e, "usable_cores");
    t->cpu_quota = get_number(e, "cpu_quota");
    const json_t *caches = json_object_get(e, "caches");
    t->l1d_bytes = get_size(caches, "l1d_bytes");
    t->l2_bytes = get_size(caches, "l2_bytes");
    t->l3_bytes = get_size(caches, "l3_bytes");
    s->memory_bytes = get_size(e, "memory_bytes");
    s->load = get_number(e, "load");
    s->clock_ghz = get_number(e, "clock_ghz");
    s->clock_ghz_after = get_number(e, "clock_ghz_after");
    s->activity.others = get_number(e, "other_cores");
    s->activity.stolen = get_number(e, "stolen_cores");
    report->load_peak_rss_bytes = get_size(e, "load_peak_rss_bytes");
    get_roofs(e, &s->roofs);
    size_t index;
    json_t *note;
    json_array_foreach(json_object_get(e, "notes"), index, note)
    {
        if (json_is_string(note)) machine_note(s, "%s", json_string_value(note));
    }
}

static void get_breakdown(const json_t *object, bench_result *r)
{
    const json_t *stages = json_object_get(object, "breakdown");
    r->has_breakdown = json_is_object(stages);
    for (int s = 0; s < PROFILE_STAGES; s++) {
        const json_t *stage = json_object_get(stages, cost_stage_name((profile_stage)s));
        r->breakdown[s].seconds = get_number(stage, "s");
        r->breakdown[s].gflop = get_number(stage, "gflop");
        r->breakdown[s].bytes = get_number(stage, "bytes");
    }
    r->waiting_s = get_number(json_object_get(stages, "waiting"), "s");
    r->breakdown_s = get_number(object, "breakdown_s");
}

static deberta_status get_lengths(const json_t *array, bench_result *r, const char *where, size_t index,
                                  deberta_error *err)
{
    if (!json_is_array(array)) return DEBERTA_OK;
    if (json_array_size(array) != r->batch)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: results[%zu] has %zu lengths for a batch of %zu", where, index,
                     json_array_size(array), r->batch);
    r->lengths = calloc(r->batch ? r->batch : 1, sizeof *r->lengths);
    if (!r->lengths) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: out of memory", where);
    for (size_t i = 0; i < r->batch; i++) r->lengths[i] = (size_t)json_integer_value(json_array_get(array, i));
    return DEBERTA_OK;
}

static deberta_status get_samples(const json_t *object, bench_result *r, const char *where, size_t index,
                                  deberta_error *err)
{
    const json_t *array = json_object_get(object, "samples_s");
    size_t count = json_array_size(array);
    if (count == 0) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: results[%zu] has no samples_s", where, index);
    r->samples = calloc(count, sizeof *r->samples);
    if (!r->samples) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: out of memory for %zu samples", where, count);
    for (size_t i = 0; i < count; i++) {
        r->samples[i] = json_number_value(json_array_get(array, i));
        if (!(r->samples[i] > 0) || !isfinite(r->samples[i])) {
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: results[%zu].samples_s[%zu] is not a positive number", where,
                         index, i);
        }
    }
    return statistics_summarize(&r->time, r->samples, count, err);
}

static deberta_status get_result(const json_t *object, bench_result *r, const char *where, size_t index,
                                 deberta_error *err)
{
    if (!json_is_object(object)) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: results[%zu] is not an object", where, index);
    snprintf(r->engine, sizeof r->engine, "deberta");
    snprintf(r->precision, sizeof r->precision, "float32");
    snprintf(r->attention, sizeof r->attention, "full");
#define TEXT(name, member) get_text(object, name, member, sizeof member)
    TEXT("model", r->model);
    TEXT("engine", r->engine);
    TEXT("isa", r->isa);
    TEXT("precision", r->precision);
    TEXT("attention", r->attention);
#undef TEXT
    r->position_cache = get_flag(object, "position_cache", true);
    r->cold = get_flag(object, "cold", false);
    r->threads = get_size(object, "threads");
    r->layers = get_size(object, "layers");
    r->n = get_size(object, "n");
    r->batch = get_size(object, "batch");
    r->tokens = get_size(object, "tokens");
    if (!*r->model || r->n == 0)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: results[%zu] has no model or no n", where, index);
    if (r->batch == 0) r->batch = 1;
    if (r->tokens == 0) r->tokens = r->n * r->batch;
    r->other_cores = get_number(object, "other_cores");
    r->gflop = get_number(object, "gflop");
    r->gflop_reachable = get_number(object, "gflop_reachable");
    r->table_rows = get_number(object, "table_rows");
    r->reachable_rows = get_number(object, "reachable_rows");
    r->gflops = get_number(object, "gflops");
    r->peak_fraction = get_number(object, "peak_fraction");
    r->tokens_per_s = get_number(object, "tokens_per_s");
    r->peak_rss_bytes = get_size(object, "peak_rss_bytes");
    r->workspace_bytes = get_size(object, "workspace_bytes");
    const char *checksum = json_string_value(json_object_get(object, "checksum"));
    r->checksum = checksum ? strtoull(checksum, NULL, 16) : 0;
    get_breakdown(object, r);
    DEBERTA_TRY(get_lengths(json_object_get(object, "lengths"), r, where, index, err));
    return get_samples(object, r, where, index, err);
}

static deberta_status get_report(const json_t *root, bench_report *report, const char *where, deberta_error *err)
{
    const char *schema = json_string_value(json_object_get(root, "schema"));
    const json_t *results = json_object_get(root, "results");
    if (!schema || strcmp(schema, SCHEMA) != 0)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: schema is '%s', expected '%s'", where, schema ? schema : "absent",
                     SCHEMA);
    if (!json_is_object(json_object_get(root, "environment")))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: there is no environment, and results without it compare with nothing",
                     where);
    if (!json_is_array(results)) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: there are no results", where);
    get_environment(json_object_get(root, "environment"), report);
    size_t count = json_array_size(results);
    report->results = calloc(count ? count : 1, sizeof *report->results);
    if (!report->results) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: out of memory for %zu results", where, count);
    for (size_t i = 0; i < count; i++) {
        report->count = i + 1;
        DEBERTA_TRY(get_result(json_array_get(results, i), &report->results[i], where, i, err));
    }
    return DEBERTA_OK;
}

deberta_status report_read_json(bench_report *report, FILE *in, const char *where, deberta_error *err)
{
    json_error_t problem;
    *report = (bench_report){0};
    json_t *root = json_loadf(in, JSON_REJECT_DUPLICATES, &problem);
    if (!root)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: line %d, column %d: %s", where, problem.line, problem.column,
                     problem.text);
    deberta_status status = get_report(root, report, where, err);
    json_decref(root);
    if (status != DEBERTA_OK) bench_report_free(report);
    return status;
}

deberta_status report_read_file(bench_report *report, const char *path, deberta_error *err)
{
    FILE *file = fopen(path, "rb");
    if (!file) DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: cannot be opened: %s", path, strerror(errno));
    struct stat about;
    if (fstat(fileno(file), &about) == 0 && S_ISDIR(about.st_mode)) {
        fclose(file);
        DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: is a folder, expected a JSON file", path);
    }
    const deberta_status status = report_read_json(report, file, path, err);
    fclose(file);
    return status;
}
