/* Computes attention of a few queries over all their keys, row by row, for observers (attention maps) and for talking
 * heads.
 *
 * SPDX-License-Identifier: MIT */
#include "core/encode/attention.h"

static size_t rows_of_block(const deberta_session *s) { return minimum(OBSERVED_ROWS, s->query_rows); }

bool row_loop_wants(const row_loop *loop, size_t head, deberta_component component)
{
    const deberta_observer *observer = loop->observer;
    if (!observer || !observer->on_attention) return false;
    pthread_mutex_lock(&loop->session->lock);
    bool wanted = loop->session->status == DEBERTA_OK;
    if (wanted && observer->wants_attention)
        wanted = observer->wants_attention(observer->context, loop->layer, head, component) != 0;
    pthread_mutex_unlock(&loop->session->lock);
    return wanted;
}

/* Calls the observer for one block; the caller holds the session's lock. */
static void show_block(deberta_session *s, const deberta_observer *observer, const deberta_attention_block *block)
{
    deberta_error error;
    if (s->status != DEBERTA_OK) return;
    const deberta_status status = observer->on_attention(observer->context, block);
    if (status == DEBERTA_OK) return;
    status_fail(&error, status, "the observer stopped the encode with status %d at layer %zu, sequence %zu, head %zu",
                status, block->layer, block->sequence, block->head);
    session_note_failure_locked(s, status, &error);
}

void row_loop_show(const row_loop *loop, const attention_head *head, const attention_queries *queries,
                   deberta_component component, const float *values)
{
    deberta_attention_block block = {
        .layer = loop->layer,
        .sequence = head->sequence,
        .head = head->head,
        .first_query = queries->first,
        .rows = queries->count,
        .keys = head->n,
        .stride = loop->session->observed_stride,
        .component = component,
        .values = values,
    };
    pthread_mutex_lock(&loop->session->lock);
    show_block(loop->session, loop->observer, &block);
    pthread_mutex_unlock(&loop->session->lock);
}

attention_queries row_loop_queries(const row_loop *loop, const attention_head *head, size_t block)
{
    const deberta_session *s = loop->session;
    size_t rows = rows_of_block(s), first = block * rows;
    return (attention_queries){
        .rows = head_query(s, head->head, head->first_token + first),
        .ld = s->model->padded_head,
        .first = first,
        .count = minimum(rows, head->n - first),
    };
}

/* Runs the softmax chunk by chunk, as everywhere; earlier chunks follow the running maximum. */
void row_loop_normalise(const row_loop *loop, const attention_head *head, size_t rows, float *values,
                        worker_scratch *scratch)
{
    const deberta_session *s = loop->session;
    size_t stride = s->observed_stride;
    for (size_t key = 0; key < head->n; key += KEY_CHUNK) {
        softmax_task task = {
            .rows = rows,
            .keys = minimum(KEY_CHUNK, head->n - key),
            .s = values + key,
            .lds = stride,
            .key_bias = head->key_bias ? head->key_bias + key : NULL,
            .maximum = scratch->maximum,
            .total = scratch->total,
            .rescale = scratch->rescale,
            .first = key == 0,
        };
        s->kernels.softmax_f32(&task);
        for (size_t i = 0; i < rows; i++) {
            for (size_t j = 0; j < key; j++) values[i * stride + j] *= scratch->rescale[i];
        }
    }
    for (size_t i = 0; i < rows; i++) {
        float factor = scratch->total[i] == 0 ? 0 : 1 / scratch->total[i];
        for (size_t j = 0; j < head->n; j++) values[i * stride + j] *= factor;
    }
}

size_t row_loop_blocks(const row_loop *loop)
{
    return ceiling_divide(session_sequence_length(loop->session, loop->sequence), rows_of_block(loop->session));
}
