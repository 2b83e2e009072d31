/* SPDX-License-Identifier: MIT */
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
static table_sum sum_of_words(const learner *l)
{
    table_sum words = sum_of(l, "embeddings.word_embeddings.weight");
    if (l->looked_up) words.sum = l->looked_up;
    return words;
}

/* d_rows [tokens][ld] to the tables that a token's embedding is the sum of. A hole has not been looked up; the row of
 * the padding token learns nothing from look-ups. */
static void add_to_tables(learner *l, const step_batch *batch, const float *d_rows, size_t ld)
{
    const deberta_session *s = l->session;
    const model_config *config = &l->model->config;
    const size_t tokens = s->tokens;
    int32_t *ids = l->row_ids;
    for (size_t t = 0; t < tokens; t++) ids[t] = s->mask[t] && l->ids[t] != config->pad_token_id ? l->ids[t] : NO_ROW;
    const table_sum words = sum_of_words(l), positions = sum_of(l, "embeddings.position_embeddings.weight"),
                    types = sum_of(l, "embeddings.token_type_embeddings.weight");
    table_rows_add(l, &words, ids, d_rows, ld, tokens, l->part_bounds);
    if (config->position_biased_input) {
        for (size_t t = 0; t < tokens; t++) ids[t] = s->mask[t] ? s->position_ids[t] : NO_ROW;
        table_rows_add(l, &positions, ids, d_rows, ld, tokens, l->part_bounds);
    }
    if (config->token_types > 0) {
        for (size_t t = 0; t < tokens; t++)
            ids[t] = !s->mask[t] ? NO_ROW : batch->token_types ? batch->token_types[t] : 0;
        table_rows_add(l, &types, ids, d_rows, ld, tokens, l->part_bounds);
    }
}

void embeddings_backward(learner *l, const step_batch *batch)
{
    const deberta_session *s = l->session;
    const model_config *config = &l->model->config;
    const size_t hs = s->hidden_stride, ns = s->normed_stride;
    const row_parts parts = {l->part_bounds, l->group.count};
    float *d_sum = l->passes[0].d_normed, *d_narrow = l->passes[0].d_attention_sum;
    clear_holes(l, l->d_input, hs, config->hidden_size);
    step_dropout_rows(l, &(dropout_place){.site = DROPOUT_EMBEDDINGS}, l->d_input, hs, config->hidden_size, s->tokens);
    norm_backward(l, s->tokens, config->hidden_size, &l->model->embedding_norm, l->forward.embedded, hs, l->d_input, hs,
                  d_sum, ns);
    norm_gradient(l, &l->model->embedding_norm, config->hidden_size, l->forward.embedded, hs, l->d_input, hs, parts);
    if (l->edit_backward) l->edit_backward(l->edit_context, d_sum, ns);
    if (!l->weights_wanted) return;
    if (!l->model->embedding_projection.panels) {
        add_to_tables(l, batch, d_sum, ns);
        return;
    }
    matrix_gradient(l, &l->model->embedding_projection, d_sum, ns, l->forward.narrow, ns, parts);
    input_gradient(l, &l->transposed_projection, s->tokens, d_sum, ns, d_narrow, ns);
    add_to_tables(l, batch, d_narrow, ns);
}

void decoder_positions(learner *l, const head_rows *rows)
{
    const deberta_session *s = l->session;
    if (!l->weights_wanted) return;
    for (size_t i = 0; i < rows->count; i++) l->row_ids[i] = s->position_ids[rows->tokens[i]];
    const table_sum positions = sum_of(l, "embeddings.position_embeddings.weight");
    table_rows_add(l, &positions, l->row_ids, l->d_first, s->hidden_stride, rows->count, rows->bounds);
}
