/* SPDX-License-Identifier: MIT */
#include "train/sift.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIFT_EPSILON   1e-7f /* of the norm without gain */
#define SIFT_STEP      1e-4f
#define SIFT_DEVIATION 0.01 /* of the start of the ascent */
#define SIFT_MOST      0.02
#define SIFT_SMALL     1e-6f /* so that no gradient is no division by 0 */

typedef struct sift_run {
    learner *learner;
    step_batch doubled;
    bool *moved;         /* [2 tokens] */
    float *sums;         /* [2 tokens][hidden_stride]: embeddings before their norm */
    float *delta;        /* [2 tokens][h]: zeros for clean tokens */
    float *ones, *zeros; /* [h] */
    bool ascending, raw;
    counter_key key;
} sift_run;

/* -------------------------------------------------------------------------------------------------- the doubled batch */

/* Where the ascent begins, where the batch does not say: N(0, 0.01^2), cut at +-0.02. */
static void draw_delta(const counter_key *key, size_t sequence, size_t place, float *to, size_t width)
{
    for (size_t e = 0; e < width; e += COUNTER_WORDS) {
        const uint32_t counter[COUNTER_WORDS] = {(uint32_t)(e / COUNTER_WORDS), (uint32_t)place, (uint32_t)sequence,
                                                 (uint32_t)SITE_PERTURBING << COUNTER_SITE_SHIFT};
        uint32_t words[COUNTER_WORDS];
        philox4x32(counter, *key, words);
        for (size_t w = 0; w < COUNTER_WORDS && e + w < width; w++)
            to[e + w] = (float)fmax(-SIFT_MOST, fmin(SIFT_DEVIATION * counter_normal(words[w]), SIFT_MOST));
    }
}

static void copy_sequence(const sift_run *run, const step_batch *from, size_t sequence, size_t to, bool moved,
                          size_t width)
{
    step_batch *d = (step_batch *)&run->doubled;
    const size_t source = from->starts[sequence], n = from->starts[sequence + 1] - source, first = d->starts[to];
    d->starts[to + 1] = first + n;
    d->origin[to] = from->origin[sequence];
    if (d->sequence_labels) d->sequence_labels[to] = moved ? NOT_LABELLED : from->sequence_labels[sequence];
    if (d->targets) d->targets[to] = from->targets[sequence];
    memcpy(d->ids + first, from->ids + source, n * sizeof *d->ids);
    memcpy(d->mask + first, from->mask + source, n * sizeof *d->mask);
    if (d->token_types) memcpy(d->token_types + first, from->token_types + source, n * sizeof *d->token_types);
    if (d->positions) memcpy(d->positions + first, from->positions + source, n * sizeof *d->positions);
    for (size_t t = 0; t < n; t++) {
        d->labels[first + t] = moved ? NOT_LABELLED : from->labels[source + t];
        run->moved[first + t] = moved;
        float *delta = run->delta + (first + t) * width;
        if (moved && from->delta) memcpy(delta, from->delta + (source + t) * width, width * sizeof *delta);
        if (moved && !from->delta) draw_delta(&run->key, from->origin[sequence], t, delta, width);
    }
}

/* Dropout of the clean rows, of the ascent's and of the last ones is drawn anew. */
static void number_passes(sift_run *run)
{
    enum { PASS_CLEAN, PASS_ASCENT, PASS_FINAL };
    const step_batch *d = &run->doubled;
    for (size_t i = 0; i < d->sequences; i++)
        d->passes[i] = !run->moved[d->starts[i]] ? PASS_CLEAN : run->ascending ? PASS_ASCENT : PASS_FINAL;
}

static bool allocate(sift_run *run, const step_batch *batch)
{
    const size_t tokens = 2 * batch->tokens, sequences = 2 * batch->sequences,
                 width = run->learner->model->config.hidden_size;
    step_batch *d = &run->doubled;
    *d = (step_batch){.sequences = sequences,
                      .tokens = tokens,
                      .choices = batch->choices,
                      .questions = batch->questions,
                      .question_labels = batch->question_labels};
    d->starts = calloc(sequences + 1, sizeof *d->starts);
    d->shard_bounds = calloc(run->learner->options.parts + 1, sizeof *d->shard_bounds);
    d->origin = calloc(sequences, sizeof *d->origin);
    d->passes = calloc(sequences, sizeof *d->passes);
    d->ids = calloc(tokens, sizeof *d->ids);
    d->mask = calloc(tokens, sizeof *d->mask);
    d->labels = calloc(tokens, sizeof *d->labels);
    d->sequence_labels = batch->sequence_labels ? calloc(sequences, sizeof *d->sequence_labels) : NULL;
    d->targets = batch->targets ? calloc(sequences, sizeof *d->targets) : NULL;
    d->token_types = batch->token_types ? calloc(tokens, sizeof *d->token_types) : NULL;
    d->positions = batch->positions ? calloc(tokens, sizeof *d->positions) : NULL;
    run->moved = calloc(tokens, sizeof *run->moved);
    run->sums = calloc(tokens * run->learner->session->hidden_stride, sizeof *run->sums);
    run->delta = calloc(tokens * width, sizeof *run->delta);
    run->ones = malloc(width * sizeof *run->ones);
    run->zeros = calloc(width, sizeof *run->zeros);
    for (size_t e = 0; run->ones && e < width; e++) run->ones[e] = 1;
    return d->starts && d->shard_bounds && d->origin && d->passes && d->ids && d->mask && d->labels &&
           (d->sequence_labels || !batch->sequence_labels) && (d->targets || !batch->targets) &&
           (d->token_types || !batch->token_types) && (d->positions || !batch->positions) && run->moved && run->sums &&
           run->delta && run->ones && run->zeros;
}

static void double_batch(sift_run *run, const step_batch *batch)
{
    const size_t width = run->learner->model->config.hidden_size;
    size_t to = 0;
    for (size_t shard = 0; shard < run->learner->options.parts; shard++) {
        for (int moved = 0; moved < 2; moved++)
            for (size_t i = batch->shard_bounds[shard]; i < batch->shard_bounds[shard + 1]; i++)
                copy_sequence(run, batch, i, to++, moved, width);
        run->doubled.shard_bounds[shard + 1] = to;
    }
}

static void free_run(sift_run *run)
{
    step_batch *d = &run->doubled;
    free(d->starts);
    free(d->shard_bounds);
    free(d->origin);
    free(d->passes);
    free(d->ids);
    free(d->mask);
    free(d->labels);
    free(d->sequence_labels);
    free(d->targets);
    free(d->token_types);
    free(d->positions);
    free(run->moved);
    free(run->sums);
    free(run->delta);
    free(run->ones);
    free(run->zeros);
}

/* --------------------------------------------------------------------------------------------- forward and backward of z */

/* z = the embeddings normalised without gain (raw: as they are), + delta for moved tokens; then the model's own norm
 * follows. */
static void edit_forward(void *context, float *rows, size_t first, size_t count)
{
    const sift_run *run = context;
    const deberta_session *s = run->learner->session;
    const size_t width = run->learner->model->config.hidden_size, stride = s->hidden_stride;
    memcpy(run->sums + first * stride, rows, count * stride * sizeof *rows);
    if (!run->raw)
        s->kernels.layernorm_f32(rows, stride, rows, stride, run->ones, run->zeros, count, width, SIFT_EPSILON);
    for (size_t i = 0; i < count; i++)
        for (size_t e = 0; run->moved[first + i] && e < width; e++)
            rows[i * stride + e] += run->delta[(first + i) * width + e];
}

/* The gradient of delta becomes the step; it is not used if it is not finite. */
static void ascend(sift_run *run, const float *d_rows, size_t ld)
{
    const size_t width = run->learner->model->config.hidden_size;
    double squares = 0;
    for (size_t t = 0; t < run->doubled.tokens; t++)
        for (size_t e = 0; run->moved[t] && e < width; e++)
            squares += (double)d_rows[t * ld + e] * (double)d_rows[t * ld + e];
    if (!isfinite(squares)) return;
    for (size_t t = 0; t < run->doubled.tokens; t++) {
        float largest = 0;
        if (!run->moved[t]) continue;
        for (size_t e = 0; e < width; e++) largest = fmaxf(largest, fabsf(d_rows[t * ld + e]));
        for (size_t e = 0; e < width; e++)
            run->delta[t * width + e] += SIFT_STEP * d_rows[t * ld + e] / (SIFT_SMALL + largest);
    }
}

/* The embeddings learn through the clean pass only. */
static void edit_backward(void *context, float *d_rows, size_t ld)
{
    sift_run *run = context;
    const deberta_session *s = run->learner->session;
    const size_t width = run->learner->model->config.hidden_size, stride = s->hidden_stride;
    if (run->ascending) {
        ascend(run, d_rows, ld);
        return;
    }
    for (size_t t = 0; t < run->doubled.tokens; t++) {
        float *row = d_rows + t * ld, *sum = run->sums + t * stride;
        const layernorm_backward_task norm = {
            .rows = 1, .n = width, .dx = row, .normal = sum, .x = sum, .dy = row, .eps = SIFT_EPSILON};
        if (run->moved[t])
            memset(row, 0, width * sizeof *row);
        else if (!run->raw)
            s->kernels.layernorm_backward_f32(&norm);
    }
}

/* ------------------------------------------------------------------------------------------------------------ the step */

static deberta_status run_twice(sift_run *run, const step_options *options, step_result *result, deberta_error *err)
{
    learner *l = run->learner;
    step_options ascent = *options, final = *options;
    ascent.pairs = PAIRS_ASCENT;
    final.pairs = PAIRS_FINAL;
    l->weights_wanted = false;
    run->ascending = true;
    number_passes(run);
    deberta_status status = step_run(l, &run->doubled, &ascent, result, err);
    l->weights_wanted = true;
    run->ascending = false;
    number_passes(run);
    return status == DEBERTA_OK ? step_run(l, &run->doubled, &final, result, err) : status;
}

static deberta_status check(const learner *l, deberta_error *err)
{
    if (l->model->tasks.labels > PAIRS_MOST_CLASSES)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "SiFT with %zu classes: at most %d", l->model->tasks.labels,
                     PAIRS_MOST_CLASSES);
    return DEBERTA_OK;
}

deberta_status sift_step_run(learner *l, const step_batch *batch, const step_options *options, step_result *result,
                             deberta_error *err)
{
    sift_run run = {.learner = l, .raw = options->perturbs_raw, .key = {options->seed, (uint32_t)options->number}};
    DEBERTA_TRY(check(l, err));
    deberta_status status = DEBERTA_OK;
    if (!allocate(&run, batch)) status = status_fail(err, DEBERTA_E_MEMORY, "no memory for a step of SiFT");
    if (status == DEBERTA_OK) {
        double_batch(&run, batch);
        l->forward.edit_embedded = edit_forward;
        l->forward.edit_context = &run;
        l->edit_backward = edit_backward;
        l->edit_context = &run;
        status = run_twice(&run, options, result, err);
        l->forward.edit_embedded = NULL;
        l->edit_backward = NULL;
        result->tokens = batch->tokens;
    }
    free_run(&run);
    return status;
}
