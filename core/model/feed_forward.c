/* From the context rows to the layer's output: output projection, norm, both matrices, norm.
 * SPDX-License-Identifier: MIT */
#include "core/model/feed_forward.h"

#include <string.h>

#include "core/model/activation.h"
#include "core/model/linear.h"

/* One layer over some rows, in whole (the products are then those of a block of rows) or in blocks. */
typedef struct feed_forward_job {
    deberta_session *session;
    const model_layer *layer;
    size_t rows, parts; /* parts: of the loop at hand */
    linear_product output, first, second;
    activation separate;       /* an activation that the product does not apply itself */
    const dropout_plan *drops; /* NULL, or the residuals are added behind dropout */
    size_t start;              /* number of the first row */
    float *x, *normed, *inner; /* what the norms write, and what `second` reads */
} feed_forward_job;

/* The sums before the norms, and what comes before the activation, stay where they are recorded. */
static void record_job(feed_forward_job *job, size_t start)
{
    const deberta_session *s = job->session;
    if (!s->recording) return;
    job->output.c = s->recording->attention_sum + start * s->normed_stride;
    job->first.c = s->recording->inner + start * s->inner_stride;
    job->first.gelu = false;
    job->separate = s->model->config.hidden_activation;
    job->second.c = s->recording->output_sum + start * s->hidden_stride;
    job->drops = s->internal.record->dropout;
    job->start = start;
    if (!job->drops) return;
    job->output.residual = NULL;
    job->second.residual = NULL;
}

/* Rows [first, first + rows) of a product without its residual. */
static void drop_and_add(const feed_forward_job *job, dropout_site site, const linear_product *product,
                         const float *residual, size_t ld_residual, size_t first, size_t rows)
{
    const deberta_session *s = job->session;
    const layer_record *record = s->recording;
    const size_t hidden = s->model->config.hidden_size;
    float *to = product->c + first * product->ldc;
    if (!job->drops) return;
    const dropout_place place = {.site = site, .layer = record->layer, .pass = record->pass, .tokens = record->tokens};
    dropout_rows(&s->kernels, job->drops, &place, to, product->ldc, hidden, job->start + first, rows);
    for (size_t i = 0; i < rows; i++)
        for (size_t e = 0; e < hidden; e++) to[i * product->ldc + e] += residual[(first + i) * ld_residual + e];
}

/* Rows from `start` on: context ... inner point at the first of them. */
static feed_forward_job make_job(deberta_session *s, const model_layer *layer, size_t start, size_t rows,
                                 const float *context, float *x, float *normed, float *inner, void *scratch)
{
    activation function = s->model->config.hidden_activation;
    feed_forward_job job = {.session = s, .layer = layer, .rows = rows, .x = x, .normed = normed, .inner = inner};
    job.output = linear_plain(&layer->attention_output, rows, context, s->context_stride, normed, s->normed_stride);
    job.output.residual = x;
    job.output.ld_residual = s->hidden_stride;
    job.output.follows = &layer->intermediate;
    job.first = linear_plain(&layer->intermediate, rows, normed, s->normed_stride, inner, s->inner_stride);
    job.first.gelu = function == ACTIVATION_GELU;
    job.first.follows = &layer->output;
    job.separate = job.first.gelu ? ACTIVATION_NONE : function;
    job.second = linear_plain(&layer->output, rows, inner, s->inner_stride, x, s->hidden_stride);
    job.second.residual = normed;
    job.second.ld_residual = s->normed_stride;
    job.output.scratch = job.first.scratch = job.second.scratch = scratch;
    if (layer + 1 < s->model->layers + s->model->config.layers) job.second.follows = &layer[1].qkv;
    record_job(&job, start);
    return job;
}

/* y may be x. */
static void norm_rows(const deberta_session *s, const layer_norm *norm, const float *x, float *y, size_t ld,
                      size_t rows)
{
    const model_config *config = &s->model->config;
    s->kernels.layernorm_f32(y, ld, x, ld, norm->gamma, norm->beta, rows, config->hidden_size, config->layer_norm_eps);
}

/* The activation where the product has not applied it: in place, or behind what is recorded. */
static void activate_inner(const feed_forward_job *job, size_t start, size_t rows)
{
    const deberta_session *s = job->session;
    const float *from = job->first.c + start * s->inner_stride;
    float *to = job->inner + start * s->inner_stride;
    if (from != to) memcpy(to, from, rows * s->inner_stride * sizeof *to);
    activate_rows(&s->kernels, job->separate, to, s->inner_stride, rows, s->model->config.intermediate_size);
}

/* ---------------------------------------------------------------------------------------- many rows: block by block */

/* All five steps over one block: what lies between them, f floats a row, never leaves this thread's cache. */
static void block_task(void *context, size_t part, size_t worker)
{
    const feed_forward_job *whole = context;
    deberta_session *s = whole->session;
    const kernels *table = &s->kernels;
    const profile *times = session_profiling(s);
    double time = profile_start(times);
    size_t start = part_start(whole->rows, whole->parts, part),
           rows = part_start(whole->rows, whole->parts, part + 1) - start;
    float *x = whole->x + start * s->hidden_stride, *normed = whole->normed + start * s->normed_stride;
    feed_forward_job job = make_job(s, whole->layer, start, rows, whole->output.a + start * s->context_stride, x,
                                    normed, s->workers[worker].inner, s->workers[worker].integers);

    linear_run(table, &job.output);
    drop_and_add(&job, DROPOUT_ATTENTION, &job.output, x, s->hidden_stride, 0, rows);
    norm_rows(s, &job.layer->attention_norm, job.output.c, normed, s->normed_stride, rows);
    time = profile_lap(times, worker, PROFILE_ATTENTION_OUTPUT, time);
    linear_run(table, &job.first);
    activate_inner(&job, 0, rows);
    linear_run(table, &job.second);
    drop_and_add(&job, DROPOUT_FEED_FORWARD, &job.second, normed, s->normed_stride, 0, rows);
    norm_rows(s, &job.layer->output_norm, job.second.c, x, s->hidden_stride, rows);
    profile_lap(times, worker, PROFILE_FEED_FORWARD, time);
}

/* ------------------------------------------------------------------------------------------- few rows: step by step */

static void for_rows(feed_forward_job *job, parallel_body body)
{
    enum { PARTS_PER_THREAD = 2 };
    job->parts = minimum(job->rows, PARTS_PER_THREAD * job->session->threads);
    parallel_for(job->session->executor, job->parts, body, job);
}

static void first_norm_task(void *context, size_t part, size_t worker)
{
    (void)worker;
    const feed_forward_job *job = context;
    size_t start = part_start(job->rows, job->parts, part), rows = part_start(job->rows, job->parts, part + 1) - start;
    drop_and_add(job, DROPOUT_ATTENTION, &job->output, job->x, job->session->hidden_stride, start, rows);
    norm_rows(job->session, &job->layer->attention_norm, job->output.c + start * job->output.ldc,
              job->normed + start * job->output.ldc, job->output.ldc, rows);
}

static void second_norm_task(void *context, size_t part, size_t worker)
{
    (void)worker;
    const feed_forward_job *job = context;
    size_t start = part_start(job->rows, job->parts, part), rows = part_start(job->rows, job->parts, part + 1) - start;
    drop_and_add(job, DROPOUT_FEED_FORWARD, &job->second, job->normed, job->session->normed_stride, start, rows);
    norm_rows(job->session, &job->layer->output_norm, job->second.c + start * job->second.ldc,
              job->x + start * job->second.ldc, job->second.ldc, rows);
}

static void activate_task(void *context, size_t part, size_t worker)
{
    (void)worker;
    const feed_forward_job *job = context;
    size_t start = part_start(job->rows, job->parts, part), rows = part_start(job->rows, job->parts, part + 1) - start;
    activate_inner(job, start, rows);
}

static void run_steps(feed_forward_job *job)
{
    deberta_session *s = job->session;
    const profile *times = session_profiling(s);
    double time = profile_start(times);
    linear_run_parallel(&s->kernels, s->executor, &job->output, 1);
    for_rows(job, first_norm_task);
    time = profile_lap_all(times, PROFILE_ATTENTION_OUTPUT, time);
    linear_run_parallel(&s->kernels, s->executor, &job->first, 1);
    if (job->separate != ACTIVATION_NONE || job->first.c != job->inner) for_rows(job, activate_task);
    linear_run_parallel(&s->kernels, s->executor, &job->second, 1);
    for_rows(job, second_norm_task);
    profile_lap_all(times, PROFILE_FEED_FORWARD, time);
}

void feed_forward_run(deberta_session *s, const model_layer *layer, size_t rows, const float *context, float *x)
{
    feed_forward_job job = make_job(s, layer, 0, rows, context, x, s->normed, s->inner, s->integers);
    if (rows >= LINEAR_ROW_SPLIT * s->threads) {
        job.parts = round_up(ceiling_divide(rows, LINEAR_MAX_ROWS), s->threads);
        parallel_for(s->executor, job.parts, block_task, &job);
    } else {
        run_steps(&job);
    }
}
