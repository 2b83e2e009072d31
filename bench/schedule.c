/* An encode is rehearsed for each number of threads, and the loops' spans, the rest and the price of starts are added
 * up.
 *
 * SPDX-License-Identifier: MIT */
#include "bench/schedule.h"

#include <math.h>
#include <sched.h>
#include <stdatomic.h>

#include "bench/rehearsal.h"
#include "bench/timer.h"
#include "core/base/topology.h"
#include "core/model/linear.h"
#include "core/model/session_internal_options.h"

enum { DEFAULT_REPETITIONS = 5, LOOPS_OF_A_ROUND = 20 };

static const double start_seconds = 0.05; /* spent on the price of a loop */

static const size_t default_lengths[] = {128, 512}, default_threads[] = {1, 2, 4, 8, 16};

typedef struct schedule_work {
    const schedule_options *options;
    size_list lengths, threads; /* not owned */
    size_t repetitions, cores;
    deberta_model *model;
    deberta_model_info info;
    double start_of_one_thread; /* seconds that each thread adds to the price of a loop */
    int32_t *ids;
} schedule_work;

/* ---------------------------------------------------------------------------------------------- the price of a loop */

/* Each thread has one task, and none ends before all have begun: else the caller would do both before the other is
 * awake. */
typedef struct meeting {
    atomic_size_t arrived;
    size_t expected;
} meeting;

static void meet(void *context, size_t task, size_t worker)
{
    (void)task, (void)worker;
    meeting *m = context;
    atomic_fetch_add(&m->arrived, 1);
    while (atomic_load_explicit(&m->arrived, memory_order_relaxed) < m->expected) sched_yield();
}

static deberta_status measure_start(schedule_work *w, deberta_error *err)
{
    if (w->cores < 2) return DEBERTA_OK;
    executor *by = NULL;
    double best = INFINITY;
    DEBERTA_TRY(executor_create(&by, w->cores, false, NULL, err));
    for (double end = timer_now() + start_seconds, begin; (begin = timer_now()) < end;) {
        for (size_t loop = 0; loop < LOOPS_OF_A_ROUND; loop++) {
            meeting m = {.expected = w->cores};
            parallel_for(by, w->cores, meet, &m);
        }
        best = fmin(best, (timer_now() - begin) / LOOPS_OF_A_ROUND);
    }
    executor_free(&by);
    w->start_of_one_thread = best / (double)w->cores;
    return DEBERTA_OK;
}

/* --------------------------------------------------------------------------------------------------------- a length */

/* by: NULL for threads of its own. */
static deberta_status open_session(const schedule_work *w, size_t n, size_t threads, executor *by,
                                   deberta_session **session, deberta_error *err)
{
    deberta_session_options options = {
        .struct_size = sizeof options,
        .isa = w->options->isa,
        .max_tokens = n,
        .threads = threads,
        .memory_limit_bytes = w->options->memory_limit_bytes,
    };
    session_internal_options internal = {.executor = by};
    return session_create_within(session, w->model, &options, &internal, 0, err);
}

static deberta_status encode(const schedule_work *w, deberta_session *session, size_t n, double *seconds,
                             deberta_error *err)
{
    deberta_batch batch = {
        .struct_size = sizeof batch, .ids = w->ids, .sequence_starts = (size_t[]){0, n}, .sequences = 1};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    double begin = timer_now();
    deberta_status status = deberta_encode(session, &batch, &outputs, err);
    *seconds = timer_now() - begin;
    return status;
}

/* The fastest of real encodes. */
static deberta_status measure(const schedule_work *w, size_t n, size_t threads, double *seconds, deberta_error *err)
{
    deberta_session *session = NULL;
    DEBERTA_TRY(open_session(w, n, threads, NULL, &session, err));
    deberta_status status = encode(w, session, n, seconds, err); /* pages and caches: not counted */
    *seconds = INFINITY;
    for (size_t r = 0; r < w->repetitions && status == DEBERTA_OK; r++) {
        double taken;
        status = encode(w, session, n, &taken, err);
        *seconds = fmin(*seconds, taken);
    }
    deberta_session_free(&session);
    return status;
}

static deberta_status rehearse(const schedule_work *w, schedule_point *point, deberta_error *err)
{
    loop_rehearsal rehearsal = {0};
    executor *by = NULL;
    deberta_session *session = NULL;
    double seconds;
    point->start = point->threads > 1 ? w->start_of_one_thread * (double)point->threads : 0;
    point->seconds = INFINITY;
    DEBERTA_TRY(rehearsal_create(&by, point->threads, &rehearsal, err));
    deberta_status status = open_session(w, point->n, point->threads, by, &session, err);
    if (status == DEBERTA_OK) status = encode(w, session, point->n, &seconds, err); /* not counted */
    for (size_t r = 0; r < w->repetitions && status == DEBERTA_OK; r++) {
        rehearsal = (loop_rehearsal){0};
        status = encode(w, session, point->n, &seconds, err);
        double serial = seconds - rehearsal.busy_seconds;
        double total = serial + rehearsal.span_seconds + (double)rehearsal.loops * point->start;
        if (total >= point->seconds) continue;
        point->loops = rehearsal.loops;
        point->tasks = rehearsal.tasks;
        point->serial = serial;
        point->busy = rehearsal.busy_seconds;
        point->span = rehearsal.span_seconds;
        point->seconds = total;
    }
    deberta_session_free(&session);
    executor_free(&by);
    return status;
}

/* The matrices of all layers. */
static double weight_bytes(const deberta_model_info *info)
{
    double h = (double)info->hidden_size, f = (double)info->intermediate_size;
    return (double)info->layers * (4 * h * h + 2 * h * f) * sizeof(float);
}

static deberta_status run_length(const schedule_work *w, size_t n, schedule_result *result, deberta_error *err)
{
    double alone;
    DEBERTA_TRY(measure(w, n, 1, &alone, err));
    for (size_t t = 0; t < w->threads.count; t++) {
        schedule_point *p = &result->points[result->count++];
        *p = (schedule_point){.n = n, .threads = w->threads.values[t]};
        DEBERTA_TRY(rehearse(w, p, err));
        if (p->threads == 1)
            p->measured = alone;
        else if (p->threads <= w->cores)
            DEBERTA_TRY(measure(w, n, p->threads, &p->measured, err));
        p->efficiency = alone / ((double)p->threads * p->seconds);
        double readers = n >= LINEAR_ROW_SPLIT * p->threads ? (double)p->threads : 1;
        p->weights_gbs = 1e-9 * readers * weight_bytes(&w->info) / p->seconds;
    }
    return DEBERTA_OK;
}

/* ------------------------------------------------------------------------------------------------------------- all */

static deberta_status prepare(schedule_work *w, schedule_result *result, deberta_error *err)
{
    topology_info machine;
    size_t longest = 0;
    deberta_model_options options = {
        .struct_size = sizeof options,
        .reference = w->options->reference,
        .precision = w->options->precision,
        .memory_limit_bytes = w->options->memory_limit_bytes,
    };
    DEBERTA_TRY(topology_read(&machine, err));
    w->cores = machine.usable_cores;
    DEBERTA_TRY(deberta_model_open(&w->model, w->options->model, &options, err));
    w->info = *deberta_model_describe(w->model);
    for (size_t i = 0; i < w->lengths.count; i++)
        if (w->lengths.values[i] > longest) longest = w->lengths.values[i];
    w->ids = scope_take(&result->memory, longest, sizeof *w->ids);
    result->points = scope_take(&result->memory, w->lengths.count * w->threads.count, sizeof *result->points);
    for (size_t i = 0; i < longest; i++) w->ids[i] = (int32_t)(i * 7919 % w->info.vocabulary_size);
    return measure_start(w, err);
}

deberta_status schedule_run(schedule_result *result, const schedule_options *options, deberta_error *err)
{
    *result = (schedule_result){0};
    size_list lengths = {.values = (size_t *)default_lengths, .count = 2};
    size_list threads = {.values = (size_t *)default_threads, .count = 5};
    schedule_work w = {
        .options = options,
        .lengths = options->lengths.count ? options->lengths : lengths,
        .threads = options->threads.count ? options->threads : threads,
        .repetitions = options->repetitions ? options->repetitions : DEFAULT_REPETITIONS,
    };
    deberta_status status = prepare(&w, result, err);
    for (size_t i = 0; i < w.lengths.count && status == DEBERTA_OK; i++)
        status = run_length(&w, w.lengths.values[i], result, err);
    deberta_model_free(&w.model);
    return status;
}

void schedule_describe(result *r, const schedule_result *found)
{
    static const result_column columns[] = {{"n", NULL, COLUMN_INTEGER, NULL, 0},
                                            {"threads", NULL, COLUMN_INTEGER, NULL, 0},
                                            {"loops", NULL, COLUMN_INTEGER, NULL, 0},
                                            {"tasks", NULL, COLUMN_INTEGER, NULL, 0},
                                            {"serial_ms", "serial ms", COLUMN_REAL, "%.2f", CSV_SAYS_TITLE},
                                            {"busy_ms", "busy ms", COLUMN_REAL, "%.2f", CSV_SAYS_TITLE},
                                            {"span_ms", "span ms", COLUMN_REAL, "%.2f", CSV_SAYS_TITLE},
                                            {"starts_ms", "starts ms", COLUMN_REAL, "%.2f", CSV_SAYS_TITLE},
                                            {"time_ms", "time ms", COLUMN_REAL, "%.2f", CSV_SAYS_TITLE},
                                            {"measured_ms", "measured ms", COLUMN_REAL, "%.2f", CSV_SAYS_TITLE},
                                            {"speed_up", "speed-up", COLUMN_REAL, "%.2f", CSV_SAYS_TITLE},
                                            {"efficiency_percent", "efficiency %", COLUMN_REAL, "%.1f", CSV_SAYS_TITLE},
                                            {"weights_gbs", "weights GB/s", COLUMN_REAL, "%.1f", CSV_SAYS_TITLE},
                                            {.name = NULL}};
    result_table *table = result_add_table(r, "points", NULL, columns);
    for (size_t i = 0; i < found->count; i++) {
        const schedule_point *p = &found->points[i];
        cell_integer(table, (int64_t)p->n);
        cell_integer(table, (int64_t)p->threads);
        cell_integer(table, (int64_t)p->loops);
        cell_integer(table, (int64_t)p->tasks);
        cell_real(table, 1e3 * p->serial);
        cell_real(table, 1e3 * p->busy);
        cell_real(table, 1e3 * p->span);
        cell_real(table, 1e3 * (double)p->loops * p->start);
        cell_real(table, 1e3 * p->seconds);
        cell_positive(table, 1e3 * p->measured);
        cell_real(table, p->efficiency * (double)p->threads);
        cell_real(table, 100 * p->efficiency);
        cell_real(table, p->weights_gbs);
    }
}
