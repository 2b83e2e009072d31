/* Computes H[0] from ids: look-up of words, token types and absolute positions, projection to h, layer norm (SPEC 2).
 *
 * SPDX-License-Identifier: MIT */
#include "core/encode/encoder_parts.h"

#include <string.h>

#include "core/model/linear.h"

enum { TASK_ROWS = 16 };

typedef struct embed_loop {
    deberta_session *session;
    const int32_t *ids, *token_types;
    const float *noise; /* [tokens][E] or NULL */
} embed_loop;

static void embed_add_row(float *to, const float *row, size_t count)
{
    for (size_t e = 0; e < count; e++) to[e] += row[e];
}

/* Adds the rows of one token's word, position and type. It does not look up a hole, because NaN times a mask of 0 would
 * not be 0. */
static deberta_status look_up(const embed_loop *loop, size_t token, float *to, deberta_error *err)
{
    deberta_session *s = loop->session;
    const deberta_model *model = s->model;
    const model_config *config = &model->config;
    size_t width = config->embedding_size, stride = row_stride(width);
    if (!s->mask[token]) {
        memset(to, 0, width * sizeof *to);
        return DEBERTA_OK;
    }
    DEBERTA_TRY(word_table_read(&model->words, &model->source, (size_t)loop->ids[token], 1, to, err));
    if (loop->noise) embed_add_row(to, loop->noise + token * width, width);
    if (config->position_biased_input)
        embed_add_row(to, model->position_table + (size_t)s->position_ids[token] * stride, width);
    if (model->type_table) {
        embed_add_row(to, model->type_table + (size_t)(loop->token_types ? loop->token_types[token] : 0) * stride,
                      width);
    }
    return DEBERTA_OK;
}

/* Returns the rows before the projection, in the session's memory or, in a recorded run, in the record; NULL without a
 * projection. */
static float *narrow_rows(const deberta_session *s, size_t first)
{
    if (!s->model->embedding_projection.panels) return NULL;
    return (s->internal.record ? s->internal.record->narrow : s->normed) + first * s->normed_stride;
}

/* Edits and records the rows before the norm. */
static void record_rows(const deberta_session *s, size_t first, size_t rows)
{
    const forward_record *record = s->internal.record;
    float *hidden = s->hidden + first * s->hidden_stride;
    if (record->edit_embedded) record->edit_embedded(record->edit_context, hidden, first, rows);
    memcpy(record->embedded + first * s->hidden_stride, hidden, rows * s->hidden_stride * sizeof(float));
}

static void embed_task(void *context, size_t task, size_t worker)
{
    const embed_loop *loop = context;
    deberta_session *s = loop->session;
    const deberta_model *model = s->model;
    const model_config *config = &model->config;
    double time = profile_start(session_profiling(s));
    size_t first = task * TASK_ROWS, rows = minimum(TASK_ROWS, s->tokens - first);
    float *hidden = s->hidden + first * s->hidden_stride, *narrow = narrow_rows(s, first);
    for (size_t i = 0; i < rows; i++) {
        deberta_error error;
        deberta_status status =
            look_up(loop, first + i, narrow ? narrow + i * s->normed_stride : hidden + i * s->hidden_stride, &error);
        if (status == DEBERTA_OK) continue;
        session_note_failure(s, status, &error);
        return;
    }
    if (narrow) {
        linear_product product =
            linear_plain(&model->embedding_projection, rows, narrow, s->normed_stride, hidden, s->hidden_stride);
        linear_run(&s->kernels, &product);
    }
    if (s->internal.record) record_rows(s, first, rows);
    s->kernels.layernorm_f32(hidden, s->hidden_stride, hidden, s->hidden_stride, model->embedding_norm.gamma,
                             model->embedding_norm.beta, rows, config->hidden_size, config->layer_norm_eps);
    for (size_t i = 0; i < rows; i++) {
        if (!s->mask[first + i]) memset(hidden + i * s->hidden_stride, 0, config->hidden_size * sizeof *hidden);
    }
    if (s->internal.record && s->internal.record->dropout)
        dropout_rows(&s->kernels, s->internal.record->dropout, &(dropout_place){.site = DROPOUT_EMBEDDINGS}, hidden,
                     s->hidden_stride, config->hidden_size, first, rows);
    profile_lap(session_profiling(s), worker, PROFILE_EMBED, time);
}

void embed_run(deberta_session *s, const int32_t *ids, const int32_t *token_types)
{
    embed_loop loop = {
        .session = s, .ids = ids, .token_types = token_types, .noise = s->internal.interventions.changes.word_noise};
    parallel_for(s->executor, ceiling_divide(s->tokens, TASK_ROWS), embed_task, &loop);
}
