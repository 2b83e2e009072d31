/* Trains the masked language model: dense, activation, norm, and the word table as the output matrix. It computes
 * logits of the labelled rows only.
 *
 * SPDX-License-Identifier: MIT */
#include <assert.h>
#include <string.h>

#include "core/encode/encoder_parts.h"
#include "core/model/activation.h"
#include "core/model/linear.h"
#include "train/backward/backward_layer.h"
#include "train/backward/backward_parts.h"
#include "train/backward/heads.h"
#include "train/state/counters.h"
#include "train/state/learner.h"

/* ------------------------------------------------------------------------------------------------------- vocabulary */

typedef struct vocabulary_job {
    step_state *step;
    const step_batch *batch;
    const head_rows *rows;
    const float *words; /* [V][E]; NULL: read from the model's files, a chunk at a time */
    float *t, *d_t;     /* [rows][normed_stride] */
    size_t stride;      /* stride of the logits */
    size_t panels;      /* panels of dt per task */
    float scale;
} vocabulary_job;

/* Returns rows of the table, in `memory` where no parameters hold them; NULL: a failure, which the session notes. */
static const float *vocabulary_words(const vocabulary_job *job, size_t first, size_t count, float *memory)
{
    const learner *l = job->step->learner;
    deberta_error error;
    if (job->words) return job->words + first * l->model->config.embedding_size;
    const deberta_status status =
        word_table_read(&l->model->tasks.mlm_decoder, &l->model->source, first, count, memory, &error);
    if (status == DEBERTA_OK) return memory;
    session_note_failure(l->session, status, &error);
    return NULL;
}

/* Computes the logits of some words for all rows. */
static void logits_task(void *context, size_t task, size_t worker)
{
    const vocabulary_job *job = context;
    const step_state *step = job->step;
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const deberta_session *s = l->session;
    const size_t width = l->model->config.embedding_size, first = task * VOCABULARY_WORDS;
    const size_t words = minimum(VOCABULARY_WORDS, l->model->config.vocabulary_size - first);
    float *panels = m->vocabulary + worker * m->vocabulary_stride;
    const float *rows = vocabulary_words(job, first, words, panels + VOCABULARY_WORDS * round_up(width, PANEL));
    if (!rows) return;
    s->kernels.pack_panels_f32(panels, width * PANEL, rows, width, words, width);
    const gemm_task product = {
        .rows = job->rows->count,
        .depth = width,
        .panels = ceiling_divide(words, PANEL),
        .a = job->t,
        .lda = s->normed_stride,
        .b = panels,
        .b_panel_stride = width * PANEL,
        .c = m->logits + first,
        .ldc = job->stride,
        .c_panel_stride = PANEL,
        .bias = l->model->tasks.mlm_bias + first,
    };
    s->kernels.gemm_f32(&product);
}

/* Draws the generator's id for a labelled row, before the logits become gradients. */
static void draw_id(const vocabulary_job *job, size_t row)
{
    const step_state *step = job->step;
    const learner *l = step->learner;
    const deberta_session *s = l->session;
    const size_t token = job->rows->tokens[row], sequence = session_sequence_of(s, token);
    const counter_key key = {step->options->seed, (uint32_t)step->options->number};
    int32_t *drawn = step->options->drawn_ids + step->group.first_token;
    const double u =
        counter_drawing(key, (uint32_t)(token - s->starts[sequence]), (uint32_t)job->batch->origin[sequence]);
    drawn[token] = (int32_t)draw_class(learner_kernels(l), step->memory->logits + row * job->stride,
                                       l->model->config.vocabulary_size, u);
}

static void loss_task(void *context, size_t row, size_t worker)
{
    const vocabulary_job *job = context;
    const step_state *step = job->step;
    const learner *l = step->learner;
    step_memory *m = step->memory;
    (void)worker;
    const row_value *value = step->options->value;
    if (step->options->drawn_ids) draw_id(job, row);
    if (value) {
        m->losses[row] = value->run(value->context, step, job->rows->tokens[row], m->logits + row * job->stride,
                                    l->model->config.vocabulary_size);
        return;
    }
    m->losses[row] = cross_entropy(learner_kernels(l), m->logits + row * job->stride, l->model->config.vocabulary_size,
                                   1, (size_t)job->batch->labels[job->rows->tokens[row]], job->scale);
}

/* Returns whether any row has a gradient at words [first, first + words): that of a logit has one word. */
static bool any_gradient(const vocabulary_job *job, size_t first, size_t words)
{
    for (size_t row = 0; row < job->rows->count; row++)
        for (size_t w = 0; w < words; w++)
            if (job->step->memory->logits[row * job->stride + first + w] != 0) return true;
    return false;
}

/* Computes some panels of columns of dt, as one chain over all words, of which a chunk at a time is packed into panels.
 */
static void d_t_task(void *context, size_t task, size_t worker)
{
    const vocabulary_job *job = context;
    const step_state *step = job->step;
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const deberta_session *s = l->session;
    const size_t width = l->model->config.embedding_size, vocabulary = l->model->config.vocabulary_size;
    const size_t first = task * job->panels, panels = minimum(job->panels, ceiling_divide(width, PANEL) - first);
    float *chunk = m->vocabulary + worker * m->vocabulary_stride;
    float *memory = chunk + panels * VOCABULARY_CHUNK * PANEL;
    bool begun = false;
    memset(chunk, 0, panels * VOCABULARY_CHUNK * PANEL * sizeof *chunk); /* columns after the last one stay 0 */
    for (size_t word = 0; word < vocabulary; word += VOCABULARY_CHUNK) {
        const size_t words = minimum(VOCABULARY_CHUNK, vocabulary - word);
        const bool is_last = word + words == vocabulary;
        if (step->options->value && !any_gradient(job, word, words) && (begun || !is_last)) continue;
        const float *rows = vocabulary_words(job, word, words, memory);
        if (!rows) return;
        for (size_t w = 0; w < words; w++)
            for (size_t panel = 0; panel < panels; panel++) {
                const size_t column = (first + panel) * PANEL, columns = minimum(PANEL, width - column);
                memcpy(chunk + (panel * VOCABULARY_CHUNK + w) * PANEL, rows + w * width + column,
                       columns * sizeof *chunk);
            }
        const gemm_task product = {
            .rows = job->rows->count,
            .depth = words,
            .panels = panels,
            .a = m->logits + word,
            .lda = job->stride,
            .b = chunk,
            .b_panel_stride = VOCABULARY_CHUNK * PANEL,
            .c = job->d_t + first * PANEL,
            .ldc = s->normed_stride,
            .c_panel_stride = PANEL,
            .accumulate = begun,
        };
        s->kernels.gemm_f32(&product);
        begun = true;
    }
}

/* Gives each task as many panels as each thread gets, because every task reads all logits, up to the size of a
 * cache. */
static void d_t_run(vocabulary_job *job)
{
    const learner *l = job->step->learner;
    const size_t panels = ceiling_divide(l->model->config.embedding_size, PANEL);
    job->panels = minimum(VOCABULARY_PANELS, ceiling_divide(panels, l->options.asked.threads));
    parallel_for(l->session->executor, ceiling_divide(panels, job->panels), d_t_task, job);
}

/* Computes the output matrix's gradient. Rows of whole panels are written directly to the tensor, whose gradient is
 * still empty. Others go through step->memory->weight, as many words at a time as it holds. */
static void word_gradients(const vocabulary_job *job, parameter *words)
{
    const step_state *step = job->step;
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const size_t width = words->shape[1], ld = row_stride(width), vocabulary = words->shape[0];
    const bool in_place = width % PANEL == 0;
    const size_t at_once = in_place ? vocabulary : l->largest.weight_floats / ld;
    const row_parts parts = {job->rows->bounds, step->group.count};
    parameter *bias = bindings_vector(&l->bindings, l->model->tasks.mlm_bias);
    assert(at_once > 0);
    for (size_t first = 0; first < vocabulary; first += at_once) {
        const weight_product product = {
            .a = m->logits + first,
            .lda = job->stride,
            .columns = minimum(at_once, vocabulary - first),
            .b = job->t,
            .ldb = l->session->normed_stride,
            .panels = ceiling_divide(width, PANEL),
            .c = in_place ? words->gradient : m->weight,
            .ldc = in_place ? width : ld,
            .parts = parts,
            .sums = bias->gradient + first,
        };
        weight_product_run(&product, learner_kernels(l), l->session->executor);
        for (size_t w = 0; !in_place && w < product.columns; w++)
            memcpy(words->gradient + (first + w) * width, m->weight + w * ld, width * sizeof(float));
    }
}

/* A group of shards without a label has gradients of -0.0: it is the additive identity for every float, while +0.0
 * would turn a -0.0 into +0.0. */
static void no_word_gradients(const learner *l)
{
    parameter *const both[] = {&l->set.items[l->model->tasks.mlm_decoder.stored.index],
                               bindings_vector(&l->bindings, l->model->tasks.mlm_bias)};
    for (size_t i = 0; i < 2; i++)
        for (size_t e = 0; e < both[i]->count; e++) both[i]->gradient[e] = -0.0f;
}

/* Runs logits, loss and gradients from t, and writes dt. */
static deberta_status vocabulary_run(vocabulary_job *job, deberta_error *err)
{
    step_state *step = job->step;
    const learner *l = step->learner;
    const deberta_model *model = l->model;
    executor *by = l->session->executor;
    parameter *words = l->own_model ? &l->set.items[model->tasks.mlm_decoder.stored.index] : NULL;
    job->words = words ? words->values : NULL;
    job->stride = row_stride(model->config.vocabulary_size);
    job->scale = 1 / (float)step->head.counts.labelled[0];
    DEBERTA_TRY(head_reserve(step->memory, job->rows->count, job->stride, err));
    parallel_for(by, ceiling_divide(model->config.vocabulary_size, VOCABULARY_WORDS), logits_task, job);
    const logit_listener *listener = step->options->listener;
    if (listener)
        listener->on_logits(listener->context, step, job->batch, job->rows, step->memory->logits, job->stride);
    parallel_for(by, job->rows->count, loss_task, job);
    head_add_losses(step, 0, job->rows->bounds);
    stage_lap(l->clock, TRAINING_HEAD);
    d_t_run(job);
    if (step_wants_weights(step)) word_gradients(job, words);
    if (l->session->status != DEBERTA_OK && err) *err = l->session->failure;
    return l->session->status;
}

/* ---------------------------------------------------------------------------------------------------------- the head */

/* Computes t from x [rows][ldx], and keeps the values between: u before the activation, g before the norm. */
static void transform(const learner *l, const float *x, size_t ldx, size_t rows, float *u, float *g, float *t)
{
    const deberta_session *s = l->session;
    const model_config *config = &l->model->config;
    const size_t ns = s->normed_stride, width = config->embedding_size;
    const linear_product dense = linear_plain(&l->model->tasks.mlm_dense, rows, x, ldx, u, ns);
    linear_run_parallel(&s->kernels, s->executor, &dense, 1);
    memcpy(g, u, rows * ns * sizeof *g);
    activate_rows(&s->kernels, config->hidden_activation, g, ns, rows, width);
    s->kernels.layernorm_f32(t, ns, g, ns, l->model->tasks.mlm_norm.gamma, l->model->tasks.mlm_norm.beta, rows, width,
                             config->layer_norm_eps);
}

static void transform_backward(const step_state *step, const head_rows *rows, const float *x, size_t ldx,
                               const float *u, float *g, const float *d_t, float *d_g, float *dx, size_t lddx)
{
    const learner *l = step->learner;
    const deberta_session *s = l->session;
    const model_config *config = &l->model->config;
    const model_tasks *heads = &l->model->tasks;
    const size_t ns = s->normed_stride, width = config->embedding_size;
    const row_parts parts = {rows->bounds, step->group.count};
    norm_backward(l, rows->count, width, &heads->mlm_norm, g, ns, d_t, ns, d_g, ns);
    norm_gradient(step, &heads->mlm_norm, width, g, ns, d_t, ns, parts);
    activate_rows_backward(&s->kernels, config->hidden_activation, d_g, NULL, u, ns, rows->count, width);
    matrix_gradient(step, &heads->mlm_dense, d_g, ns, x, ldx, parts);
    input_gradient(l, &l->transposed.mlm_dense, rows->count, d_g, ns, dx, lddx);
}

static head_rows labelled_rows(const step_state *step, const step_batch *batch)
{
    step_memory *m = step->memory;
    for (size_t t = 0; t < batch->tokens; t++) m->wanted[t] = batch->labels[t] != NOT_LABELLED;
    return head_rows_of(step, m->wanted);
}

static void backward_without_labels(const step_state *step, const head_rows *rows, bool runs_decoder)
{
    if (step_wants_weights(step)) no_word_gradients(step->learner);
    if (runs_decoder) decoder_backward(step, rows->tokens, 0, rows->bounds);
}

deberta_status head_mlm(step_state *step, const step_batch *batch, deberta_error *err)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    deberta_session *s = l->session;
    head_rows rows = labelled_rows(step, batch);
    float *x = m->head_rows[0], *u = m->head_rows[1], *g = m->head_rows[2], *t = m->head_rows[3];
    size_t ldx = s->normed_stride;
    const bool runs_decoder = step->options->decodes && !l->model->config.position_biased_input;
    if (rows.count == 0) {
        backward_without_labels(step, &rows, runs_decoder);
        return DEBERTA_OK;
    }
    if (runs_decoder) {
        DEBERTA_TRY(learner_decoder_reserve(l, m, rows.count, err));
        for (size_t pass = 0; pass < DECODER_PASSES; pass++) m->decoder_records[pass].tokens = rows.tokens;
        DEBERTA_TRY(decoder_check(s, rows.tokens, rows.count, err));
        decoder_run(s, rows.tokens, rows.count);
        stage_lap(l->clock, TRAINING_DECODER);
        x = s->asked_rows;
        ldx = s->hidden_stride;
    } else {
        head_gather(l, &rows, x);
    }
    transform(l, x, ldx, rows.count, u, g, t);
    float *d_t = m->passes[0].d_normed, *d_g = m->passes[0].d_attention_sum;
    vocabulary_job job = {.step = step, .batch = batch, .rows = &rows, .t = t, .d_t = d_t};
    DEBERTA_TRY(vocabulary_run(&job, err));
    if (runs_decoder) {
        transform_backward(step, &rows, x, ldx, u, g, d_t, d_g, m->passes[1].d_output, s->hidden_stride);
        stage_lap(l->clock, TRAINING_HEAD_BACKWARD);
        decoder_backward(step, rows.tokens, rows.count, rows.bounds);
        decoder_positions(step, &rows);
    } else {
        float *dx = m->passes[0].d_output_sum;
        transform_backward(step, &rows, x, ldx, u, g, d_t, d_g, dx, s->normed_stride);
        head_scatter(step, &rows, dx, s->normed_stride);
        stage_lap(l->clock, TRAINING_HEAD_BACKWARD);
    }
    return DEBERTA_OK;
}
