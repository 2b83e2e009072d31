/* Runs the passes of a step of SiFT, and changes the embeddings as each requires. SPDX-License-Identifier: MIT */
#include "train/step/step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/backward/heads.h"
#include "train/state/counters.h"
#include "train/state/pair_records.h"
#include "train/state/ranks.h"
#include "train/state/step_dropout.h"

#define SIFT_EPSILON 1e-7f /* epsilon of the norm without gain */
#define SIFT_MOST    2     /* deviations at which the start of the ascent is cut */
#define SIFT_SMALL   1e-6f /* smallest divisor, so that a gradient of 0 causes no division by 0 */

/* Passes of a step, each with dropout drawn anew. The final pass has the clean rows once more, together with the moved
 * ones. */
typedef enum sift_pass { PASS_CLEAN, PASS_ASCENT, PASS_FINAL } sift_pass;

typedef struct sift_run {
    learner *learner;
    const step_batch *batch;
    step_batch doubled;
    sift_pass pass;
    bool moves_all;      /* whether all forward rows of the final pass are moved ones, as in the ascent */
    size_t *source;      /* [2 T]: token of which each token of the doubled batch is a copy, */
    bool *is_moved;      /* [2 T]: and whether it is the moved copy */
    uint8_t *moving;     /* [sequences]: pass of each, where all are moved */
    float *sums;         /* [T][hidden_stride]: embeddings before their norm */
    float *clean;        /* [T][classes]: logits of rows that the head reads */
    float *compared;     /* [PAIR_ROWS][pair_row_floats] */
    float *delta;        /* [T][h] */
    float *moves;        /* [T][h]: step of the ascent, which is added to delta */
    bool is_finite;      /* whether all gradients of the ascent are finite; else delta stays */
    float *ones, *zeros; /* [h] */
    bool raw;
    float step;
    double start;
    counter_key key;
} sift_run;

/* -------------------------------------------------------------------------------------------------- the doubled batch */

/* Draws the start of the ascent, unless the batch has one: N(0, start^2), cut. */
static void draw_delta(const sift_run *run, size_t sequence, size_t place, float *to, size_t width)
{
    const double most = SIFT_MOST * run->start;
    for (size_t e = 0; e < width; e += COUNTER_WORDS) {
        const uint32_t counter[COUNTER_WORDS] = {(uint32_t)(e / COUNTER_WORDS), (uint32_t)place, (uint32_t)sequence,
                                                 (uint32_t)SITE_PERTURBING << COUNTER_SITE_SHIFT};
        uint32_t words[COUNTER_WORDS];
        philox4x32(counter, run->key, words);
        for (size_t w = 0; w < COUNTER_WORDS && e + w < width; w++)
            to[e + w] = (float)fmax(-most, fmin(run->start * counter_normal(words[w]), most));
    }
}

static void begin_delta(sift_run *run)
{
    const step_batch *b = run->batch;
    const size_t width = run->learner->model->config.hidden_size;
    if (b->delta) memcpy(run->delta, b->delta, b->tokens * width * sizeof *run->delta);
    for (size_t i = 0; !b->delta && i < b->sequences; i++)
        for (size_t t = b->starts[i]; t < b->starts[i + 1]; t++)
            draw_delta(run, b->origin[i], t - b->starts[i], run->delta + t * width, width);
}

static void copy_sequence(sift_run *run, size_t sequence, size_t to, bool moved)
{
    const step_batch *from = run->batch;
    step_batch *d = &run->doubled;
    const size_t source = from->starts[sequence], n = from->starts[sequence + 1] - source, first = d->starts[to];
    d->starts[to + 1] = first + n;
    d->origin[to] = from->origin[sequence];
    d->passes[to] = moved ? PASS_FINAL : PASS_CLEAN;
    if (d->sequence_labels) d->sequence_labels[to] = moved ? NOT_LABELLED : from->sequence_labels[sequence];
    if (d->targets) d->targets[to] = from->targets[sequence];
    memcpy(d->ids + first, from->ids + source, n * sizeof *d->ids);
    memcpy(d->mask + first, from->mask + source, n * sizeof *d->mask);
    if (d->token_types) memcpy(d->token_types + first, from->token_types + source, n * sizeof *d->token_types);
    if (d->positions) memcpy(d->positions + first, from->positions + source, n * sizeof *d->positions);
    for (size_t t = 0; t < n; t++) {
        d->labels[first + t] = moved ? NOT_LABELLED : from->labels[source + t];
        run->source[first + t] = source + t;
        run->is_moved[first + t] = moved;
    }
}

static bool allocate_doubled(sift_run *run)
{
    const step_batch *batch = run->batch;
    const size_t tokens = 2 * batch->tokens, sequences = 2 * batch->sequences;
    step_batch *d = &run->doubled;
    *d = (step_batch){.sequences = sequences,
                      .tokens = tokens,
                      .choices = batch->choices,
                      .questions = batch->questions,
                      .question_labels = batch->question_labels};
    d->starts = calloc(sequences + 1, sizeof *d->starts);
    d->shard_bounds = calloc(run->learner->options.asked.shards + 1, sizeof *d->shard_bounds);
    d->origin = calloc(sequences, sizeof *d->origin);
    d->passes = calloc(sequences, sizeof *d->passes);
    d->ids = calloc(tokens, sizeof *d->ids);
    d->mask = calloc(tokens, sizeof *d->mask);
    d->labels = calloc(tokens, sizeof *d->labels);
    d->sequence_labels = batch->sequence_labels ? calloc(sequences, sizeof *d->sequence_labels) : NULL;
    d->targets = batch->targets ? calloc(sequences, sizeof *d->targets) : NULL;
    d->token_types = batch->token_types ? calloc(tokens, sizeof *d->token_types) : NULL;
    d->positions = batch->positions ? calloc(tokens, sizeof *d->positions) : NULL;
    run->source = calloc(tokens, sizeof *run->source);
    run->is_moved = calloc(tokens, sizeof *run->is_moved);
    return d->starts && d->shard_bounds && d->origin && d->passes && d->ids && d->mask && d->labels &&
           (d->sequence_labels || !batch->sequence_labels) && (d->targets || !batch->targets) &&
           (d->token_types || !batch->token_types) && (d->positions || !batch->positions) && run->source &&
           run->is_moved;
}

static bool sift_allocate(sift_run *run)
{
    const learner *l = run->learner;
    const size_t tokens = run->batch->tokens, width = l->model->config.hidden_size;
    run->moving = malloc(run->batch->sequences);
    run->sums = calloc(tokens * l->session->hidden_stride, sizeof *run->sums);
    run->clean = calloc(tokens * l->model->tasks.labels, sizeof *run->clean);
    run->compared = calloc(PAIR_ROWS * pair_row_floats(l, run->batch), sizeof *run->compared);
    run->delta = calloc(tokens * width, sizeof *run->delta);
    run->moves = calloc(tokens * width, sizeof *run->moves);
    run->ones = malloc(width * sizeof *run->ones);
    run->zeros = calloc(width, sizeof *run->zeros);
    for (size_t e = 0; run->ones && e < width; e++) run->ones[e] = 1;
    return allocate_doubled(run) && run->moving && run->sums && run->clean && run->compared && run->delta &&
           run->moves && run->ones && run->zeros;
}

static void double_batch(sift_run *run)
{
    const step_batch *batch = run->batch;
    size_t to = 0;
    for (size_t shard = 0; shard < run->learner->options.asked.shards; shard++) {
        for (int moved = 0; moved < 2; moved++)
            for (size_t i = batch->shard_bounds[shard]; i < batch->shard_bounds[shard + 1]; i++)
                copy_sequence(run, i, to++, moved);
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
    free(run->source);
    free(run->is_moved);
    free(run->moving);
    free(run->clean);
    free(run->compared);
    free(run->moves);
    free(run->sums);
    free(run->delta);
    free(run->ones);
    free(run->zeros);
}

/* --------------------------------------------------------------------------------------------- forward and backward of z */

/* Returns the token whose copy token t of the current shards is. */
static size_t source_of(const sift_run *run, const step_state *step, size_t t)
{
    const size_t token = step->group.first_token + t;
    return run->pass == PASS_FINAL && !run->moves_all ? run->source[token] : token;
}

/* Returns the displacement of token t of the current shards; NULL: none. */
static const float *delta_of(const sift_run *run, const step_state *step, size_t t)
{
    const bool both = run->pass == PASS_FINAL && !run->moves_all;
    if (run->pass == PASS_CLEAN || (both && !run->is_moved[step->group.first_token + t])) return NULL;
    return run->delta + source_of(run, step, t) * step->learner->model->config.hidden_size;
}

/* Computes z = the embeddings normalised without gain (raw: as they are), + delta for moved tokens; then the model's
 * own norm follows. */
static void edit_forward(void *context, const step_state *step, float *rows, size_t first, size_t count)
{
    const sift_run *run = context;
    const deberta_session *s = run->learner->session;
    const size_t width = run->learner->model->config.hidden_size, stride = s->hidden_stride;
    if (run->pass == PASS_CLEAN)
        memcpy(run->sums + source_of(run, step, first) * stride, rows, count * stride * sizeof *rows);
    if (!run->raw)
        s->kernels.layernorm_f32(rows, stride, rows, stride, run->ones, run->zeros, count, width, SIFT_EPSILON);
    for (size_t i = 0; i < count; i++) {
        const float *delta = delta_of(run, step, first + i);
        for (size_t e = 0; delta && e < width; e++) rows[i * stride + e] += delta[e];
    }
}

/* Turns the gradient of delta into the step. */
static void ascend(sift_run *run, const step_state *step, const float *d_rows, size_t ld)
{
    const learner *l = step->learner;
    const size_t width = l->model->config.hidden_size;
    for (size_t t = 0; t < l->session->tokens; t++) {
        float largest = 0, *move = run->moves + (step->group.first_token + t) * width;
        for (size_t e = 0; e < width; e++) {
            run->is_finite = run->is_finite && isfinite(d_rows[t * ld + e]);
            largest = fmaxf(largest, fabsf(d_rows[t * ld + e]));
        }
        for (size_t e = 0; e < width; e++) move[e] = run->step * d_rows[t * ld + e] / (SIFT_SMALL + largest);
    }
}

/* The embeddings get gradients from the clean rows only. */
static void edit_backward(void *context, const step_state *step, float *d_rows, size_t ld)
{
    sift_run *run = context;
    const deberta_session *s = run->learner->session;
    const size_t width = run->learner->model->config.hidden_size, stride = s->hidden_stride;
    if (run->pass == PASS_ASCENT) {
        ascend(run, step, d_rows, ld);
        return;
    }
    for (size_t t = 0; t < s->tokens; t++) {
        float *row = d_rows + t * ld, *sum = run->sums + source_of(run, step, t) * stride;
        const layernorm_backward_task norm = {
            .rows = 1, .n = width, .dx = row, .normal = sum, .x = sum, .dy = row, .eps = SIFT_EPSILON};
        if (delta_of(run, step, t))
            memset(row, 0, width * sizeof *row);
        else if (!run->raw)
            s->kernels.layernorm_backward_f32(&norm);
    }
}

/* ------------------------------------------------------------------------------------------------------------ the step */

static void keep_logits(void *context, const step_state *step, const step_batch *batch, const head_rows *rows,
                        const float *logits, size_t stride)
{
    sift_run *run = context;
    const size_t classes = run->learner->model->tasks.labels;
    (void)batch;
    for (size_t i = 0; i < rows->count; i++)
        memcpy(run->clean + (step->group.first_token + rows->tokens[i]) * classes, logits + i * stride,
               classes * sizeof *logits);
}

/* Returns a batch all of whose rows are moved. */
static step_batch moved_batch(const sift_run *run, sift_pass pass)
{
    step_batch moved = *run->batch;
    memset(run->moving, (int)pass, moved.sequences);
    moved.passes = run->moving;
    return moved;
}

/* Runs the moved rows, for which the clean ones have waited. */
static deberta_status forward_of_moved(sift_run *run, step_state *step, const step_batch *group, deberta_error *err)
{
    const step_batch moved = moved_batch(run, PASS_FINAL);
    const deberta_batch joined = step_encoded_batch(step, group);
    pair_records_enter(step, PAIR_MOVED, moved.tokens);
    step->ids = moved.ids;
    run->moves_all = true;
    const deberta_status status = step_forward(step, &moved, err);
    run->moves_all = false;
    step->ids = group->ids;
    DEBERTA_TRY(status);
    pair_records_keep(step);
    pair_records_join(step, &joined);
    step_dropout_number(step, group);
    return DEBERTA_OK;
}

static deberta_status forward_of_half(void *context, step_state *step, const step_batch *group, deberta_error *err)
{
    sift_run *run = context;
    if (run->pass == PASS_FINAL) return forward_of_moved(run, step, group, err);
    pair_records_enter(step, run->pass == PASS_CLEAN ? PAIR_CLEAN : PAIR_MOVED, group->tokens);
    DEBERTA_TRY(step_forward(step, group, err));
    pair_records_keep(step);
    return DEBERTA_OK;
}

/* Computes the clean logits, then the step that moves the logits away from them. */
static deberta_status find_delta(sift_run *run, const step_options *options, deberta_error *err)
{
    const logit_listener listener = {.context = run, .on_logits = keep_logits};
    const step_batch moved = moved_batch(run, PASS_ASCENT);
    step_options clean = *options, ascent = *options;
    step_result unread;
    clean.pairs = PAIRS_CLEAN;
    clean.listener = &listener;
    ascent.pairs = PAIRS_ASCENT;
    ascent.activations_only = true;
    ascent.clean = run->clean;
    run->pass = PASS_CLEAN;
    DEBERTA_TRY(step_run(run->learner, run->batch, &clean, &unread, err));
    run->pass = PASS_ASCENT;
    run->is_finite = true;
    DEBERTA_TRY(step_run(run->learner, &moved, &ascent, &unread, err));
    run->is_finite = !ranks_any(run->learner->options.asked.ranks, !run->is_finite);
    const size_t count = run->batch->tokens * run->learner->model->config.hidden_size;
    for (size_t e = 0; run->is_finite && e < count; e++) run->delta[e] += run->moves[e];
    return DEBERTA_OK;
}

/* Runs the passes. The clean rows go forward once where memory holds their records until the moved ones follow, else
 * once more with these. */
static deberta_status run_passes(sift_run *run, const step_options *options, step_result *result, deberta_error *err)
{
    learner *l = run->learner;
    const step_forward_pass half = {.context = run, .run = forward_of_half};
    const embedding_edit edit = {.context = run, .forward = edit_forward, .backward = edit_backward};
    step_options final = *options;
    final.edit = &edit;
    if (l->options.pairs_up) final.pass = &half;
    for (size_t row = 0; row < PAIR_ROWS; row++)
        final.compared[row] = run->compared + row * pair_row_floats(l, run->batch);
    deberta_status status = find_delta(run, &final, err);
    run->pass = PASS_FINAL;
    final.pairs = PAIRS_FINAL;
    if (status == DEBERTA_OK) status = step_run(l, &run->doubled, &final, result, err);
    if (l->options.pairs_up) pair_records_leave(l);
    return status;
}

deberta_status sift_step_run(learner *l, const step_batch *batch, const step_options *options, step_result *result,
                             deberta_error *err)
{
    sift_run run = {.learner = l,
                    .batch = batch,
                    .raw = options->perturbs_raw,
                    .step = options->sift_step,
                    .start = options->sift_start,
                    .key = {options->seed, (uint32_t)options->number}};
    deberta_status status = DEBERTA_OK;
    if (!sift_allocate(&run)) status = status_fail(err, DEBERTA_E_MEMORY, "no memory for a step of SiFT");
    if (status == DEBERTA_OK) {
        double_batch(&run);
        begin_delta(&run);
        status = run_passes(&run, options, result, err);
        result->tokens = batch->tokens;
    }
    free_run(&run);
    return status;
}
