/* SPDX-License-Identifier: MIT */
#include "bench/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/child.h"
#include "bench/sweep_points.h"
#include "bench/timer.h"
#include "core/base/arena.h"
#include "core/base/parallel.h"
#include "core/model/model.h"

typedef struct sweep {
    const sweep_options *options;
    size_t repetitions;
    double min_seconds;
    deberta_model *model;
    deberta_model_info info;
    sweep_points list;
    int32_t *ids;   /* [most tokens] */
    size_t *starts; /* [most sequences + 1] of the batch at work */
    uint64_t random;
    thread_pool *evictor; /* with --cold: writes over `waste` */
    arena waste_memory;
    unsigned char *waste; /* [waste_blocks][WASTE_BLOCK_BYTES] */
    size_t waste_blocks;
    double began, reported;              /* when; largest share told so far */
    double worked_flops, worked_seconds; /* of all encodes: the rate for estimates */
    bool stopped;
} sweep;

/* xorshift64*: enough for token ids and the order of visits. */
static uint64_t next_random(sweep *s)
{
    s->random ^= s->random >> 12;
    s->random ^= s->random << 25;
    s->random ^= s->random >> 27;
    return s->random * 0x2545F4914F6CDD1D;
}

/* --------------------------------------------------------------------------------------------------------- progress */

static double estimate_of(const sweep *s, const sweep_point *p)
{
    if (p->estimate > 0) return p->estimate;
    double rate =
        s->worked_seconds > 0 ? s->worked_flops / s->worked_seconds : 3e10; /* a guess until the first encode */
    return p->cost.total.flops / rate;
}

static double remaining_seconds(const sweep *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->list.count; i++) {
        const sweep_point *p = &s->list.points[i];
        double one = estimate_of(s, p);
        double wanted = fmax((double)s->repetitions, s->min_seconds / one) - (double)p->taken;
        sum += 1.3 * one * fmax(0, wanted); /* with the encodes that do not count */
        if (p->workspace_bytes == 0) sum += 1.5 * one;
        if (s->options->breakdown && !p->profiled) sum += 4 * one;
    }
    return sum;
}

static void tell(sweep *s, const char *what, bool knows_points)
{
    if (!s->options->progress) return;
    sweep_state state = {.what = what, .elapsed_s = timer_now() - s->began, .remaining_s = -1};
    if (knows_points) {
        state.remaining_s = remaining_seconds(s);
        s->reported = fmax(s->reported, state.elapsed_s / (state.elapsed_s + state.remaining_s));
    }
    state.done = s->reported;
    if (!s->options->progress(s->options->progress_context, &state)) s->stopped = true;
}

/* ------------------------------------------------------------------------------------------------------- one encode */

static deberta_status fail_at(const sweep_point *p, deberta_status status, const deberta_error *inner,
                              deberta_error *err)
{
    char where[160];
    sweep_point_describe(p, where, sizeof where);
    return status_fail(err, status, "%s: %.300s", where, inner->message);
}

static deberta_status open_session(const sweep *s, const sweep_point *p, bool profile, deberta_session **session,
                                   deberta_error *err)
{
    deberta_session_options options = {
        .struct_size = sizeof options,
        .isa = p->isa,
        .max_tokens = p->tokens,
        .threads = p->threads,
        .memory_limit_bytes = s->options->memory_limit_bytes,
        .pin_threads = s->options->pin_threads,
    };
    session_internal_options internal = {
        .terms = p->terms,
        .layers = p->layers,
        .recompute_positions = !p->position_cache,
        .profile = profile,
    };
    return session_create_internal(session, s->model, &options, &internal, err);
}

static deberta_status encode(const sweep *s, const sweep_point *p, deberta_session *session, deberta_outputs *outputs,
                             double *seconds, deberta_error *err)
{
    deberta_batch batch = {
        .struct_size = sizeof batch,
        .ids = s->ids,
        .sequence_starts = s->starts,
        .sequences = p->sequences,
    };
    *outputs = (deberta_outputs){.struct_size = sizeof *outputs};
    double start = timer_now();
    deberta_status status = deberta_encode(session, &batch, outputs, err);
    *seconds = timer_now() - start;
    return status;
}

static void set_starts(const sweep *s, const sweep_point *p)
{
    s->starts[0] = 0;
    for (size_t i = 0; i < p->sequences; i++) s->starts[i + 1] = s->starts[i] + p->lengths[i];
}

/* FNV-1a over the words of the last hidden state. */
static uint64_t checksum_of(const sweep *s, const sweep_point *p, const deberta_outputs *outputs)
{
    uint64_t sum = 0xcbf29ce484222325;
    for (size_t token = 0; token < p->tokens; token++) {
        const float *row = outputs->hidden + token * outputs->hidden_stride;
        for (size_t i = 0; i < s->info.hidden_size; i++) {
            uint32_t bits;
            memcpy(&bits, &row[i], sizeof bits);
            sum = (sum ^ bits) * 0x100000001b3;
        }
    }
    return sum;
}

/* ----------------------------------------------------------------------------------------------- memory, in a child */

typedef struct probe_request {
    const sweep *sweep;
    const sweep_point *point;
} probe_request;

typedef struct probe_answer {
    size_t peak_rss_bytes, workspace_bytes;
    uint64_t checksum;
    double seconds;
} probe_answer;

/* VmHWM: the most memory that this process ever had. A new process starts with what it was forked with. */
static size_t peak_resident_bytes(void)
{
    char line[256];
    size_t kibibytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "VmHWM: %zu", &kibibytes) == 1) break;
    }
    if (file) fclose(file);
    return kibibytes << 10;
}

static deberta_status probe(const void *context, void *answer, deberta_error *err)
{
    const probe_request *request = context;
    probe_answer *found = answer;
    deberta_session *session = NULL;
    deberta_outputs outputs;
    DEBERTA_TRY(open_session(request->sweep, request->point, false, &session, err));
    deberta_status status = encode(request->sweep, request->point, session, &outputs, &found->seconds, err);
    if (status == DEBERTA_OK) {
        found->peak_rss_bytes = peak_resident_bytes();
        found->workspace_bytes = deberta_session_memory_bytes(session);
        found->checksum = checksum_of(request->sweep, request->point, &outputs);
    }
    deberta_session_free(&session);
    return status;
}

static deberta_status probe_all(sweep *s, deberta_error *err)
{
    for (size_t i = 0; i < s->list.count && !s->stopped; i++) {
        sweep_point *p = &s->list.points[i];
        deberta_error inner = {0};
        probe_answer answer = {0};
        tell(s, "memory", true);
        set_starts(s, p);
        probe_request request = {.sweep = s, .point = p};
        deberta_status status =
            child_run(probe, &request, &answer, sizeof answer, "an encode in its own process", &inner);
        if (status != DEBERTA_OK) return fail_at(p, status, &inner, err);
        p->peak_rss_bytes = answer.peak_rss_bytes;
        p->workspace_bytes = answer.workspace_bytes;
        p->checksum = answer.checksum;
        s->worked_flops += p->cost.total.flops;
        s->worked_seconds += answer.seconds;
    }
    return DEBERTA_OK;
}

/* ------------------------------------------------------------------------------------------------------ cold caches */

enum { WASTE_BLOCK_BYTES = 1 << 20 };

static void waste_block(void *context, size_t task, size_t worker)
{
    (void)worker;
    unsigned char *block = (unsigned char *)context + task * WASTE_BLOCK_BYTES;
    for (size_t i = 0; i < WASTE_BLOCK_BYTES; i += ARENA_ALIGNMENT_BYTES) block[i]++;
}

/* All threads of the machine, because second-level caches belong to cores. */
static void empty_caches(const sweep *s)
{
    if (s->evictor) parallel_for(s->evictor, s->waste_blocks, waste_block, s->waste);
}

/* Twice the caches together, at least 64 MiB, at most 512 MiB: a guest may see the whole cache of its host. */
static deberta_status prepare_cold(sweep *s, const topology_info *machine, deberta_error *err)
{
    size_t mebibyte = (size_t)1 << 20;
    size_t bytes = 2 * (machine->l3_bytes * machine->packages + machine->l2_bytes * machine->cores);
    if (bytes < 64 * mebibyte) bytes = 64 * mebibyte;
    if (bytes > 512 * mebibyte) bytes = 512 * mebibyte;
    s->waste_blocks = bytes / WASTE_BLOCK_BYTES;
    arena_take(&s->waste_memory, s->waste_blocks, WASTE_BLOCK_BYTES);
    DEBERTA_TRY(arena_allocate(&s->waste_memory, "memory to empty the caches with", 0, err));
    s->waste = arena_take(&s->waste_memory, s->waste_blocks, WASTE_BLOCK_BYTES);
    return thread_pool_create(&s->evictor, machine->usable_cores, false, err);
}

/* ---------------------------------------------------------------------------------------------------------- samples */

/* Visits in which a point's samples are taken. Many for quick points; for slow ones few, because each begins with an
 * encode that does not count. */
enum { VISITS = 7, VISITS_OF_SLOW_POINTS = 3 };
#define SLOW_SECONDS 0.1

static deberta_status plan_samples(const sweep *s, sweep_point *p, deberta_error *err)
{
    double wanted = fmax((double)s->repetitions, fmin(ceil(s->min_seconds / p->estimate), SWEEP_MAX_SAMPLES));
    p->wanted = (size_t)wanted;
    p->samples = calloc(p->wanted, sizeof *p->samples);
    if (!p->samples) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for %zu samples", p->wanted);
    return DEBERTA_OK;
}

static size_t samples_of_visit(const sweep_point *p)
{
    size_t visits = p->estimate > SLOW_SECONDS ? VISITS_OF_SLOW_POINTS : VISITS;
    size_t share = (p->wanted + visits - 1) / visits, left = p->wanted - p->taken;
    return share < left ? share : left;
}

static deberta_status take_samples(sweep *s, sweep_point *p, deberta_session *session, deberta_error *err)
{
    deberta_outputs outputs;
    double seconds;
    DEBERTA_TRY(encode(s, p, session, &outputs, &seconds, err)); /* pages, caches and sleeping threads: not counted */
    if (p->estimate == 0) {
        p->estimate = seconds;
        DEBERTA_TRY(plan_samples(s, p, err));
    }
    machine_counters before = machine_read_counters();
    for (size_t left = samples_of_visit(p); left > 0 && !s->stopped; left--) {
        if (s->options->cold) empty_caches(s);
        DEBERTA_TRY(encode(s, p, session, &outputs, &p->samples[p->taken], err));
        p->taken++;
        if (p->estimate > SLOW_SECONDS) tell(s, "time", true);
    }
    machine_counters after = machine_read_counters();
    double wall = after.wall - before.wall;
    p->others += machine_activity_between(&before, &after).others * wall;
    p->counted += wall;
    if (checksum_of(s, p, &outputs) != p->checksum) p->varies = true;
    return DEBERTA_OK;
}

static deberta_status visit(sweep *s, sweep_point *p, deberta_error *err)
{
    deberta_error inner = {0};
    deberta_session *session = NULL;
    set_starts(s, p);
    deberta_status status = open_session(s, p, false, &session, &inner);
    if (status == DEBERTA_OK) status = take_samples(s, p, session, &inner);
    deberta_session_free(&session);
    return status == DEBERTA_OK ? status : fail_at(p, status, &inner, err);
}

static void shuffle(sweep *s, size_t *order)
{
    for (size_t i = s->list.count; i > 1; i--) {
        size_t j = (size_t)(next_random(s) % i), other = order[j];
        order[j] = order[i - 1];
        order[i - 1] = other;
    }
}

static deberta_status sample_all(sweep *s, deberta_error *err)
{
    size_t *order = calloc(s->list.count, sizeof *order);
    if (!order) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for %zu points", s->list.count);
    for (size_t i = 0; i < s->list.count; i++) order[i] = i;
    deberta_status status = DEBERTA_OK;
    for (bool again = true; again && status == DEBERTA_OK && !s->stopped;) {
        again = false;
        shuffle(s, order);
        for (size_t i = 0; i < s->list.count && status == DEBERTA_OK && !s->stopped; i++) {
            sweep_point *p = &s->list.points[order[i]];
            if (p->samples && p->taken == p->wanted) continue;
            tell(s, "time", true);
            if (!s->stopped) status = visit(s, p, err);
            again = true;
        }
    }
    free(order);
    return status;
}

/* ----------------------------------------------------------------------------------------------------------- stages */

enum { PROFILED_ENCODES = 5 };

typedef struct profiled_encode {
    double seconds, stage[PROFILE_STAGES];
} profiled_encode;

static int by_seconds(const void *left, const void *right)
{
    double a = ((const profiled_encode *)left)->seconds, b = ((const profiled_encode *)right)->seconds;
    return (a > b) - (a < b);
}

/* Thread-seconds of a stage over the number of threads are its share of the wall time. */
static void collect_stages(const profile *found, profiled_encode *one)
{
    memset(one->stage, 0, sizeof one->stage);
    for (size_t lane = 0; lane < found->threads; lane++) {
        for (int stage = 0; stage < PROFILE_STAGES; stage++)
            one->stage[stage] += found->lanes[lane].seconds[stage] / (double)found->threads;
    }
}

/* The median encode, whole: medians of single stages would not add up to anything. */
static deberta_status profile_session(sweep *s, sweep_point *p, deberta_session *session, deberta_error *err)
{
    profiled_encode encodes[PROFILED_ENCODES];
    deberta_outputs outputs;
    profile *found = session_profile(session);
    if (!found) DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "this session keeps no times of stages");
    for (int i = -1; i < PROFILED_ENCODES; i++) { /* the first one does not count */
        profiled_encode *one = &encodes[i < 0 ? 0 : i];
        memset(found->lanes, 0, found->threads * sizeof *found->lanes);
        if (s->options->cold) empty_caches(s);
        DEBERTA_TRY(encode(s, p, session, &outputs, &one->seconds, err));
        collect_stages(found, one);
    }
    qsort(encodes, PROFILED_ENCODES, sizeof *encodes, by_seconds);
    p->profiled_seconds = encodes[PROFILED_ENCODES / 2].seconds;
    memcpy(p->stage_seconds, encodes[PROFILED_ENCODES / 2].stage, sizeof p->stage_seconds);
    p->profiled = true;
    return DEBERTA_OK;
}

static deberta_status profile_all(sweep *s, deberta_error *err)
{
    for (size_t i = 0; i < s->list.count && !s->stopped; i++) {
        sweep_point *p = &s->list.points[i];
        deberta_session *session = NULL;
        deberta_error inner = {0};
        tell(s, "stages", true);
        set_starts(s, p);
        deberta_status status = open_session(s, p, true, &session, &inner);
        if (status == DEBERTA_OK) status = profile_session(s, p, session, &inner);
        deberta_session_free(&session);
        if (status != DEBERTA_OK) return fail_at(p, status, &inner, err);
    }
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------------- results */

static void fill_breakdown(bench_result *r, const sweep_point *p)
{
    r->has_breakdown = true;
    r->breakdown_s = r->waiting_s = p->profiled_seconds;
    for (int stage = 0; stage < PROFILE_STAGES; stage++) {
        r->breakdown[stage].seconds = p->stage_seconds[stage];
        r->waiting_s -= p->stage_seconds[stage];
        if (stage == PROFILE_HEADS) continue;
        r->breakdown[stage].gflop = 1e-9 * p->cost.stage[stage].flops;
        r->breakdown[stage].bytes = p->cost.stage[stage].bytes;
    }
    r->waiting_s = fmax(0, r->waiting_s);
}

/* Takes the point's samples. */
static deberta_status fill_result(bench_result *r, const sweep *s, sweep_point *p, const machine_roofs *roofs,
                                  deberta_error *err)
{
    *r = (bench_result){
        .engine = "deberta",
        .precision = "float32",
        .position_cache = p->position_cache,
        .cold = s->options->cold,
        .threads = p->threads,
        .layers = p->layers,
        .n = p->longest,
        .batch = p->sequences,
        .tokens = p->tokens,
        .other_cores = p->counted > 0 ? p->others / p->counted : 0,
        .gflop = 1e-9 * p->cost.total.flops,
        .gflop_reachable = 1e-9 * p->cost.total.reachable_flops,
        .table_rows = p->cost.table_rows,
        .reachable_rows = p->cost.reachable_rows,
        .peak_rss_bytes = p->peak_rss_bytes,
        .workspace_bytes = p->workspace_bytes,
        .checksum = p->checksum,
    };
    snprintf(r->model, sizeof r->model, "%s", s->info.name);
    snprintf(r->isa, sizeof r->isa, "%s", deberta_isa_name(p->isa));
    snprintf(r->attention, sizeof r->attention, "%s", attention_terms_name(p->terms));
    r->samples = p->samples;
    p->samples = NULL;
    if (p->ragged) {
        r->lengths = p->lengths;
        p->lengths = NULL;
    }
    DEBERTA_TRY(statistics_summarize(&r->time, r->samples, p->taken, err));
    r->gflops = r->gflop / r->time.median;
    r->tokens_per_s = (double)r->tokens / r->time.median;
    double peak = machine_peak_gflops(roofs, p->isa, p->threads);
    r->peak_fraction = peak > 0 ? r->gflops / peak : 0;
    if (p->profiled) fill_breakdown(r, p);
    return DEBERTA_OK;
}

static bool same_batch(const sweep_point *a, const sweep_point *b)
{
    return a->sequences == b->sequences && memcmp(a->lengths, b->lengths, a->sequences * sizeof *a->lengths) == 0;
}

/* Tier, threads and the position cache must not change a bit. */
static void check_agreement(const sweep *s, bench_report *report)
{
    for (size_t i = 0; i < s->list.count; i++) {
        const sweep_point *p = &s->list.points[i];
        char where[160];
        sweep_point_describe(p, where, sizeof where);
        if (p->varies) {
            machine_note(&report->sheet, "repetitions gave different outputs: %.120s", where);
            report->disagreements++;
        }
        for (size_t j = 0; j < i; j++) {
            const sweep_point *q = &s->list.points[j];
            if (p->layers != q->layers || p->terms != q->terms || !same_batch(p, q)) continue;
            if (p->checksum != q->checksum && p->workspace_bytes && q->workspace_bytes) {
                machine_note(&report->sheet, "output differs from another tier's or number of threads': %.100s", where);
                report->disagreements++;
            }
            break;
        }
    }
}

#define SCATTER 0.03

static void note_scatter(bench_report *report)
{
    size_t scattered = 0;
    for (size_t i = 0; i < report->count; i++)
        scattered += report->results[i].time.mad > SCATTER * report->results[i].time.median;
    if (scattered) {
        machine_note(&report->sheet,
                     "times of %zu of %zu points scatter by more than %.0f %% (median absolute deviation)", scattered,
                     report->count, 100 * SCATTER);
    }
}

static deberta_status collect(const sweep *s, bench_report *report, deberta_error *err)
{
    report->results = calloc(s->list.count ? s->list.count : 1, sizeof *report->results);
    if (!report->results) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for %zu results", s->list.count);
    for (size_t i = 0; i < s->list.count; i++) {
        if (s->list.points[i].taken == 0) continue; /* stopped before its turn */
        bench_result *r = &report->results[report->count++];
        DEBERTA_TRY(fill_result(r, s, &s->list.points[i], &report->sheet.roofs, err));
    }
    return DEBERTA_OK;
}

/* -------------------------------------------------------------------------------------------------------- the whole */

/* What has to be loaded; 0: all. */
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
        .memory_limit_bytes = s->options->memory_limit_bytes,
        .layers = most_layers(s->options),
    };
    model_internal_options internal = {.keep_position_projections = s->options->position_cache_off};
    DEBERTA_TRY(model_open_internal(&s->model, s->options->model, &options, &internal, err));
    deberta_model_describe(s->model, &s->info);
    return DEBERTA_OK;
}

static deberta_status make_input(sweep *s, deberta_error *err)
{
    size_t tokens = 1, sequences = 1;
    for (size_t i = 0; i < s->list.count; i++) {
        if (s->list.points[i].tokens > tokens) tokens = s->list.points[i].tokens;
        if (s->list.points[i].sequences > sequences) sequences = s->list.points[i].sequences;
    }
    s->ids = calloc(tokens, sizeof *s->ids);
    s->starts = calloc(sequences + 1, sizeof *s->starts);
    if (!s->ids || !s->starts) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for %zu tokens", tokens);
    for (size_t i = 0; i < tokens; i++) s->ids[i] = (int32_t)(next_random(s) % s->info.vocabulary_size);
    return DEBERTA_OK;
}

/* Limits of every number of threads that occurs, for the tiers that occur; bandwidth once, it is only for the sheet. */
static deberta_status measure_roofs(sweep *s, machine_sheet *sheet, deberta_error *err)
{
    size_t threads[MACHINE_MAX_ROOFS], count = 0;
    unsigned tiers = 1u << deberta_isa_best();
    if (s->options->skip_roofs) return DEBERTA_OK;
    for (size_t i = 0; i < s->list.count; i++) {
        const sweep_point *p = &s->list.points[i];
        size_t known = 0;
        tiers |= 1u << p->isa;
        while (known < count && threads[known] != p->threads) known++;
        if (known == count && count < MACHINE_MAX_ROOFS) threads[count++] = p->threads;
    }
    return machine_measure_roofs(&sheet->roofs, threads, count, tiers, true, err);
}

static deberta_status run(sweep *s, bench_report *report, deberta_error *err)
{
    tell(s, "opening the model", false);
    DEBERTA_TRY(open_model(s, err));
    report->load_peak_rss_bytes = peak_resident_bytes();
    DEBERTA_TRY(sweep_points_make(&s->list, s->options, &s->info, report->sheet.topology.usable_cores, err));
    DEBERTA_TRY(make_input(s, err));
    tell(s, "limits of the machine", false);
    DEBERTA_TRY(measure_roofs(s, &report->sheet, err));
    DEBERTA_TRY(probe_all(s, err));
    if (s->options->cold) DEBERTA_TRY(prepare_cold(s, &report->sheet.topology, err));
    machine_counters before = machine_read_counters();
    DEBERTA_TRY(sample_all(s, err));
    machine_finish_sheet(&report->sheet, &before);
    if (s->options->breakdown) DEBERTA_TRY(profile_all(s, err));
    check_agreement(s, report);
    DEBERTA_TRY(collect(s, report, err));
    note_scatter(report);
    if (s->stopped) machine_note(&report->sheet, "stopped before the end");
    return DEBERTA_OK;
}

deberta_status sweep_run(bench_report *report, const sweep_options *options, deberta_error *err)
{
    sweep s = {
        .options = options,
        .repetitions = options->repetitions ? options->repetitions : SWEEP_DEFAULT_REPETITIONS,
        .min_seconds = options->min_seconds < 0 ? SWEEP_DEFAULT_MIN_SECONDS : options->min_seconds,
        .random = options->seed ^ 0x9E3779B97F4A7C15,
        .began = timer_now(),
    };
    if (s.random == 0) s.random = 1;
    *report = (bench_report){0};
    deberta_status status = machine_read_sheet(&report->sheet, err);
    if (status == DEBERTA_OK) status = run(&s, report, err);
    thread_pool_free(&s.evictor);
    arena_release(&s.waste_memory);
    free(s.ids);
    free(s.starts);
    sweep_points_free(&s.list);
    deberta_model_free(&s.model);
    if (status != DEBERTA_OK) bench_report_free(report);
    return status;
}
