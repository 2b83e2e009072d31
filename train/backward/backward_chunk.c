/* Recomputes the logits and probabilities of a block of queries and a chunk of keys, and derives the gradients of
 * queries, keys, values and position tables (c2p, p2c) from products with dS.
 *
 * SPDX-License-Identifier: MIT */
#include "train/backward/backward_chunk.h"

#include "train/backward/position_strips.h"
#include "train/state/step_dropout.h"

/* -------------------------------------------------------------------------------------------------------------- scores */

/* Returns d_qkv at the first key of the chunk; which: 1 for keys, 2 for values. */
static float *d_keys_of(const chunk_work *c, size_t which)
{
    const step_state *step = c->step;
    const learner *l = step->learner;
    const attention_head *head = &c->work->head;
    return step->memory->d_qkv + (head->first_token + c->key) * l->qkv_stride + which * l->heads_width +
           head->head * l->model->padded_head;
}

/* Applies dropout to P, or to the gradient that comes back to it. */
static void drop_scores(const chunk_work *c, float *scores)
{
    const step_state *step = c->step;
    const layer_record *record = c->work->job->record;
    const dropout_place place = {
        .site = DROPOUT_PROBABILITIES, .layer = record->layer, .pass = record->pass, .head = c->work->head.head};
    for (size_t i = 0; step_drops(step) && i < c->block->piece_count; i++) {
        const query_run *piece = &c->block->pieces[i];
        dropout_probabilities(learner_kernels(step->learner), &step->dropout, &place, scores + piece->row * c->lds,
                              c->lds, c->work->head.first_token + piece->place, piece->count, c->key, c->keys);
    }
}

/* Returns how many rows of the block, from one on, were in one block of the forward pass. */
static attention_queries queries_from(const chunk_work *c, size_t row)
{
    const head_work *work = c->work;
    const size_t dp = c->step->learner->model->padded_head, rows = c->block->count - row;
    attention_queries queries = {
        .rows = c->queries + row * dp, .ld = dp, .first = c->block->pieces[0].place + row, .count = rows};
    if (!work->job->record->tokens) return queries;
    queries.tokens = work->job->record->tokens + c->block->row + row;
    queries.first = queries.tokens[0] - work->head.first_token;
    queries.count = attention_tokens_of_block(queries.tokens, rows, QUERY_BLOCK);
    return queries;
}

/* Recomputes the logits of the forward pass. A block that the forward pass also had keeps its strip from chunk to
 * chunk. */
static void make_logits(const chunk_work *c)
{
    const head_work *work = c->work;
    const deberta_session *s = c->step->learner->session;
    worker_scratch *forward = &work->scratch->forward;
    for (size_t row = 0, next; row < c->block->count; row = next) {
        const attention_queries queries = queries_from(c, row);
        next = row + queries.count;
        if (s->has_c2p && (c->key == 0 || queries.count < c->block->count))
            attention_strip(s, &work->head, &queries, forward);
        attention_logits(s, &work->head, &queries, c->key, c->keys, attention_terms_of(s),
                         forward->logits + row * c->lds, c->lds, forward);
    }
}

/* Writes P in place of the logits, and dS to scratch->gradients. It computes logits only where the record has no
 * exponentials. */
static void make_scores(const chunk_work *c)
{
    const head_work *work = c->work;
    const learner *l = c->step->learner;
    const deberta_session *s = l->session;
    attention_scratch *scratch = work->scratch;
    const layer_record *record = work->job->record;
    const size_t d = l->model->head_size, first = (size_t)(c->queries - s->queries) / l->model->padded_head;
    const float *exponentials = record_exponentials(record, first, work->head.n);
    if (!exponentials) make_logits(c);
    const gemm_task products = {
        .rows = c->block->count,
        .depth = d,
        .panels = ceiling_divide(c->keys, PANEL),
        .a = c->d_context,
        .lda = s->context_stride,
        .b = scratch->packed_values + c->key * d,
        .b_panel_stride = d * PANEL,
        .c = scratch->gradients,
        .ldc = c->lds,
        .c_panel_stride = PANEL,
    };
    s->kernels.gemm_f32(&products);
    drop_scores(c, scratch->gradients);
    const softmax_backward_task softmax = {
        .rows = c->block->count,
        .keys = c->keys,
        .s = scratch->forward.logits,
        .dp = scratch->gradients,
        .lds = c->lds,
        .lddp = c->lds,
        .key_bias = work->head.key_bias ? work->head.key_bias + c->key : NULL,
        .maximum = record->maximum + first,
        .inverse_total = record->inverse_total + first,
        .delta = c->keys < work->head.n ? scratch->delta : NULL,
        .exponentials = exponentials,
        .ld_exponentials = record->exponentials_stride,
    };
    s->kernels.softmax_backward_f32(&softmax);
    /* Values get their gradient from the probabilities after dropout, which multiplied them. */
    drop_scores(c, scratch->forward.logits);
}

/* ------------------------------------------------------------------------------------------------------------- content */

/* Adds to dk or dv: to [keys][qkv_stride] = or += a' b, over the block's queries. */
static void add_transposed(const chunk_work *c, const float *a, const float *b, size_t ldb, float *to)
{
    const learner *l = c->step->learner;
    const gemm_tn_task task = {
        .columns = c->keys,
        .panels = l->model->head_panels,
        .a = a,
        .lda = c->lds,
        .b = b,
        .ldb = ldb,
        .b_panel_stride = PANEL,
        .c = to,
        .ldc = l->qkv_stride,
        .c_panel_stride = PANEL,
        .rows = c->block->count,
        .accumulate = !c->block->begins,
    };
    l->session->kernels.gemm_tn_f32(&task);
}

static void content_backward(const chunk_work *c)
{
    const head_work *work = c->work;
    const learner *l = c->step->learner;
    const attention_scratch *scratch = work->scratch;
    const gemm_task d_queries = {
        .rows = c->block->count,
        .depth = c->keys,
        .panels = l->model->head_panels,
        .a = scratch->gradients,
        .lda = c->lds,
        .b = scratch->key_columns + c->key * PANEL,
        .b_panel_stride = work->head.n * PANEL,
        .c = c->d_queries,
        .ldc = work->job->ld_queries,
        .c_panel_stride = PANEL,
        .accumulate = c->key > 0,
    };
    add_transposed(c, scratch->forward.logits, c->d_context, l->session->context_stride, d_keys_of(c, 2));
    add_transposed(c, scratch->gradients, c->queries, l->model->padded_head, d_keys_of(c, 1));
    l->session->kernels.gemm_f32(&d_queries);
}

/* ----------------------------------------------------------------------------------------------------------- positions */

/* Finds the rows of the relative table that the chunk's distances reach. */
static void rows_of_chunk(const chunk_work *c, size_t *first, size_t *count)
{
    const query_block *block = c->block;
    const query_run *last_piece = &block->pieces[block->piece_count - 1];
    const ptrdiff_t key = (ptrdiff_t)c->key, last_key = key + (ptrdiff_t)c->keys - 1;
    const ptrdiff_t last_place = (ptrdiff_t)(last_piece->place + last_piece->count) - 1;
    size_t last;
    position_map_rows(&c->step->learner->session->positions, (ptrdiff_t)block->pieces[0].place - last_key,
                      last_place - key, first, &last);
    *count = last - *first + 1;
}

static void fold_c2p(const chunk_work *c, const position_strips *strip)
{
    const head_work *work = c->work;
    const learner *l = c->step->learner;
    const position_map *map = &l->session->positions;
    position_strips_clear(strip);
    for (size_t i = 0; i < c->block->piece_count; i++) {
        const query_run *piece = &c->block->pieces[i];
        const fold_runs_task task = {
            .rows = piece->count,
            .columns = c->keys,
            .s = work->scratch->gradients + piece->row * c->lds,
            .row_step = c->lds,
            .column_step = 1,
            .place_of = map->position_of + ((ptrdiff_t)c->key - (ptrdiff_t)piece->place),
            .first = (int32_t)strip->first,
            .unit_steps = map->unit_steps,
            .strip = work->scratch->strip + piece->row * l->fold_stride,
            .ld_strip = l->fold_stride,
        };
        l->session->kernels.fold_runs_f32(&task);
    }
}

/* Computes C_ix = sum of dS_ij over the keys j that read place x: dq += C PK, dPK += C' q. */
static void c2p_backward(const chunk_work *c)
{
    const head_work *work = c->work;
    const step_state *step = c->step;
    const learner *l = step->learner;
    const position_map *map = &l->session->positions;
    const size_t rows = l->model->relative_rows, dp = l->model->padded_head;
    position_strips strip = {.learner = l,
                             .strips = work->scratch->strip,
                             .ld = l->fold_stride,
                             .rows = c->block->count,
                             .reach = c->keys - 1};
    size_t first_row;
    if (work->job->record->tokens) strip.tokens = work->job->record->tokens + c->block->row;
    rows_of_chunk(c, &first_row, &strip.places);
    strip.first = (size_t)map->last_row - (first_row + strip.places - 1);
    strip.place_of = map->position_of + ((ptrdiff_t)c->key - (ptrdiff_t)c->block->pieces[0].place);
    if (strip.tokens || !position_strips_skew(&strip, work->scratch->gradients, c->lds, c->keys)) fold_c2p(c, &strip);
    const strip_products products = {
        .table = step_table_columns(step, work->head.sequence) + work->head.head * rows * dp + strip.first * PANEL,
        .d_rows = c->d_queries,
        .ld_rows = work->job->ld_queries,
        .vectors = c->queries,
        .d_table = work->tables[TABLE_KEYS] + strip.first * dp,
    };
    position_strips_multiply(&strip, &products);
}

/* Computes E_jx = sum of dS_ij over the queries i that read row x: dk += E PQ, dPQ += E' k. */
static void p2c_backward(const chunk_work *c)
{
    const head_work *work = c->work;
    const step_state *step = c->step;
    const learner *l = step->learner;
    const deberta_session *s = l->session;
    const size_t rows = l->model->relative_rows, dp = l->model->padded_head;
    const query_run *last_piece = &c->block->pieces[c->block->piece_count - 1];
    position_strips strip = {.learner = l,
                             .strips = work->scratch->strip,
                             .ld = l->fold_stride,
                             .rows = c->keys,
                             .reach = last_piece->place + last_piece->count - 1 - c->block->pieces[0].place};
    rows_of_chunk(c, &strip.first, &strip.places);
    strip.place_of = s->positions.row_of + ((ptrdiff_t)c->block->pieces[0].place - (ptrdiff_t)c->key);
    position_strips_clear(&strip);
    for (size_t i = 0; i < c->block->piece_count; i++) {
        const query_run *piece = &c->block->pieces[i];
        const fold_runs_task task = {
            .rows = c->keys,
            .columns = piece->count,
            .s = work->scratch->gradients + piece->row * c->lds,
            .row_step = 1,
            .column_step = c->lds,
            .place_of = s->positions.row_of + ((ptrdiff_t)piece->place - (ptrdiff_t)c->key),
            .first = (int32_t)strip.first,
            .unit_steps = s->positions.unit_steps,
            .strip = work->scratch->strip,
            .ld_strip = l->fold_stride,
        };
        s->kernels.fold_runs_f32(&task);
    }
    const strip_products products = {
        .table = step_table_columns(step, work->head.sequence) + rows * l->heads_width + work->head.head * rows * dp +
                 strip.first * PANEL,
        .d_rows = d_keys_of(c, 1),
        .ld_rows = l->qkv_stride,
        .vectors = head_key(s, work->head.head, work->head.first_token + c->key),
        .d_table = work->tables[TABLE_QUERIES] + strip.first * dp,
    };
    position_strips_multiply(&strip, &products);
}

void chunk_backward(const chunk_work *c)
{
    const deberta_session *s = c->step->learner->session;
    make_scores(c);
    content_backward(c);
    if (s->has_c2p) c2p_backward(c);
    if (s->has_p2c) p2c_backward(c);
}
