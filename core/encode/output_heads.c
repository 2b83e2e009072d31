/* Computes the logits of the output heads on the last encoded batch (SPEC 8): masked words (mlm, mlm_emd), replaced
 * tokens (rtd), sequence, token, spans of answers (qa); one block of positions at a time.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/encode/encoder_parts.h"
#include "core/model/activation.h"
#include "core/model/linear.h"

static const char *const head_names[DEBERTA_TASK_COUNT] = {
    [DEBERTA_TASK_MLM] = "mlm",           [DEBERTA_TASK_MLM_EMD] = "mlm_emd", [DEBERTA_TASK_RTD] = "rtd",
    [DEBERTA_TASK_SEQUENCE] = "sequence", [DEBERTA_TASK_TOKEN] = "token",     [DEBERTA_TASK_QA] = "qa",
};

const char *deberta_task_name(deberta_task head)
{
    return (unsigned)head < DEBERTA_TASK_COUNT ? head_names[head] : "unknown";
}

size_t deberta_task_width(const deberta_model *model, deberta_task head)
{
    if ((unsigned)head >= DEBERTA_TASK_COUNT || !(model->tasks.present & 1u << head)) return 0;
    switch (head) {
    case DEBERTA_TASK_MLM:
    case DEBERTA_TASK_MLM_EMD: return model->config.vocabulary_size;
    case DEBERTA_TASK_SEQUENCE:
    case DEBERTA_TASK_TOKEN: return model->tasks.labels;
    case DEBERTA_TASK_QA: return 2;
    default: return 1;
    }
}

/* -------------------------------------------------------------------------------------------------- masked language */

/* A loop over the decoder's product with the word table, which stays in its file: each task packs a few panels, uses
 * them and drops them. */
typedef struct decoder_loop {
    deberta_session *session;
    const float *rows; /* [count][normed_stride] */
    size_t count;
    float *logits;
    size_t stride;
} decoder_loop;

static void copy_columns(float *to, size_t ld_to, const float *from, size_t ld_from, size_t rows, size_t columns)
{
    for (size_t i = 0; i < rows; i++) memcpy(to + i * ld_to, from + i * ld_from, columns * sizeof *to);
}

/* Computes the logits of `words` words from `first` on. Whole panels go straight into the caller's rows, the last words
 * of the vocabulary through scratch, because a product writes whole panels. */
static void decode_words(const decoder_loop *loop, const float *panels, size_t first, size_t words, float *scratch)
{
    const deberta_session *s = loop->session;
    size_t width = s->model->config.embedding_size, whole = words / PANEL, rest = words % PANEL;
    for (size_t row = 0; row < loop->count; row += LINEAR_MAX_ROWS) {
        float *logits = loop->logits + row * loop->stride + first;
        gemm_task task = {
            .rows = minimum(LINEAR_MAX_ROWS, loop->count - row),
            .depth = width,
            .panels = whole,
            .a = loop->rows + row * s->normed_stride,
            .lda = s->normed_stride,
            .b = panels,
            .b_panel_stride = width * PANEL,
            .c = logits,
            .ldc = loop->stride,
            .c_panel_stride = PANEL,
            .bias = s->model->tasks.mlm_bias + first,
        };
        s->kernels.gemm_f32(&task);
        if (rest == 0) continue;
        task.panels = 1;
        task.b += whole * width * PANEL;
        task.bias += whole * PANEL;
        task.c = scratch;
        task.ldc = PANEL;
        s->kernels.gemm_f32(&task);
        copy_columns(logits + whole * PANEL, loop->stride, scratch, PANEL, task.rows, rest);
    }
}

static void decode_task(void *context, size_t task, size_t worker)
{
    const decoder_loop *loop = context;
    deberta_session *s = loop->session;
    const deberta_model *model = s->model;
    size_t width = model->config.embedding_size, first = task * DECODER_PANELS * PANEL;
    size_t words = minimum(DECODER_PANELS * PANEL, model->config.vocabulary_size - first);
    float *table = s->workers[worker].inner, *panels = table + DECODER_PANELS * PANEL * width;
    float *scratch = panels + DECODER_PANELS * PANEL * width;
    deberta_error error;
    deberta_status status = word_table_read(&model->tasks.mlm_decoder, &model->source, first, words, table, &error);
    if (status != DEBERTA_OK) {
        session_note_failure(s, status, &error);
        return;
    }
    s->kernels.pack_panels_f32(panels, width * PANEL, table, width, words, width);
    decode_words(loop, panels, first, words, scratch);
}

/* Runs the MLM head over rows [count][ld] and writes logits [count][stride]. Overwrites session->normed. */
static void run_mlm(deberta_session *s, const float *rows, size_t ld, size_t count, float *logits, size_t stride)
{
    const model_config *config = &s->model->config;
    const model_tasks *tasks = &s->model->tasks;
    size_t width = config->embedding_size;
    linear_product dense = linear_plain(&tasks->mlm_dense, count, rows, ld, s->normed, s->normed_stride);
    linear_run_parallel(&s->kernels, s->executor, &dense, 1);
    activate_rows(&s->kernels, config->hidden_activation, s->normed, s->normed_stride, count, width);
    s->kernels.layernorm_f32(s->normed, s->normed_stride, s->normed, s->normed_stride, tasks->mlm_norm.gamma,
                             tasks->mlm_norm.beta, count, width, config->layer_norm_eps);
    decoder_loop loop = {.session = s, .rows = s->normed, .count = count, .logits = logits, .stride = stride};
    parallel_for(s->executor, ceiling_divide(config->vocabulary_size, DECODER_PANELS * PANEL), decode_task, &loop);
}

/* ------------------------------------------------------------------------------------------------------ small heads */

/* Runs a classifier over rows [count][ld]. It uses scratch memory, because a product writes whole panels. */
static void classify(deberta_session *s, const packed_matrix *classifier, const float *rows, size_t ld, size_t count,
                     float *logits, size_t stride, size_t width)
{
    float *panel = s->inner;
    for (size_t first = 0; first < width; first += PANEL) {
        for (size_t row = 0; row < count; row += LINEAR_MAX_ROWS) {
            size_t block = minimum(LINEAR_MAX_ROWS, count - row);
            linear_product product = linear_plain(classifier, block, rows + row * ld, ld, panel, PANEL);
            product.first_panel = first / PANEL;
            product.panels = 1;
            linear_run(&s->kernels, &product);
            copy_columns(logits + row * stride + first, stride, panel, PANEL, block, minimum(PANEL, width - first));
        }
    }
}

/* Adds row 0 of the sequence to every row, including itself; then runs norm, dense, activation and classifier
 * (SPEC 8.4). */
static void run_rtd(deberta_session *s, const size_t *positions, size_t count, float *logits, size_t stride)
{
    const model_config *config = &s->model->config;
    const model_tasks *tasks = &s->model->tasks;
    size_t hidden = config->hidden_size, ld;
    encoder_finish(s); /* every row needs another one, too */
    float *rows = last_layer_rows(s, positions, count, &ld);
    for (size_t i = 0; i < count; i++) {
        const float *start = s->hidden + s->starts[session_sequence_of(s, positions[i])] * s->hidden_stride;
        float *row = rows + i * ld;
        for (size_t e = 0; e < hidden; e++) row[e] += start[e];
    }
    s->kernels.layernorm_f32(rows, ld, rows, ld, tasks->rtd_norm.gamma, tasks->rtd_norm.beta, count, hidden,
                             config->layer_norm_eps);
    linear_product dense = linear_plain(&tasks->rtd_dense, count, rows, ld, s->normed, s->normed_stride);
    linear_run_parallel(&s->kernels, s->executor, &dense, 1);
    activate_rows(&s->kernels, config->hidden_activation, s->normed, s->normed_stride, count, hidden);
    classify(s, &tasks->rtd_classifier, s->normed, s->normed_stride, count, logits, stride, 1);
}

static void run_sequence(deberta_session *s, const size_t *sequences, size_t count, float *logits, size_t stride)
{
    const model_config *config = &s->model->config;
    const model_tasks *tasks = &s->model->tasks;
    size_t ld;
    for (size_t i = 0; i < count; i++) s->asked_tokens[i] = s->starts[sequences[i]];
    const float *rows = last_layer_rows(s, s->asked_tokens, count, &ld);
    linear_product pooler = linear_plain(&tasks->pooler, count, rows, ld, s->normed, s->normed_stride);
    linear_run_parallel(&s->kernels, s->executor, &pooler, 1);
    activate_rows(&s->kernels, config->pooler_activation, s->normed, s->normed_stride, count, config->hidden_size);
    classify(s, &tasks->classifier, s->normed, s->normed_stride, count, logits, stride, tasks->labels);
}

/* --------------------------------------------------------------------------------------------------------- dispatch */

static deberta_status check_call(const deberta_session *s, deberta_task head, const size_t *positions, size_t count,
                                 size_t stride, deberta_error *err)
{
    if ((unsigned)head >= DEBERTA_TASK_COUNT)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "task %d does not exist", (int)head);
    size_t width = deberta_task_width(s->model, head);
    if (width == 0) {
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s has no head '%s'", s->model->name, deberta_task_name(head));
    }
    if (!s->encoded) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "no batch has been encoded for the head to work on");
    if (stride < width) {
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "stride %zu is less than the %zu columns of head '%s'", stride, width,
                     deberta_task_name(head));
    }
    bool by_sequence = head == DEBERTA_TASK_SEQUENCE;
    size_t limit = by_sequence ? s->sequences : s->tokens;
    for (size_t i = 0; i < count; i++) {
        if (positions[i] < limit) continue;
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s %zu was asked for, but the batch has %zu",
                     by_sequence ? "sequence" : "token", positions[i], limit);
    }
    return head == DEBERTA_TASK_MLM_EMD ? decoder_check(s, positions, count, err) : DEBERTA_OK;
}

/* Positions are processed in blocks of at most as many as the session's buffers have rows. */
static void run_head(deberta_session *s, deberta_task head, const size_t *positions, size_t count, float *logits,
                     size_t stride)
{
    const model_tasks *tasks = &s->model->tasks;
    if (head == DEBERTA_TASK_MLM_EMD && !s->model->config.position_biased_input) {
        decoder_run(s, positions, count);
        run_mlm(s, s->asked_rows, s->hidden_stride, count, logits, stride);
        return;
    }
    switch (head) {
    case DEBERTA_TASK_RTD: run_rtd(s, positions, count, logits, stride); return;
    case DEBERTA_TASK_SEQUENCE: run_sequence(s, positions, count, logits, stride); return;
    default: break;
    }
    size_t ld;
    const float *rows = last_layer_rows(s, positions, count, &ld);
    if (head == DEBERTA_TASK_TOKEN || head == DEBERTA_TASK_QA)
        classify(s, head == DEBERTA_TASK_QA ? &tasks->answer : &tasks->classifier, rows, ld, count, logits, stride,
                 deberta_task_width(s->model, head));
    else
        run_mlm(s, rows, ld, count, logits, stride);
}

static deberta_status run_task(deberta_session *s, deberta_task head, const size_t *positions, size_t count,
                               float *logits, size_t stride, deberta_error *err)
{
    DEBERTA_TRY(check_call(s, head, positions, count, stride, err));
    double time = profile_start(session_profiling(s));
    s->status = DEBERTA_OK;
    executor_begin(s->executor);
    for (size_t done = 0; done < count && s->status == DEBERTA_OK; done += s->tokens) {
        run_head(s, head, positions + done, minimum(s->tokens, count - done), logits + done * stride, stride);
    }
    executor_end(s->executor);
    profile_lap_all(session_profiling(s), PROFILE_TASKS, time);
    DEBERTA_TRY(model_intact(s->model, err));
    if (s->status != DEBERTA_OK && err) *err = s->failure;
    return s->status;
}

deberta_status deberta_task_logits(deberta_session *s, deberta_task head, const size_t *positions, size_t count,
                                   float *logits, size_t stride, deberta_error *err)
{
    if (!s || (count > 0 && (!positions || !logits))) {
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "deberta_task_logits needs a session, positions and a place for the logits");
    }
    DEBERTA_TRY(session_enter(s, err));
    const deberta_status status = run_task(s, head, positions, count, logits, stride, err);
    session_leave(s);
    return status;
}
