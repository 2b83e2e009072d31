/* Runs the points of a sweep: in a child process, which reads its own peak of memory; then for time, which
 * sweep_results.c turns into tokens and FLOPs a second; then for stages.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/child.h"
#include "bench/hidden_checksum.h"
#include "bench/sweep_work.h"
#include "bench/timer.h"
#include "core/base/numbers.h"
#include "core/base/text.h"
#include "output/scope.h"

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
        .max_tokens = p->result.tokens,
        .threads = p->result.threads,
        .memory_limit_bytes = s->options->memory_limit_bytes,
        .pin_threads = s->options->pin_threads,
    };
    session_internal_options internal = {
        .terms = p->terms,
        .layers = p->result.layers,
        .recompute_positions = !p->result.position_cache,
        .profile = profile,
    };
    return session_create_within(session, s->model, &options, &internal, 0, err);
}

static deberta_status sweep_encode(const sweep *s, const sweep_point *p, deberta_session *session,
                                   deberta_outputs *outputs, double *seconds, deberta_error *err)
{
    deberta_batch batch = {
        .struct_size = sizeof batch,
        .ids = s->ids,
        .sequence_starts = s->starts,
        .sequences = p->result.batch,
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
    for (size_t i = 0; i < p->result.batch; i++) s->starts[i + 1] = s->starts[i] + p->lengths[i];
}

static uint64_t checksum_of(const sweep *s, const sweep_point *p, const deberta_outputs *outputs)
{
    return hidden_checksum(outputs, 0, p->result.tokens, s->info.hidden_size);
}

/* ----------------------------------------------------------------------------------------------- memory, in a child */

typedef struct probe_request {
    const sweep *sweep;
    const sweep_point *point;
} probe_request;

typedef struct probe_answer {
    size_t peak_rss_bytes, workspace_bytes, huge_page_bytes;
    uint64_t checksum;
    double seconds;
} probe_answer;

/* Reads VmHWM, the peak memory of this process. A new process begins with its parent's at the fork. */
size_t sweep_peak_resident_bytes(void)
{
    char line[256];
    size_t kibibytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "VmHWM: %zu", &kibibytes) == 1) break;
    }
    stream_discard(file);
    return kibibytes << 10;
}

static deberta_status probe(const void *context, void *answer, deberta_error *err)
{
    const probe_request *request = context;
    probe_answer *found = answer;
    deberta_session *session = NULL;
    deberta_outputs outputs;
    DEBERTA_TRY(open_session(request->sweep, request->point, false, &session, err));
    deberta_status status = sweep_encode(request->sweep, request->point, session, &outputs, &found->seconds, err);
    if (status == DEBERTA_OK) {
        found->peak_rss_bytes = sweep_peak_resident_bytes();
        found->workspace_bytes = deberta_session_memory_bytes(session);
        found->huge_page_bytes = machine_huge_page_bytes();
        found->checksum = checksum_of(request->sweep, request->point, &outputs);
    }
    deberta_session_free(&session);
    return status;
}

deberta_status sweep_probe_all(sweep *s, deberta_error *err)
{
    for (size_t i = 0; i < s->list.count && !s->stopped; i++) {
        sweep_point *p = &s->list.points[i];
        deberta_error inner = {0};
        probe_answer answer = {0};
        sweep_tell(s, "memory", p);
        set_starts(s, p);
        probe_request request = {.sweep = s, .point = p};
        deberta_status status =
            child_run(probe, &request, &answer, sizeof answer, "an encode in its own process", &inner);
        if (status != DEBERTA_OK) return fail_at(p, status, &inner, err);
        p->result.peak_rss_bytes = answer.peak_rss_bytes;
        p->result.workspace_bytes = answer.workspace_bytes;
        p->result.checksum = answer.checksum;
        s->huge_page_bytes = maximum(s->huge_page_bytes, answer.huge_page_bytes);
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

/* Overwrites the caches with all threads of the machine, because second-level caches belong to cores. */
static void empty_caches(const sweep *s)
{
    if (s->evictor) parallel_for(s->evictor, s->waste_blocks, waste_block, s->waste);
}

/* Allocates twice the caches together, at least 64 MiB, at most 1 GiB, since a guest may see the whole cache of its
 * host. */
deberta_status sweep_prepare_cold(sweep *s, const topology_info *machine, deberta_error *err)
{
    size_t mebibyte = (size_t)1 << 20;
    size_t bytes = 2 * topology_cache_bytes(machine);
    if (bytes < 64 * mebibyte) bytes = 64 * mebibyte;
    if (bytes > 1024 * mebibyte) bytes = 1024 * mebibyte;
    s->waste_blocks = bytes / WASTE_BLOCK_BYTES;
    arena_take(&s->waste_memory, s->waste_blocks, WASTE_BLOCK_BYTES);
    DEBERTA_TRY(arena_allocate(&s->waste_memory, "memory to empty the caches with", 0, err));
    s->waste = arena_take(&s->waste_memory, s->waste_blocks, WASTE_BLOCK_BYTES);
    return executor_create(&s->evictor, machine->usable_cores, false, machine, err);
}

/* ---------------------------------------------------------------------------------------------------------- samples */

/* Visits over which a point's samples are spread: many for quick points, few for slow ones, because each begins with
 * an uncounted encode. */
enum { VISITS = 7, VISITS_OF_SLOW_POINTS = 3 };
#define SLOW_SECONDS 0.1

/* Makes room for so many samples, and keeps those already taken. */
static void make_room(const sweep *s, sweep_point *p, size_t wanted)
{
    bench_result *r = &p->result;
    double *samples = scope_take(s->list.memory, wanted, sizeof *samples),
           *at = scope_take(s->list.memory, wanted, sizeof *at);
    size_t *visit = scope_take(s->list.memory, wanted, sizeof *visit);
    if (p->taken) {
        memcpy(samples, r->samples, p->taken * sizeof *samples);
        memcpy(at, r->at, p->taken * sizeof *at);
        memcpy(visit, r->visit, p->taken * sizeof *visit);
    }
    r->samples = samples;
    r->at = at;
    r->visit = visit;
    p->wanted = wanted;
}

static void plan_samples(const sweep *s, sweep_point *p)
{
    double wanted = fmax((double)s->repetitions, fmin(ceil(s->min_seconds / p->estimate), SWEEP_MAX_SAMPLES));
    make_room(s, p, (size_t)wanted);
}

/* Plans more samples if the first encode, on which the plan is based, was slower than those that count. */
static void plan_more(const sweep *s, sweep_point *p)
{
    double seconds = 0;
    for (size_t i = 0; i < p->taken; i++) seconds += p->result.samples[i];
    if (p->taken < p->wanted || seconds >= s->min_seconds || p->wanted == SWEEP_MAX_SAMPLES) return;
    const double each = seconds / (double)p->taken, more = ceil((s->min_seconds - seconds) / each);
    const size_t wanted = (size_t)fmin((double)p->taken + fmax(more, 1), SWEEP_MAX_SAMPLES);
    make_room(s, p, wanted);
}

/* Adds a visit with so many encodes before its samples. */
static void add_visit(const sweep *s, sweep_point *p, size_t warm)
{
    bench_result *r = &p->result;
    if (r->visits % VISITS == 0) {
        size_t *more = scope_take(s->list.memory, r->visits + VISITS, sizeof *more);
        if (r->visits) memcpy(more, r->warm, r->visits * sizeof *more);
        r->warm = more;
    }
    r->warm[r->visits++] = warm;
}

static size_t samples_of_visit(const sweep_point *p)
{
    size_t visits = p->estimate > SLOW_SECONDS ? VISITS_OF_SLOW_POINTS : VISITS;
    size_t share = (p->wanted + visits - 1) / visits, left = p->wanted - p->taken;
    return share < left ? share : left;
}

/* Encodes without counting until times are steady, which warms up pages, caches and sleeping threads; once only
 * before cold measurements. */
static deberta_status warm_up(const sweep *s, const sweep_point *p, deberta_session *session, sweep_warmth *warm,
                              deberta_outputs *outputs, deberta_error *err)
{
    double seconds;
    do {
        DEBERTA_TRY(sweep_encode(s, p, session, outputs, &seconds, err));
    } while (!sweep_is_warm(warm, seconds) && !s->options->cold);
    return DEBERTA_OK;
}

static deberta_status take_sample(sweep *s, sweep_point *p, deberta_session *session, deberta_outputs *outputs,
                                  deberta_error *err)
{
    const size_t k = p->taken;
    if (s->options->cold) empty_caches(s);
    p->result.visit[k] = p->result.visits - 1;
    p->result.at[k] = timer_now() - s->began;
    DEBERTA_TRY(sweep_encode(s, p, session, outputs, &p->result.samples[k], err));
    p->taken++;
    return DEBERTA_OK;
}

static deberta_status take_samples(sweep *s, sweep_point *p, deberta_session *session, deberta_error *err)
{
    deberta_outputs outputs;
    sweep_warmth warm = {0};
    const sweep_slicer slicer = sweep_slicer_of(s, p, session, &p->slices);
    sweep_slice_reading(&slicer);
    DEBERTA_TRY(warm_up(s, p, session, &warm, &outputs, err));
    if (p->estimate == 0) {
        p->estimate = warm.fastest;
        plan_samples(s, p);
    }
    add_visit(s, p, warm.count);
    sweep_slice_products(&slicer, 0);
    machine_counters before = machine_read_counters();
    for (size_t left = samples_of_visit(p); left > 0 && !s->stopped; left--) {
        DEBERTA_TRY(take_sample(s, p, session, &outputs, err));
        sweep_slice_products(&slicer, p->result.samples[p->taken - 1]);
        if (p->estimate > SLOW_SECONDS) sweep_tell(s, "time", p);
    }
    machine_counters after = machine_read_counters();
    double wall = after.wall - before.wall;
    p->others += machine_activity_between(&before, &after).others * wall;
    p->counted += wall;
    sweep_slice_reading(&slicer);
    if (checksum_of(s, p, &outputs) != p->result.checksum) p->varies = true;
    plan_more(s, p);
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
        size_t j = (size_t)(sweep_random(s) % i), other = order[j];
        order[j] = order[i - 1];
        order[i - 1] = other;
    }
}

deberta_status sweep_sample_all(sweep *s, deberta_error *err)
{
    size_t *order = memory_take(s->list.count, sizeof *order);
    for (size_t i = 0; i < s->list.count; i++) order[i] = i;
    deberta_status status = DEBERTA_OK;
    for (bool again = true; again && status == DEBERTA_OK && !s->stopped;) {
        again = false;
        shuffle(s, order);
        for (size_t i = 0; i < s->list.count && status == DEBERTA_OK && !s->stopped; i++) {
            sweep_point *p = &s->list.points[order[i]];
            if (p->result.samples && p->taken == p->wanted) continue;
            sweep_tell(s, "time", p);
            if (!s->stopped) status = visit(s, p, err);
            again = true;
        }
    }
    free(order);
    return status;
}

/* ----------------------------------------------------------------------------------------------------------- stages */

/* Least and largest number of encodes that run with clocks on. The one whose time is nearest to the median without
 * clocks is reported, as a whole (medians of single stages would not add up to anything). If none is near, because of
 * other load, more are taken. */
enum { LEAST_PROFILED = 5, MOST_PROFILED = 60 };
#define NEAR_ENOUGH           0.03
#define MOST_PROFILED_SECONDS 5

/* Turns thread-seconds of a stage into a share of the wall time, by the number of threads. */
static void collect_stages(const profile *found, profiled_encode *one)
{
    for (size_t lane = 0; lane < found->threads; lane++) {
        for (int stage = 0; stage < PROFILE_STAGES; stage++)
            one->stage[stage] += found->lanes[lane].seconds[stage] / (double)found->threads;
        for (int part = 0; part < PROFILE_PARTS; part++)
            one->part[part] += found->lanes[lane].parts[part] / (double)found->threads;
    }
}

static deberta_status profile_once(const sweep *s, const sweep_point *p, deberta_session *session, profiled_encode *one,
                                   deberta_error *err)
{
    deberta_outputs outputs;
    profile *found = session_profile(session);
    *one = (profiled_encode){0};
    memset(found->lanes, 0, found->threads * sizeof *found->lanes);
    if (s->options->cold) empty_caches(s);
    DEBERTA_TRY(sweep_encode(s, p, session, &outputs, &one->seconds, err));
    collect_stages(found, one);
    return DEBERTA_OK;
}

static deberta_status profile_session(sweep *s, sweep_point *p, deberta_session *session, deberta_error *err)
{
    statistics_summary time;
    profiled_encode one, best = {0};
    double spent = 0;
    if (!session_profile(session)) DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "this session keeps no times of stages");
    statistics_summarize(&time, p->result.samples, p->taken);
    const sweep_slicer slicer = sweep_slicer_of(s, p, session, &p->profiled_slices);
    sweep_slice_reading(&slicer);
    sweep_warmth warm = {0};
    do {
        DEBERTA_TRY(profile_once(s, p, session, &one, err)); /* warm-up encodes */
    } while (!sweep_is_warm(&warm, one.seconds) && !s->options->cold);
    sweep_slice_products(&slicer, 0);
    for (size_t k = 0; k < MOST_PROFILED; k++) {
        const bool is_near = fabs(best.seconds / time.median - 1) <= NEAR_ENOUGH;
        if (k >= LEAST_PROFILED && (is_near || spent > MOST_PROFILED_SECONDS)) break;
        DEBERTA_TRY(profile_once(s, p, session, &one, err));
        spent += one.seconds;
        sweep_slice_products(&slicer, one.seconds);
        if (k == 0 || fabs(one.seconds - time.median) < fabs(best.seconds - time.median)) best = one;
    }
    sweep_slice_reading(&slicer);
    p->profiled = best;
    return DEBERTA_OK;
}

deberta_status sweep_profile_all(sweep *s, deberta_error *err)
{
    for (size_t i = 0; i < s->list.count && !s->stopped; i++) {
        sweep_point *p = &s->list.points[i];
        deberta_session *session = NULL;
        deberta_error inner = {0};
        if (p->taken == 0) continue;
        sweep_tell(s, "stages", p);
        set_starts(s, p);
        deberta_status status = open_session(s, p, true, &session, &inner);
        if (status == DEBERTA_OK) status = profile_session(s, p, session, &inner);
        deberta_session_free(&session);
        if (status != DEBERTA_OK) return fail_at(p, status, &inner, err);
    }
    return DEBERTA_OK;
}
