/* Reads the JSON of results, as results_json.c writes it. Members that an older or a foreign file lacks are 0 or
 * empty; a file without the members that a comparison needs is refused.
 *
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/result_fields.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/io/json_file.h"

/* Limits with room for a sweep of a hundred thousand points, some 60 MB. */
static const json_limits limits = {.bytes = 256 << 20, .depth = 32, .values = (size_t)16 << 20};
enum { CHUNK_BYTES = 1 << 16 };

static double get_number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name)); /* 0 if it is no number */
}

static size_t get_size(const json_t *object, const char *name)
{
    double value = get_number(object, name);
    return value > 0 && value < 1e18 ? (size_t)value : 0;
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
        record_read(&roofs->roof[roofs->count++], bench_roof_fields, object);
    }
    roofs->stream_bytes = get_size(environment, "stream_bytes");
}

static void get_environment(const json_t *e, bench_results *report)
{
    machine_sheet *s = &report->sheet;
    record_read(report, bench_environment_fields, e);
    record_read(report, bench_cache_fields, json_object_get(e, "caches"));
    get_tiers(e, s->tiers, sizeof s->tiers);
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
        record_read(&r->breakdown[s], bench_stage_fields, stage);
    }
    const json_t *parts = json_object_get(json_object_get(stages, cost_stage_name(PROFILE_ATTENTION)), "parts");
    for (int p = 0; p < PROFILE_PARTS; p++) {
        record_read(&r->parts[p], bench_part_fields, json_object_get(parts, cost_part_name((profile_part)p)));
    }
    r->waiting_s = get_number(json_object_get(stages, "waiting"), "s");
    r->breakdown_s = get_number(object, "breakdown_s");
    record_read(&r->breakdown_peak_then, bench_then_fields, json_object_get(object, "breakdown_peak_then"));
    record_read(&r->peak_then, bench_then_fields, json_object_get(object, "peak_then"));
}

static deberta_status get_lengths(scope *memory, const json_t *array, bench_result *r, const char *where, size_t index,
                                  deberta_error *err)
{
    if (!json_is_array(array)) return DEBERTA_OK;
    if (json_array_size(array) != r->batch)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: results[%zu] has %zu lengths for a batch of %zu", where, index,
                     json_array_size(array), r->batch);
    r->lengths = scope_take(memory, r->batch, sizeof *r->lengths);
    for (size_t i = 0; i < r->batch; i++) r->lengths[i] = (size_t)json_integer_value(json_array_get(array, i));
    return DEBERTA_OK;
}

static deberta_status get_samples(scope *memory, const json_t *object, bench_result *r, const char *where, size_t index,
                                  deberta_error *err)
{
    const json_t *array = json_object_get(object, "samples_s");
    size_t count = json_array_size(array);
    if (count == 0) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: results[%zu] has no samples_s", where, index);
    r->samples = scope_take(memory, count, sizeof *r->samples);
    for (size_t i = 0; i < count; i++) {
        r->samples[i] = json_number_value(json_array_get(array, i));
        if (!(r->samples[i] > 0) || !isfinite(r->samples[i])) {
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: results[%zu].samples_s[%zu] is not a positive number", where,
                         index, i);
        }
    }
    statistics_summarize(&r->time, r->samples, count);
    return DEBERTA_OK;
}

/* Reads the arrays beside the samples; with another length they are another program's, and ignored. */
static void get_visits(scope *memory, const json_t *object, bench_result *r)
{
    const json_t *visit = json_object_get(object, "visit"), *at = json_object_get(object, "at_s"),
                 *warm = json_object_get(object, "warm");
    const size_t count = r->time.count, visits = json_array_size(warm);
    if (json_array_size(visit) != count || json_array_size(at) != count || visits == 0) return;
    r->visit = scope_take(memory, count, sizeof *r->visit);
    r->at = scope_take(memory, count, sizeof *r->at);
    r->warm = scope_take(memory, visits, sizeof *r->warm);
    r->visits = visits;
    for (size_t i = 0; i < count; i++) {
        r->visit[i] = (size_t)json_integer_value(json_array_get(visit, i));
        r->at[i] = json_number_value(json_array_get(at, i));
    }
    for (size_t i = 0; i < visits; i++) r->warm[i] = (size_t)json_integer_value(json_array_get(warm, i));
}

static deberta_status get_result(scope *memory, const json_t *object, bench_result *r, const char *where, size_t index,
                                 deberta_error *err)
{
    if (!json_is_object(object)) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: results[%zu] is not an object", where, index);
    snprintf(r->engine, sizeof r->engine, "deberta");
    snprintf(r->precision, sizeof r->precision, "float32");
    snprintf(r->attention, sizeof r->attention, "full");
    record_read(r, bench_result_fields, object);
    if (!*r->model || r->n == 0)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: results[%zu] has no model or no n", where, index);
    if (r->batch == 0) r->batch = 1;
    if (r->tokens == 0) r->tokens = r->n * r->batch;
    get_breakdown(object, r);
    DEBERTA_TRY(get_lengths(memory, json_object_get(object, "lengths"), r, where, index, err));
    DEBERTA_TRY(get_samples(memory, object, r, where, index, err));
    get_visits(memory, object, r);
    return DEBERTA_OK;
}

static deberta_status get_report(const json_t *root, bench_results *report, const char *where, deberta_error *err)
{
    const char *schema = json_string_value(json_object_get(root, "schema"));
    const json_t *results = json_object_get(root, "results");
    if (schema && strcmp(schema, "deberta-bench-requests/1") == 0)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                     "%s: results of bench requests, which are read as a table: expected a sweep of bench", where);
    if (!schema || strcmp(schema, BENCH_RESULTS_SCHEMA) != 0)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: schema is '%s', expected '%s'", where, schema ? schema : "absent",
                     BENCH_RESULTS_SCHEMA);
    if (!json_is_object(json_object_get(root, "environment")))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: there is no environment, and results without it compare with nothing",
                     where);
    if (!json_is_array(results)) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: there are no results", where);
    get_environment(json_object_get(root, "environment"), report);
    size_t count = json_array_size(results);
    report->result = scope_take(&report->memory, count, sizeof *report->result);
    for (size_t i = 0; i < count; i++) {
        report->count = i + 1;
        DEBERTA_TRY(get_result(&report->memory, json_array_get(results, i), &report->result[i], where, i, err));
    }
    return DEBERTA_OK;
}

/* Reads the rest of a stream, up to one byte more than a file of results may have. */
static deberta_status read_stream(char **text, size_t *bytes, FILE *in, const char *where, deberta_error *err)
{
    size_t capacity = 0, got = 1;
    for (*text = NULL, *bytes = 0; got > 0 && *bytes <= limits.bytes; *bytes += got) {
        char *more = grown(*text, &capacity, *bytes + CHUNK_BYTES, 1);
        if (!more) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for its JSON", where);
        *text = more;
        got = fread(*text + *bytes, 1, CHUNK_BYTES, in);
    }
    if (ferror(in)) DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: cannot be read: %s", where, strerror(errno));
    return DEBERTA_OK;
}

/* Refuses what `bench --format csv` writes: it is for spreadsheets, without the machine and its noise. */
static deberta_status refuse_table(const char *text, size_t bytes, const char *where, deberta_error *err)
{
    static const char beginning[] = "model,";
    if (bytes < strlen(beginning) || memcmp(text, beginning, strlen(beginning)) != 0) return DEBERTA_OK;
    DEBERTA_FAIL(
        err, DEBERTA_E_FILE,
        "%s: a table in CSV, which lacks the machine of the measurement; expected JSON: bench ... -o FILE.json", where);
}

static deberta_status read_results(bench_results *report, json_t **kept, FILE *in, const char *where,
                                   deberta_error *err)
{
    char *text;
    size_t bytes;
    json_t *root = NULL;
    *report = (bench_results){0};
    deberta_status status = read_stream(&text, &bytes, in, where, err);
    if (status == DEBERTA_OK) status = refuse_table(text, bytes, where, err);
    if (status == DEBERTA_OK) status = json_file_parse(&root, text, bytes, &limits, where, err);
    if (status == DEBERTA_OK) status = get_report(root, report, where, err);
    free(text);
    if (status == DEBERTA_OK && kept)
        *kept = root;
    else
        json_decref(root);
    return status;
}

deberta_status bench_results_read_json(bench_results *report, FILE *in, const char *where, deberta_error *err)
{
    return read_results(report, NULL, in, where, err);
}

deberta_status bench_results_read_file(bench_results *report, json_t **kept, const char *path, deberta_error *err)
{
    if (strcmp(path, "-") == 0) return read_results(report, kept, stdin, "standard input", err);
    FILE *file = fopen(path, "rb");
    if (!file) DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: cannot be opened: %s", path, strerror(errno));
    struct stat about;
    if (fstat(fileno(file), &about) == 0 && S_ISDIR(about.st_mode)) {
        stream_discard(file);
        DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: is a folder, expected a JSON file", path);
    }
    const deberta_status status = read_results(report, kept, file, path, err);
    stream_discard(file);
    return status;
}
