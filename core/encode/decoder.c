/* Runs the Enhanced Mask Decoder: queries with absolute positions attend to the keys that the last layer kept, twice
 * (SPEC 8.3).
 *
 * SPDX-License-Identifier: MIT */
#include "core/encode/encoder_parts.h"

#include "core/encode/attention.h"

/* A range of the requested positions, from sequences that follow each other and whose keys are in memory together. */
typedef struct emd_loop {
    deberta_session *session;
    const size_t *positions; /* [count] */
    size_t count, row, end;
    size_t sequence; /* sequence of the first position */
} emd_loop;

/* Runs one head of one sequence over all its positions. */
static void emd_head_task(void *context, size_t task, size_t worker)
{
    const emd_loop *loop = context;
    deberta_session *s = loop->session;
    const size_t heads = s->model->config.heads, head_index = task % heads, sequence = loop->sequence + task / heads;
    const size_t padded = s->model->padded_head, *positions = loop->positions;
    size_t row =
        loop->row + session_positions_before(positions + loop->row, loop->end - loop->row, s->starts[sequence]);
    const size_t end = row + session_positions_before(positions + row, loop->end - row, s->starts[sequence + 1]);
    if (row == end) return;
    attention_head head = attention_head_of(s, s->model->config.layers - 1, sequence, head_index);
    attention_head_pack(s, &head, &s->workers[worker]);
    attention_head_patch(s, s->model->config.layers - 1, &head, positions, loop->count, &s->workers[worker]);
    for (size_t count; row < end; row += count) {
        count = attention_tokens_of_block(positions + row, end - row, s->query_rows);
        attention_queries queries = {
            .rows = head_query(s, head_index, row),
            .ld = padded,
            .first = positions[row] - head.first_token,
            .count = count,
            .tokens = positions + row,
        };
        attention_block(s, &head, &queries, s->context + row * s->context_stride + head_index * padded,
                        s->context_stride, &s->workers[worker]);
    }
}

/* Runs the attention of all positions, which a caller may request in any order: a loop takes those that follow each
 * other with ascending sequences of one group. */
static void emd_attention(deberta_session *s, const size_t *positions, size_t count)
{
    emd_loop loop = {.session = s, .positions = positions, .count = count};
    for (; loop.row < count; loop.row = loop.end) {
        loop.sequence = session_sequence_of(s, positions[loop.row]);
        const size_t group_end = attention_begin_group(s, loop.sequence);
        size_t last = loop.sequence;
        for (loop.end = loop.row; loop.end < count; loop.end++) {
            const size_t sequence = session_sequence_of(s, positions[loop.end]);
            if (sequence < last || sequence >= group_end) break;
            last = sequence;
        }
        parallel_for(s->executor, (last - loop.sequence + 1) * s->model->config.heads, emd_head_task, &loop);
    }
}

/* Returns the factor of a token's row of the position table: 1, unless an attribution follows a path there. */
static float position_factor(const deberta_session *s, size_t token)
{
    const position_change *change = session_position_change(s);
    return change && change->absolute ? change->absolute[session_sequence_of(s, token)] : 1;
}

void decoder_run(deberta_session *s, const size_t *positions, size_t count)
{
    enum { PASSES = 2 };
    const deberta_model *model = s->model;
    const model_layer *layer = &model->layers[model->config.layers - 1];
    size_t hidden = model->config.hidden_size, table_stride = row_stride(model->config.embedding_size);
    for (size_t i = 0; i < count; i++) {
        const float *position = model->position_table + (size_t)s->position_ids[positions[i]] * table_stride;
        const float *input = s->decoder_input + positions[i] * s->hidden_stride;
        float *row = s->decoder_rows + i * s->hidden_stride;
        const float factor = position_factor(s, positions[i]);
        for (size_t e = 0; e < hidden; e++) row[e] = input[e] + factor * position[e];
    }
    for (size_t pass = 0; pass < PASSES; pass++) {
        if (s->internal.record) session_record(s, &s->internal.record->decoder[pass], s->decoder_rows, count);
        attention_project(s, layer, count, s->decoder_rows, PROJECT_QUERIES);
        emd_attention(s, positions, count);
        patches_make_heads(s, model->config.layers - 1, positions, count);
        feed_forward_run(s, layer, count, s->context, s->decoder_rows);
        if (s->internal.record) session_detach(s);
    }
}

deberta_status decoder_check(const deberta_session *s, const size_t *positions, size_t count, deberta_error *err)
{
    const model_config *config = &s->model->config;
    if (config->position_biased_input) return DEBERTA_OK;
    if (!s->decoder_input) {
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "the Enhanced Mask Decoder needs a session with DEBERTA_KEEP_DECODER_INPUT");
    }
    if (s->first_layer >= config->layers)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "the Enhanced Mask Decoder needs the last layer, which an encode from H[%zu] does not run",
                     s->first_layer);
    for (size_t i = 0; i < count; i++) {
        int32_t position = s->position_ids[positions[i]];
        if (position >= 0 && (size_t)position < config->max_positions) continue;
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "token %zu has position %d, but the position table of this model has %zu rows", positions[i],
                     (int)position, config->max_positions);
    }
    return patches_check_decoder(s, positions, count, err);
}
