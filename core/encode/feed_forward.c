/* Computes a layer's output from its context rows: output projection, residual, layer norm, feed-forward (both matrices
 * and the activation), residual, layer norm.
 *
 * SPDX-License-Identifier: MIT */
#include "core/encode/encoder_parts.h"

#include <string.h>

#include "core/model/activation.h"
#include "core/model/linear.h"

/* The feed-forward of one layer, over all rows at once or over one block of them. */
struct feed_forward_job;
typedef void feed_forward_step(const struct feed_forward_job *job, size_t start, size_t rows);
typedef struct feed_forward_job {
    deberta_session *session;
    const model_layer *layer;
    size_t rows, parts;      /* parts: number of tasks of the current loop */
    feed_forward_step *step; /* function that the current loop calls */
    linear_product output, first, second;
    activation separate;       /* activation that the product does not apply itself */
    const dropout_plan *drops; /* dropout, after which the residuals are added; NULL: none */
    size_t start;              /* number of the first row in the batch */
    float *x, *normed, *inner; /* outputs of the norms, and the input of `second` */
} feed_forward_job;

/* Directs the sums before the norms, and the inputs of the activation, into the record. */
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

/* Applies dropout to rows [first, first + rows) of a product that has no residual, and then adds the residual. */
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

/* Describes the feed-forward of rows from `start` on; context ... inner point at the first of them. */
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

/* Normalises a product's rows into the same rows of y, which may be the same memory. */
static void norm_rows(const feed_forward_job *job, const layer_norm *norm, const linear_product *product, float *y,
                      size_t start, size_t rows)
{
    const deberta_session *s = job->session;
    const model_config *config = &s->model->config;
    const size_t first = start * product->ldc;
    s->kernels.layernorm_f32(y + first, product->ldc, product->c + first, product->ldc, norm->gamma, norm->beta, rows,
                             config->hidden_size, config->layer_norm_eps);
}

/* These functions finish each product, for rows [start, start + rows) of the job. The first one adds the residual after
 * attention and normalises. */
static void end_attention(const feed_forward_job *job, size_t start, size_t rows)
{
    drop_and_add(job, DROPOUT_ATTENTION, &job->output, job->x, job->session->hidden_stride, start, rows);
    norm_rows(job, &job->layer->attention_norm, &job->output, job->normed, start, rows);
}

/* Applies the activation where the product has not: in place, or to a copy of the recorded rows. */
static void activate_inner(const feed_forward_job *job, size_t start, size_t rows)
{
    const deberta_session *s = job->session;
    const float *from = job->first.c + start * s->inner_stride;
    float *to = job->inner + start * s->inner_stride;
    if (from != to) memcpy(to, from, rows * s->inner_stride * sizeof *to);
    activate_rows(&s->kernels, job->separate, to, s->inner_stride, rows, s->model->config.intermediate_size);
}

static void end_layer(const feed_forward_job *job, size_t start, size_t rows)
{
    drop_and_add(job, DROPOUT_FEED_FORWARD, &job->second, job->normed, job->session->normed_stride, start, rows);
    norm_rows(job, &job->layer->output_norm, &job->second, job->x, start, rows);
}

/* ---------------------------------------------------------------------------------------- many rows: block by block */

/* Runs all five steps over one block, so that the f floats per row between them never leave this thread's cache. */
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
    end_attention(&job, 0, rows);
    time = profile_lap(times, worker, PROFILE_ATTENTION_OUTPUT, time);
    linear_run(table, &job.first);
    activate_inner(&job, 0, rows);
    linear_run(table, &job.second);
    end_layer(&job, 0, rows);
    profile_lap(times, worker, PROFILE_FEED_FORWARD, time);
}

/* ------------------------------------------------------------------------------------------- few rows: step by step */

static void step_task(void *context, size_t part, size_t worker)
{
    const feed_forward_job *job = context;
    const size_t start = part_start(job->rows, job->parts, part);
    (void)worker;
    job->step(job, start, part_start(job->rows, job->parts, part + 1) - start);
}

static void for_rows(feed_forward_job *job, feed_forward_step *step)
{
    enum { PARTS_PER_THREAD = 2 };
    job->parts = minimum(job->rows, PARTS_PER_THREAD * job->session->threads);
    job->step = step;
    parallel_for(job->session->executor, job->parts, step_task, job);
}

static void run_steps(feed_forward_job *job)
{
    deberta_session *s = job->session;
    const profile *times = session_profiling(s);
    double time = profile_start(times);
    linear_run_parallel(&s->kernels, s->executor, &job->output, 1);
    for_rows(job, end_attention);
    time = profile_lap_all(times, PROFILE_ATTENTION_OUTPUT, time);
    linear_run_parallel(&s->kernels, s->executor, &job->first, 1);
    if (job->separate != ACTIVATION_NONE || job->first.c != job->inner) for_rows(job, activate_inner);
    linear_run_parallel(&s->kernels, s->executor, &job->second, 1);
    for_rows(job, end_layer);
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
