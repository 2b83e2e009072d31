/* Computes the attention of v1 with talking heads, which mix the logits of all heads before the softmax, and the
 * probabilities after it (SPEC 3.6).
 *
 * SPDX-License-Identifier: MIT */
#include "core/encode/encoder_parts.h"

#include "core/encode/attention.h"

/* Computes to[a] = sum over b of weights[a][b] from[b], head by head; from and to are
 * [A][OBSERVED_ROWS][observed_stride]. */
static void mix_heads(const deberta_session *s, const float *weights, const float *from, float *to, size_t rows,
                      size_t keys)
{
    size_t heads = s->model->config.heads, head_floats = OBSERVED_ROWS * s->observed_stride;
    for (size_t a = 0; a < heads; a++) {
        for (size_t i = 0; i < rows; i++) {
            float *out = to + a * head_floats + i * s->observed_stride;
            for (size_t j = 0; j < keys; j++) out[j] = 0;
            for (size_t b = 0; b < heads; b++) {
                const float *in = from + b * head_floats + i * s->observed_stride;
                float factor = weights[a * row_stride(heads) + b];
                for (size_t j = 0; j < keys; j++) out[j] += factor * in[j];
            }
        }
    }
}

static void mix_values(const deberta_session *s, const attention_head *head, const attention_queries *queries,
                       const float *probabilities)
{
    float *to =
        s->context + (head->first_token + queries->first) * s->context_stride + head->head * s->model->padded_head;
    gemm_task task = {
        .rows = queries->count,
        .depth = head->n,
        .panels = s->model->head_panels,
        .a = probabilities,
        .lda = s->observed_stride,
        .b = head_value(s, head->head, head->first_token),
        .b_panel_stride = s->tokens * PANEL,
        .c = to,
        .ldc = s->context_stride,
        .c_panel_stride = PANEL,
    };
    s->kernels.gemm_f32(&task);
}

static void talking_task(void *context, size_t block, size_t worker)
{
    const row_loop *loop = context;
    deberta_session *s = loop->session;
    const model_layer *layer = &s->model->layers[loop->layer];
    worker_scratch *scratch = &s->workers[worker];
    size_t heads = s->model->config.heads, head_floats = OBSERVED_ROWS * s->observed_stride;
    float *values = scratch->observed, *mixed = values + heads * head_floats;
    attention_head head = {0};
    attention_queries queries = {0};
    for (size_t a = 0; a < heads; a++) {
        head = attention_head_of(s, loop->layer, loop->sequence, a);
        attention_head_patch(s, loop->layer, &head, NULL, 0, scratch);
        queries = row_loop_queries(loop, &head, block);
        if (s->has_c2p) attention_strip(s, &head, &queries, scratch);
        attention_logits(s, &head, &queries, 0, head.n, attention_terms_of(s), values + a * head_floats,
                         s->observed_stride, scratch);
    }
    mix_heads(s, layer->head_logits, values, mixed, queries.count, head.n);
    for (size_t a = 0; a < heads; a++) row_loop_normalise(loop, &head, queries.count, mixed + a * head_floats, scratch);
    mix_heads(s, layer->head_weights, mixed, values, queries.count, head.n);
    for (size_t a = 0; a < heads; a++) {
        head = attention_head_of(s, loop->layer, loop->sequence, a);
        queries = row_loop_queries(loop, &head, block);
        mix_values(s, &head, &queries, values + a * head_floats);
        if (row_loop_wants(loop, a, DEBERTA_PROBABILITIES)) {
            row_loop_show(loop, &head, &queries, DEBERTA_PROBABILITIES, values + a * head_floats);
        }
    }
}

void talking_heads_run(deberta_session *s, size_t layer, size_t first, size_t end, const deberta_observer *observer)
{
    row_loop loop = {.session = s, .layer = layer, .observer = observer};
    for (loop.sequence = first; loop.sequence < end; loop.sequence++) {
        for (size_t a = 0; a < s->model->config.heads; a++) {
            attention_head head = attention_head_of(s, layer, loop.sequence, a);
            attention_head_pack(s, &head, &s->workers[0]);
        }
        parallel_for(s->executor, row_loop_blocks(&loop), talking_task, &loop);
    }
}
