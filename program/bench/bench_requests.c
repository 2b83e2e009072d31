/* `deberta bench requests` measures latencies of single texts as a service sees them. SPDX-License-Identifier: MIT */
#include "bench/machine.h"
#include "bench/requests.h"
#include "core/base/numbers.h"
#include "program/bench/bench_options.h"
#include "program/frame/progress.h"

#include <stdlib.h>
#include <string.h>

typedef struct requests_bench_options {
    common_options common;
    size_t requests, group;
    double load;
    int mix;
} requests_bench_options;

static const char *const mixes[] = {"uniform", "short-uniform", "short-zipf", "mixed-tail", "flat-long", NULL};

typedef struct requests_result {
    const requests_bench_options *options;
    requests_measurement found;
} requests_result;

static void add_ways(result *r, const requests_measurement *m)
{
    static const result_column columns[] = {{"way", "requests", COLUMN_TEXT, NULL, 0},
                                            {"requests_per_second", "requests/s", COLUMN_REAL, "%.1f", 0},
                                            {"tokens_per_second", "tokens/s", COLUMN_REAL, "%.0f", 0},
                                            {"p50_ms", "p50 ms", COLUMN_REAL, "%.2f", 0},
                                            {"p90_ms", "p90 ms", COLUMN_REAL, "%.2f", 0},
                                            {"p99_ms", "p99 ms", COLUMN_REAL, "%.2f", 0},
                                            {"most_ms", "most ms", COLUMN_REAL, "%.2f", 0},
                                            {"batches", NULL, COLUMN_INTEGER, NULL, 0},
                                            {"other_bits", "other bits", COLUMN_INTEGER, NULL, 0},
                                            {NULL, NULL, COLUMN_TEXT, NULL, 0}};
    static const double shares[] = {0.5, 0.9, 0.99, 1};
    result_table *table = result_add_table(r, "ways", NULL, columns);
    double *sorted = memory_take(m->count, sizeof *sorted);
    for (request_way way = 0; way < REQUEST_WAYS; way++) {
        const requests_served *served = &m->ways[way];
        memcpy(sorted, served->latencies, m->count * sizeof *sorted);
        cell_text(table, "%s", request_way_name(way));
        cell_real(table, (double)m->count / served->seconds);
        cell_real(table, (double)m->tokens / served->seconds);
        for (size_t k = 0; k < sizeof shares / sizeof *shares; k++)
            cell_real(table, 1e3 * quantile(sorted, m->count, shares[k]));
        cell_integer(table, (int64_t)served->batches);
        cell_integer(table, (int64_t)served->differ);
    }
    free(sorted);
    result_set_data(r, table, false);
}

static json_t *reals(const double *values, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) json_array_append_new(list, json_real(values[i]));
    return list;
}

static void add_json(json_t *to, const requests_result *t)
{
    const requests_measurement *m = &t->found;
    const requests_bench_options *o = t->options;
    json_t *lengths = json_array(), *latencies = json_array();
    for (size_t i = 0; i < m->count; i++) json_array_append_new(lengths, json_integer((json_int_t)m->lengths[i]));
    for (request_way way = 0; way < REQUEST_WAYS; way++)
        json_array_append_new(latencies, reals(m->ways[way].latencies, m->count));
    json_object_update_new(
        to, json_pack("{s:s, s:s, s:s, s:I, s:s, s:I, s:I, s:I, s:f, s:f}", "model", o->common.arguments[0],
                      "precision", deberta_precision_name((deberta_precision)o->common.precision), "isa", m->isa,
                      "threads", (json_int_t)m->threads, "mix", mixes[o->mix], "seed", (json_int_t)o->common.seed,
                      "group", (json_int_t)o->group, "tokens", (json_int_t)m->tokens, "load", o->load,
                      "requests_due_per_second", m->ways[REQUESTS_ARRIVE_ALONE].rate));
    json_object_set_new(to, "lengths", lengths);
    json_object_set_new(to, "latencies_s", latencies);
}

static result *bench_requests_describe(const requests_result *t)
{
    const requests_measurement *m = &t->found;
    const requests_bench_options *o = t->options;
    result *r = result_new("deberta-bench-requests/1");
    result_say(r, "%s: %zu requests, %s, %zu tokens; %s, %zu thread%s, %s", o->common.arguments[0], m->count,
               mixes[o->mix], m->tokens, deberta_precision_name((deberta_precision)o->common.precision), m->threads,
               m->threads == 1 ? "" : "s", m->isa);
    result_say(r, "arriving: %.1f requests/s, %.0f %% of those back to back alone; batches of at most %zu",
               m->ways[REQUESTS_ARRIVE_ALONE].rate, 100 * o->load, o->group);
    add_json(result_json(r), t);
    add_ways(r, m);
    return r;
}

static void bench_requests_show_progress(void *bar, size_t done, size_t of)
{
    progress_step(bar, 1000 * done / of, "requests");
}

static int bench_requests_run(const common_options *options)
{
    requests_result t = {.options = (const requests_bench_options *)options};
    deberta_error error = {0};
    const result_format format = result_format_read(options);
    progress_bar bar = progress_begin(options, "bench requests", 1000);
    const requests_options asked = {.model = options->arguments[0],
                                    .model_options = {.struct_size = sizeof(deberta_model_options),
                                                      .reference = (deberta_reference)options->reference,
                                                      .precision = (deberta_precision)options->precision},
                                    .isa = options->isa,
                                    .threads = options->threads,
                                    .memory_limit_bytes = options->memory_limit_bytes,
                                    .count = t.options->requests,
                                    .group = t.options->group,
                                    .load = t.options->load,
                                    .mix = (request_mix)t.options->mix,
                                    .seed = options->seed,
                                    .progress = bench_requests_show_progress,
                                    .progress_context = &bar};
    const deberta_status status = requests_run(&t.found, &asked, &error);
    progress_end(&bar);
    must(options, status, &error);
    size_t differ = 0;
    for (request_way way = 0; way < REQUEST_WAYS; way++) differ += t.found.ways[way].differ;
    finish_result(options, options_out(options), bench_requests_describe(&t), format);
    scope_free(&t.found.memory);
    if (differ) fprintf(stderr, "deberta bench requests: %zu answers have other bits than alone\n", differ);
    return differ ? EXIT_CHECK_FAILED : EXIT_OK;
}

static const option table[] = {
    {"lengths", 0, "NAME",
     "uniform (8 to 512, default), short-uniform (8 to 64), short-zipf (8 to 128, a power law), mixed-tail (8 "
     "to 48, one of 64 has 256), flat-long (256)",
     CHOICE_AT(requests_bench_options, mix, mixes)},
    {"requests", 0, "N", "texts of the stream (default 100)", SIZE_AT(requests_bench_options, requests, 1, 1000000)},
    {"group", 0, "N", "requests of a batch at most (default 8)", SIZE_AT(requests_bench_options, group, 1, 4096)},
    {"load", 0, "SHARE", "arriving requests, of the rate back to back (default 0.7)",
     NUMBER_AT(requests_bench_options, load, 0.01, 10)},
    RESULT_FORMAT_OPTIONS,
    {.name = NULL},
};

const command command_bench_requests = {
    .name = "bench requests",
    .summary = "latencies as a service sees them: single texts, arriving at random, alone or in batches",
    .arguments = "MODEL",
    .writes = WRITES_TABLE,
    .min_arguments = 1,
    .max_arguments = 1,
    .size = sizeof(requests_bench_options),
    .defaults = &(const requests_bench_options){.requests = 100, .group = 8, .load = 0.7},
    .options = table,
    .example =
        "  deberta bench requests models/demo\n"
        "  deberta bench requests synthetic:v3-xsmall,vocab=1000 --lengths mixed-tail --precision int8 -t 2 --json\n",
    .run = bench_requests_run,
};
