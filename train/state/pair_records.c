/* Splits the records of the two passes into halves, guards them, and joins them layer by layer.
 *
 * SPDX-License-Identifier: MIT */
#include "train/state/pair_records.h"

#include <string.h>

#include "core/base/memory.h"
#include "core/encode/encoder.h"

/* ------------------------------------------------------------------------------------------------------------ halves */

static layer_record record_from(const learner *l, const layer_record *whole, size_t first)
{
    const deberta_session *s = l->session;
    const size_t heads = l->model->config.heads;
    layer_record half = *whole;
    half.input += first * s->hidden_stride;
    half.queries += first * l->heads_width;
    half.keys += first * l->heads_width;
    half.values += first * l->heads_width;
    half.context += first * s->context_stride;
    half.maximum += first * heads;
    half.inverse_total += first * heads;
    half.attention_sum += first * s->normed_stride;
    half.normed += first * s->normed_stride;
    half.inner += first * s->inner_stride;
    half.output_sum += first * s->hidden_stride;
    return half;
}

static embedding_rows rows_from(const learner *l, const embedding_rows *whole, size_t first)
{
    const size_t hs = l->session->hidden_stride, convolved = l->model->config.convolution_width ? first : 0;
    return (embedding_rows){
        .embedded = whole->embedded + first * hs,
        .narrow = whole->narrow + (l->model->embedding_projection.panels ? first * l->session->normed_stride : 0),
        .convolution = whole->convolution + convolved * hs,
        .convolution_sum = whole->convolution_sum + convolved * hs,
    };
}

static void use_records(step_memory *m, layer_record *layers, const embedding_rows *rows)
{
    m->records = layers;
    m->forward.layers = layers;
    m->forward.embedded = rows->embedded;
    m->forward.narrow = rows->narrow;
    m->forward.convolution = rows->convolution;
    m->forward.convolution_sum = rows->convolution_sum;
}

/* ---------------------------------------------------------------------------------------------------- who may touch it */

/* Function memory_forbid or memory_permit. */
typedef void (*touch_memory)(const void *start, size_t bytes);

static void touch_layer(const learner *l, pair_half which, size_t layer, touch_memory touch)
{
    const deberta_session *s = l->session;
    const layer_record *half = &l->memory.pairs.half_layers[which][layer];
    const size_t heads = l->model->config.heads;
    const struct {
        const float *start;
        size_t width;
    } pieces[] = {
        {half->input, s->hidden_stride}, {half->queries, l->heads_width},         {half->keys, l->heads_width},
        {half->values, l->heads_width},  {half->context, s->context_stride},      {half->maximum, heads},
        {half->inverse_total, heads},    {half->attention_sum, s->normed_stride}, {half->normed, s->normed_stride},
        {half->inner, s->inner_stride},  {half->output_sum, s->hidden_stride},
    };
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        touch(pieces[i].start, l->memory.pairs.kept[which] * pieces[i].width * sizeof(float));
}

static void touch_layers(const learner *l, pair_half which, touch_memory touch)
{
    for (size_t i = 0; i < l->model->config.layers; i++) touch_layer(l, which, i, touch);
}

static void touch_embeddings(const learner *l, pair_half which, touch_memory touch)
{
    const deberta_session *s = l->session;
    const embedding_rows *half = &l->memory.pairs.half_rows[which];
    const size_t kept = l->memory.pairs.kept[which], bytes = kept * s->hidden_stride * sizeof(float);
    const size_t convolved = l->model->config.convolution_width ? bytes : 0,
                 projected = l->model->embedding_projection.panels ? kept * s->normed_stride * sizeof(float) : 0;
    touch(half->embedded, bytes);
    touch(half->narrow, projected);
    touch(half->convolution, convolved);
    touch(half->convolution_sum, convolved);
}

/* -------------------------------------------------------------------------------------------------------- recording */

/* No code uses the waiting half until both are joined. */
void pair_records_enter(const step_state *step, pair_half half, size_t tokens)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const pair_half other = half == PAIR_CLEAN ? PAIR_MOVED : PAIR_CLEAN;
    pair_memory *pairs = &m->pairs;
    const size_t first = half == PAIR_MOVED ? tokens : 0;
    for (size_t i = 0; i < l->model->config.layers; i++)
        pairs->half_layers[half][i] = record_from(l, &pairs->layers[i], first);
    pairs->half_rows[half] = rows_from(l, &pairs->rows, first);
    pairs->half = half;
    pairs->is_joined = false;
    touch_layers(l, other, memory_forbid);
    touch_embeddings(l, other, memory_forbid);
    use_records(m, pairs->half_layers[half], &pairs->half_rows[half]);
}

void pair_records_keep(const step_state *step)
{
    step_memory *m = step->memory;
    const deberta_session *s = step->learner->session;
    m->pairs.kept[m->pairs.half] = s->tokens;
    memcpy(m->pairs.hidden[m->pairs.half], s->hidden, s->tokens * s->hidden_stride * sizeof *s->hidden);
}

void pair_records_leave(learner *l)
{
    step_memory *m = &l->memory;
    for (pair_half half = PAIR_CLEAN; half < PAIR_HALVES; half++) {
        touch_layers(l, half, memory_permit);
        touch_embeddings(l, half, memory_permit);
        m->pairs.kept[half] = 0;
    }
    m->pairs.is_joined = false;
    use_records(m, m->pairs.layers, &m->pairs.rows);
}

/* ------------------------------------------------------------------------------------------------------------ joining */

/* An array [blocks][tokens][width] of both halves and of the batch; no blocks where the model lacks it. */
typedef struct joined_piece {
    const float *halves[PAIR_HALVES];
    float *to;
    size_t blocks, width;
} joined_piece;

typedef struct join_loop {
    const step_state *step;
    const joined_piece *pieces;
} join_loop;

/* Joins one shard of one piece. */
static void join_task(void *context, size_t task, size_t worker)
{
    const join_loop *loop = context;
    const step_state *step = loop->step;
    const joined_piece *piece = &loop->pieces[task / step->group.count];
    const size_t *bounds = step->part_bounds + task % step->group.count;
    const size_t tokens = step->learner->session->tokens, count = (bounds[1] - bounds[0]) / PAIR_HALVES;
    (void)worker;
    for (size_t block = 0; block < piece->blocks; block++)
        for (size_t half = 0; half < PAIR_HALVES; half++) {
            const size_t from = (block * tokens + bounds[0]) / PAIR_HALVES,
                         to = block * tokens + bounds[0] + half * count;
            memcpy(piece->to + to * piece->width, piece->halves[half] + from * piece->width,
                   count * piece->width * sizeof *piece->to);
        }
}

static void join_pair_records(const step_state *step, const joined_piece *pieces, size_t count)
{
    join_loop loop = {.step = step, .pieces = pieces};
    parallel_for(step->learner->session->executor, count * step->group.count, join_task, &loop);
}

#define PIECE(clean, moved, joined, member, blocks, width)                                                             \
    {                                                                                                                  \
        {(clean)->member, (moved)->member}, (joined)->member, blocks, width                                            \
    }

void pair_records_join(const step_state *step, const deberta_batch *batch)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const pair_memory *pairs = &m->pairs;
    deberta_session *s = l->session;
    const embedding_rows *clean = &pairs->half_rows[PAIR_CLEAN], *moved = &pairs->half_rows[PAIR_MOVED],
                         *to = &pairs->joined_rows;
    const size_t hs = s->hidden_stride;
    const size_t projected = l->model->embedding_projection.panels ? 1 : 0;
    const size_t convolved = l->model->config.convolution_width ? 1 : 0;
    encoder_take_batch(s, batch);
    for (pair_half half = PAIR_CLEAN; half < PAIR_HALVES; half++) {
        touch_layers(l, half, memory_forbid);
        touch_embeddings(l, half, memory_permit);
    }
    const joined_piece pieces[] = {
        {{pairs->hidden[PAIR_CLEAN], pairs->hidden[PAIR_MOVED]}, s->hidden, 1, hs},
        PIECE(clean, moved, to, embedded, 1, hs),
        PIECE(clean, moved, to, narrow, projected, s->normed_stride),
        PIECE(clean, moved, to, convolution, convolved, hs),
        PIECE(clean, moved, to, convolution_sum, convolved, hs),
    };
    executor_begin(s->executor);
    join_pair_records(step, pieces, sizeof pieces / sizeof *pieces);
    executor_end(s->executor);
    use_records(m, pairs->joined_layers, to);
    m->pairs.is_joined = true;
}

void pair_records_restore(const step_state *step, size_t layer)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const deberta_session *s = l->session;
    const size_t heads = l->model->config.heads, dp = l->model->padded_head;
    const layer_record *clean = &m->pairs.half_layers[PAIR_CLEAN][layer],
                       *moved = &m->pairs.half_layers[PAIR_MOVED][layer], *to = &m->pairs.joined_layers[layer];
    const joined_piece pieces[] = {
        PIECE(clean, moved, to, inner, 1, s->inner_stride),
        PIECE(clean, moved, to, input, 1, s->hidden_stride),
        PIECE(clean, moved, to, queries, heads, dp),
        PIECE(clean, moved, to, keys, heads, dp),
        PIECE(clean, moved, to, values, l->heads_width / PANEL, PANEL),
        PIECE(clean, moved, to, context, 1, s->context_stride),
        PIECE(clean, moved, to, maximum, heads, 1),
        PIECE(clean, moved, to, inverse_total, heads, 1),
        PIECE(clean, moved, to, attention_sum, 1, s->normed_stride),
        PIECE(clean, moved, to, normed, 1, s->normed_stride),
        PIECE(clean, moved, to, output_sum, 1, s->hidden_stride),
    };
    for (pair_half half = PAIR_CLEAN; half < PAIR_HALVES; half++) touch_layer(l, half, layer, memory_permit);
    join_pair_records(step, pieces, sizeof pieces / sizeof *pieces);
    for (pair_half half = PAIR_CLEAN; half < PAIR_HALVES; half++) touch_layer(l, half, layer, memory_forbid);
}
