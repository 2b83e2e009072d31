/* Runs the last layer for some positions: their queries attend to the keys that the encode left in memory.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/encode/encoder_parts.h"

#include "core/encode/attention.h"

/* A range of the requested positions, from sequences that follow each other and whose keys are in memory together. */
typedef struct rows_loop {
    deberta_session *session;
    const size_t *positions; /* [count] */
    size_t count, row, end;
    size_t sequence; /* sequence of the first position */
} rows_loop;

/* Runs one head of one sequence over all its positions. */
static void head_task(void *context, size_t task, size_t worker)
{
    const rows_loop *loop = context;
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
static void attend(deberta_session *s, const size_t *positions, size_t count)
{
    rows_loop loop = {.session = s, .positions = positions, .count = count};
    for (; loop.row < count; loop.row = loop.end) {
        loop.sequence = session_sequence_of(s, positions[loop.row]);
        const size_t group_end = attention_begin_group(s, loop.sequence);
        size_t last = loop.sequence;
        for (loop.end = loop.row; loop.end < count; loop.end++) {
            const size_t sequence = session_sequence_of(s, positions[loop.end]);
            if (sequence < last || sequence >= group_end) break;
            last = sequence;
        }
        parallel_for(s->executor, (last - loop.sequence + 1) * s->model->config.heads, head_task, &loop);
    }
}

void last_layer_run(deberta_session *s, const size_t *positions, size_t count)
{
    const size_t index = s->model->config.layers - 1;
    const model_layer *layer = &s->model->layers[index];
    attention_project(s, layer, count, s->asked_rows, PROJECT_QUERIES);
    attend(s, positions, count);
    patches_make_heads(s, index, positions, count);
    feed_forward_run(s, layer, count, s->context, s->asked_rows);
}

float *last_layer_rows(deberta_session *s, const size_t *positions, size_t count, size_t *stride)
{
    const size_t hidden = s->model->config.hidden_size;
    float *rows = s->left_to_heads ? s->asked_rows : s->context;
    *stride = s->left_to_heads ? s->hidden_stride : s->context_stride;
    for (size_t i = 0; i < count; i++)
        memcpy(rows + i * *stride, s->hidden + positions[i] * s->hidden_stride, hidden * sizeof *rows);
    if (s->left_to_heads) last_layer_run(s, positions, count);
    return rows;
}
