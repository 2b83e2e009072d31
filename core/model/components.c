/* SPDX-License-Identifier: MIT */
#include "core/model/components.h"

#include "core/model/attention.h"

const char *deberta_component_name(deberta_component component)
{
    static const char *const names[DEBERTA_COMPONENT_COUNT] = {"c2c", "c2p", "p2c", "logits", "probs"};
    return (unsigned)component < DEBERTA_COMPONENT_COUNT ? names[component] : "unknown";
}

/* A loop over (sequence, head, block of rows), or (sequence, block of rows) for talking heads. */
typedef struct component_loop {
    deberta_session *session;
    size_t layer, sequence;
    const deberta_observer *observer;
} component_loop;

static size_t rows_of_block(const deberta_session *s) { return minimum(OBSERVED_ROWS, s->query_rows); }

/* Nothing any more once the observer has stopped. */
static bool is_wanted(const component_loop *loop, size_t head, deberta_component component)
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

/* Called with the session's lock. */
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

static void emit(const component_loop *loop, const attention_head *head, const attention_queries *queries,
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

static attention_queries queries_of_block(const deberta_session *s, const attention_head *head, size_t block)
{
    size_t rows = rows_of_block(s), first = block * rows, padded = s->model->padded_head;
    return (attention_queries){
        .rows = s->queries + (head->head * s->tokens + head->first_token + first) * padded,
        .ld = padded,
        .first = first,
        .count = minimum(rows, head->n - first),
    };
}

/* Logits in place to probabilities, chunk by chunk as everywhere; earlier chunks follow the running maximum. */
static void normalise(const deberta_session *s, const attention_head *head, size_t rows, float *values,
                      worker_scratch *scratch)
{
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

/* ------------------------------------------------------------------------------------------------------- components */

static void component_task(void *context, size_t task, size_t worker)
{
    const component_loop *loop = context;
    deberta_session *s = loop->session;
    worker_scratch *scratch = &s->workers[worker];
    size_t heads = s->model->config.heads;
    attention_head head = attention_head_of(s, loop->layer, loop->sequence, task % heads);
    attention_queries queries = queries_of_block(s, &head, task / heads);
    unsigned terms = attention_terms_of(s);
    bool has_strip = false;
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++) {
        deberta_component component = (deberta_component)c;
        bool is_sum = component == DEBERTA_LOGITS || component == DEBERTA_PROBABILITIES;
        if (!is_sum && !(terms & 1u << component)) continue;
        if (component == DEBERTA_PROBABILITIES && s->model->config.talking_heads) continue;
        if (!is_wanted(loop, head.head, component)) continue;
        if (s->has_c2p && !has_strip) attention_strip(s, &head, &queries, scratch);
        has_strip = true;
        attention_logits(s, &head, &queries, 0, head.n, is_sum ? terms : 1u << component, scratch->observed,
                         s->observed_stride, scratch);
        if (component == DEBERTA_PROBABILITIES) normalise(s, &head, queries.count, scratch->observed, scratch);
        emit(loop, &head, &queries, component, scratch->observed);
    }
}

void components_run(deberta_session *s, size_t layer, size_t first, size_t end, const deberta_observer *observer)
{
    component_loop loop = {.session = s, .layer = layer, .observer = observer};
    for (loop.sequence = first; loop.sequence < end; loop.sequence++) {
        size_t n = session_sequence_length(s, loop.sequence);
        parallel_for(s->executor, ceiling_divide(n, rows_of_block(s)) * s->model->config.heads, component_task, &loop);
    }
}

/* ---------------------------------------------------------------------------------------------------- talking heads */

/* to[a] = sum over b of weights[a][b] from[b], head by head; from and to are [A][OBSERVED_ROWS][observed_stride]. */
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
        .b = head->values,
        .b_panel_stride = head->value_panel_stride,
        .c = to,
        .ldc = s->context_stride,
        .c_panel_stride = PANEL,
    };
    s->kernels.gemm_f32(&task);
}

static void talking_task(void *context, size_t block, size_t worker)
{
    const component_loop *loop = context;
    deberta_session *s = loop->session;
    const model_layer *layer = &s->model->layers[loop->layer];
    worker_scratch *scratch = &s->workers[worker];
    size_t heads = s->model->config.heads, head_floats = OBSERVED_ROWS * s->observed_stride;
    float *values = scratch->observed, *mixed = values + heads * head_floats;
    attention_head head = {0};
    attention_queries queries = {0};
    for (size_t a = 0; a < heads; a++) {
        head = attention_head_of(s, loop->layer, loop->sequence, a);
        queries = queries_of_block(s, &head, block);
        if (s->has_c2p) attention_strip(s, &head, &queries, scratch);
        attention_logits(s, &head, &queries, 0, head.n, attention_terms_of(s), values + a * head_floats,
                         s->observed_stride, scratch);
    }
    mix_heads(s, layer->head_logits, values, mixed, queries.count, head.n);
    for (size_t a = 0; a < heads; a++) normalise(s, &head, queries.count, mixed + a * head_floats, scratch);
    mix_heads(s, layer->head_weights, mixed, values, queries.count, head.n);
    for (size_t a = 0; a < heads; a++) {
        head = attention_head_of(s, loop->layer, loop->sequence, a);
        queries = queries_of_block(s, &head, block);
        mix_values(s, &head, &queries, values + a * head_floats);
        if (is_wanted(loop, a, DEBERTA_PROBABILITIES)) {
            emit(loop, &head, &queries, DEBERTA_PROBABILITIES, values + a * head_floats);
        }
    }
}

void talking_heads_run(deberta_session *s, size_t layer, size_t first, size_t end, const deberta_observer *observer)
{
    component_loop loop = {.session = s, .layer = layer, .observer = observer};
    for (loop.sequence = first; loop.sequence < end; loop.sequence++) {
        for (size_t a = 0; a < s->model->config.heads; a++) {
            attention_head head = attention_head_of(s, layer, loop.sequence, a);
            attention_pack_keys(s, &head);
        }
        size_t n = session_sequence_length(s, loop.sequence);
        parallel_for(s->executor, ceiling_divide(n, rows_of_block(s)), talking_task, &loop);
    }
}
