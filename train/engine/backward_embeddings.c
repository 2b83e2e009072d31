/* Gradients of looked-up rows are summed into the tables of words, types and positions. SPDX-License-Identifier: MIT */
#include "train/engine/backward_embeddings.h"

#include "train/engine/backward_layer.h"
#include "train/engine/step_dropout.h"
#include "train/engine/table_rows.h"

static table_sum sum_of(const learner *l, const char *name)
{
    const parameter *table = parameter_find(&l->set, name);
    return table ? (table_sum){.sum = table->gradient, .width = table->shape[1]} : (table_sum){0};
}

/* Where the decoder's gradient of the table is at hand too, look-ups have a sum of their own. */
static table_sum sum_of_words(const step_state *step)
{
    step_memory *m = step->memory;
    table_sum words = sum_of(step->learner, "embeddings.word_embeddings.weight");
    if (m->looked_up) words.sum = m->looked_up;
    return words;
}

/* d_rows [tokens][ld] to the tables that a token's embedding is the sum of. A hole has not been looked up; the row of
 * the padding token learns nothing from look-ups. */
static void add_to_tables(const step_state *step, const step_batch *batch, const float *d_rows, size_t ld)
{
    const learner *l = step->learner;
    const deberta_session *s = l->session;
    const model_config *config = &l->model->config;
    const size_t tokens = s->tokens;
    int32_t *ids = step->memory->row_ids;
    for (size_t t = 0; t < tokens; t++)
        ids[t] = s->mask[t] && step->ids[t] != config->pad_token_id ? step->ids[t] : NO_ROW;
    const table_sum words = sum_of_words(step), positions = sum_of(l, "embeddings.position_embeddings.weight"),
                    types = sum_of(l, "embeddings.token_type_embeddings.weight");
    table_rows_add(step, &words, ids, d_rows, ld, tokens, step->part_bounds);
    if (config->position_biased_input) {
        for (size_t t = 0; t < tokens; t++) ids[t] = s->mask[t] ? s->position_ids[t] : NO_ROW;
        table_rows_add(step, &positions, ids, d_rows, ld, tokens, step->part_bounds);
    }
    if (config->token_types > 0) {
        for (size_t t = 0; t < tokens; t++)
            ids[t] = !s->mask[t] ? NO_ROW : batch->token_types ? batch->token_types[t] : 0;
        table_rows_add(step, &types, ids, d_rows, ld, tokens, step->part_bounds);
    }
}

void embeddings_backward(const step_state *step, const step_batch *batch)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const deberta_session *s = l->session;
    const model_config *config = &l->model->config;
    const size_t hs = s->hidden_stride, ns = s->normed_stride;
    const row_parts parts = {step->part_bounds, step->group.count};
    float *d_sum = m->passes[0].d_normed, *d_narrow = m->passes[0].d_attention_sum;
    clear_holes(l, m->carried.input, hs, config->hidden_size);
    step_dropout_rows(step, &(dropout_place){.site = DROPOUT_EMBEDDINGS}, m->carried.input, hs, config->hidden_size,
                      s->tokens);
    norm_backward(l, s->tokens, config->hidden_size, &l->model->embedding_norm, m->forward.embedded, hs,
                  m->carried.input, hs, d_sum, ns);
    norm_gradient(step, &l->model->embedding_norm, config->hidden_size, m->forward.embedded, hs, m->carried.input, hs,
                  parts);
    if (step->options->edit) step->options->edit->backward(step->options->edit->context, step, d_sum, ns);
    if (!step_wants_weights(step)) return;
    if (!l->model->embedding_projection.panels) {
        add_to_tables(step, batch, d_sum, ns);
        return;
    }
    matrix_gradient(step, &l->model->embedding_projection, d_sum, ns, m->forward.narrow, ns, parts);
    input_gradient(l, &l->transposed.projection, s->tokens, d_sum, ns, d_narrow, ns);
    add_to_tables(step, batch, d_narrow, ns);
}

void decoder_positions(const step_state *step, const head_rows *rows)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const deberta_session *s = l->session;
    if (!step_wants_weights(step)) return;
    for (size_t i = 0; i < rows->count; i++) m->row_ids[i] = s->position_ids[rows->tokens[i]];
    const table_sum positions = sum_of(l, "embeddings.position_embeddings.weight");
    table_rows_add(step, &positions, m->row_ids, m->d_first, s->hidden_stride, rows->count, rows->bounds);
}
