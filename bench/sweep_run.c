/* Runs a sweep: opens its model, measures roofs and visits all points. SPDX-License-Identifier: MIT */

#include "bench/sweep_work.h"
#include "bench/timer.h"
#include "core/base/numbers.h"

/* Returns the number of layers to load; 0: all. */
static size_t most_layers(const sweep_options *options)
{
    size_t most = 0;
    for (size_t i = 0; i < options->layers.count; i++) {
        if (options->layers.values[i] > most) most = options->layers.values[i];
    }
    return most;
}

static deberta_status open_model(sweep *s, deberta_error *err)
{
    deberta_model_options options = {
        .struct_size = sizeof options,
        .reference = s->options->reference,
        .precision = s->options->precision,
        .memory_limit_bytes = s->options->memory_limit_bytes,
        .layers = most_layers(s->options),
    };
    model_internal_options internal = {.keep_position_projections = s->options->position_cache != SWEEP_CACHE_ON};
    DEBERTA_TRY(model_open_internal(&s->model, s->options->model, &options, &internal, err));
    s->info = *deberta_model_describe(s->model);
    return DEBERTA_OK;
}

static void make_input(sweep *s)
{
    size_t tokens = 1, sequences = 1;
    for (size_t i = 0; i < s->list.count; i++) {
        if (s->list.points[i].result.tokens > tokens) tokens = s->list.points[i].result.tokens;
        if (s->list.points[i].result.batch > sequences) sequences = s->list.points[i].result.batch;
    }
    s->ids = scope_take(s->list.memory, tokens, sizeof *s->ids);
    s->starts = scope_take(s->list.memory, sequences + 1, sizeof *s->starts);
    for (size_t i = 0; i < tokens; i++) s->ids[i] = (int32_t)(sweep_random(s) % s->info.vocabulary_size);
}

/* Measures the limits for every number of threads and every tier of the sweep; bandwidth only once, for the sheet. */
static deberta_status measure_roofs(sweep *s, machine_sheet *sheet, deberta_error *err)
{
    size_t threads[MACHINE_MAX_ROOFS], count = 0;
    unsigned tiers = 1u << deberta_isa_best();
    if (s->options->skip_roofs) return DEBERTA_OK;
    for (size_t i = 0; i < s->list.count; i++) {
        const sweep_point *p = &s->list.points[i];
        size_t known = 0;
        tiers |= 1u << p->isa;
        while (known < count && threads[known] != p->result.threads) known++;
        if (known == count && count < MACHINE_MAX_ROOFS) threads[count++] = p->result.threads;
    }
    return machine_measure_roofs(&sheet->roofs, threads, count, tiers, true, err);
}

static deberta_status sweep_run_all(sweep *s, bench_results *results, deberta_error *err)
{
    sweep_tell(s, "opening the model", NULL);
    double opening = timer_now();
    DEBERTA_TRY(open_model(s, err));
    results->load_s = timer_now() - opening;
    results->load_peak_rss_bytes = sweep_peak_resident_bytes();
    DEBERTA_TRY(
        sweep_points_make(&s->list, s->options, &s->info, executor_default_threads(&results->sheet.topology), err));
    make_input(s);
    sweep_tell(s, "limits of the machine", NULL);
    DEBERTA_TRY(measure_roofs(s, &results->sheet, err));
    DEBERTA_TRY(sweep_probe_all(s, err));
    results->sheet.huge_page_bytes = s->huge_page_bytes;
    if (s->options->cold) DEBERTA_TRY(sweep_prepare_cold(s, &results->sheet.topology, err));
    if (s->options->breakdown && s->options->roof_share > 0)
        s->stream = machine_stream_new(&results->sheet.topology); /* after the probes, which measure memory */
    machine_counters before = machine_read_counters();
    DEBERTA_TRY(sweep_sample_all(s, err));
    machine_finish_sheet(&results->sheet, &before);
    if (s->options->breakdown) DEBERTA_TRY(sweep_profile_all(s, err));
    /* after the measurements, because it reads all files */
    DEBERTA_TRY(deberta_model_digest(s->model, s->digest, err));
    sweep_collect(s, results);
    size_t most = 0;
    for (size_t k = 0; k < results->count; k++) most = maximum(most, results->result[k].threads);
    if (most > results->sheet.topology.allowed_logical)
        machine_note(&results->sheet, "%zu threads share %zu logical processors", most,
                     results->sheet.topology.allowed_logical);
    if (s->stopped) machine_note(&results->sheet, "stopped before the end");
    return DEBERTA_OK;
}

deberta_status sweep_run(bench_results *results, const sweep_options *options, deberta_error *err)
{
    sweep s = {
        .options = options,
        .repetitions = options->repetitions ? options->repetitions : SWEEP_DEFAULT_REPETITIONS,
        .min_seconds = options->min_seconds >= 0 ? options->min_seconds
                       : options->repetitions    ? 0
                                                 : SWEEP_DEFAULT_MIN_SECONDS,
        .list.memory = &results->memory,
        .random = options->seed ^ 0x9E3779B97F4A7C15,
        .began = timer_now(),
    };
    if (s.random == 0) s.random = 1;
    *results = (bench_results){0};
    deberta_status status = machine_read_sheet(&results->sheet, err);
    if (status == DEBERTA_OK) status = sweep_run_all(&s, results, err);
    executor_free(&s.evictor);
    machine_stream_free(&s.stream);
    arena_release(&s.waste_memory);
    deberta_model_free(&s.model);
    return status;
}
