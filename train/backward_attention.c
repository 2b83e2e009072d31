/* SPDX-License-Identifier: MIT */
#include "train/backward_attention.h"

#include <string.h>

#include "core/model/attention.h"
#include "train/position_strips.h"
#include "train/step_dropout.h"

/* One head of one sequence at work, with its table gradients. */
typedef struct head_work {
    const attention_backward *job;
    attention_scratch *scratch;
    attention_head head;
    size_t part;
} head_work;

/* At most QUERY_BLOCK rows of one sequence. They follow each other in memory; in the sequence they are pieces, one for
 * an ordinary layer, as many as there are runs of labelled tokens for the decoder. */
typedef struct query_block {
    size_t row, count;             /* of the record's rows */
    query_run pieces[QUERY_BLOCK]; /* their rows: of the block */
    size_t piece_count;
} query_block;

/* A block of queries and a chunk of keys. */
typedef struct chunk_work {
    const head_work *work;
    const query_block *block;
    const float *queries, *d_context; /* of the block's first row, at the head's columns */
    float *d_queries;
    size_t key, keys, lds;
} chunk_work;

/* -------------------------------------------------------------------------------------------------- layouts of tables */

typedef struct table_loop {
    learner *learner;
    size_t layer;
} table_loop;

/* PK lies in panels of 16 places, PQ in rows of dp: both become [dp / 16][2K][16]. */
static void turn_tables(void *context, size_t head, size_t worker)
{
    const table_loop *loop = context;
    learner *l = loop->learner;
    const deberta_model *model = l->model;
    const model_layer *layer = &model->layers[loop->layer];
    const size_t rows = model->relative_rows, d = model->head_size, dp = model->padded_head;
    float *keys = l->table_columns + head * rows * dp, *queries = keys + rows * l->heads_width;
    const float *packed =
        layer->position_keys ? layer->position_keys + head * ceiling_divide(rows, PANEL) * d * PANEL : NULL;
    const float *natural = layer->position_queries ? layer->position_queries + head * rows * dp : NULL;
    (void)worker;
    for (size_t row = l->reached[TABLE_KEYS].first; packed && row < l->reached[TABLE_KEYS].end; row++)
        for (size_t c = 0; c < d; c++)
            keys[(c / PANEL * rows + row) * PANEL + c % PANEL] = packed[(row / PANEL * d + c) * PANEL + row % PANEL];
    for (size_t row = l->reached[TABLE_QUERIES].first; natural && row < l->reached[TABLE_QUERIES].end; row++)
        for (size_t panel = 0; panel < dp / PANEL; panel++)
            memcpy(queries + (panel * rows + row) * PANEL, natural + row * dp + panel * PANEL, PANEL * sizeof *queries);
}

void attention_backward_begin(learner *l, size_t layer)
{
    table_loop loop = {.learner = l, .layer = layer};
    if (l->model->relative_rows > 0) parallel_for(l->session->executor, l->model->config.heads, turn_tables, &loop);
}

/* ---------------------------------------------------------------------------------------------------- one sequence */

static void clear_table(float *table, const table_range *reached, size_t dp)
{
    memset(table + reached->first * dp, 0, (reached->end - reached->first) * dp * sizeof *table);
}

/* Keys and values of the sequence in the layouts that the products want. */
static void begin_sequence(head_work *work, size_t sequence, size_t head_index)
{
    learner *l = work->job->learner;
    deberta_session *s = l->session;
    const deberta_model *model = l->model;
    attention_scratch *scratch = work->scratch;
    const size_t d = model->head_size, dp = model->padded_head;
    attention_head head = attention_head_of(s, work->job->layer, sequence, head_index);
    head.keys.floats = scratch->packed_keys;
    head.p2c_keys.floats = scratch->packed_keys;
    if (head.far_p2c) head.far_p2c = scratch->far_p2c;
    attention_pack(s, &head, &scratch->forward);
    const float *rows = head_key(s, head.head, head.first_token);
    for (size_t panel = 0; panel < dp / PANEL; panel++) {
        for (size_t j = 0; j < head.n; j++)
            memcpy(scratch->key_columns + (panel * head.n + j) * PANEL, rows + j * dp + panel * PANEL,
                   PANEL * sizeof(float));
        s->kernels.pack_panels_f32(scratch->packed_values + panel * PANEL * PANEL, d * PANEL,
                                   head.values.floats + panel * head.values.stride, PANEL, head.n,
                                   minimum(PANEL, d - panel * PANEL));
    }
    clear_table(scratch->table_keys, &l->reached[TABLE_KEYS], dp);
    clear_table(scratch->table_queries, &l->reached[TABLE_QUERIES], dp);
    work->head = head;
}

/* The sequence's table gradients are added to those of its part. */
static void end_sequence(const head_work *work)
{
    const learner *l = work->job->learner;
    const size_t dp = l->model->padded_head;
    const float *const tables[POSITION_TABLES] = {work->scratch->table_keys, work->scratch->table_queries};
    for (size_t which = 0; which < POSITION_TABLES; which++)
        for (size_t row = l->reached[which].first; row < l->reached[which].end; row++) {
            float *to = table_part(l, which, work->part, row) + work->head.head * dp;
            for (size_t c = 0; c < dp; c++) to[c] += tables[which][row * dp + c];
        }
}

/* ----------------------------------------------------------------------------------------------------------- a chunk */

/* d_qkv at the first key of the chunk: which is 1 for keys and 2 for values. */
static float *d_keys_of(const chunk_work *c, size_t which)
{
    const learner *l = c->work->job->learner;
    const attention_head *head = &c->work->head;
    return l->d_qkv + (head->first_token + c->key) * l->qkv_stride + which * l->heads_width +
           head->head * l->model->padded_head;
}

/* P, or what reaches it from behind dropout. */
static void drop_scores(const chunk_work *c, float *scores)
{
    const learner *l = c->work->job->learner;
    const layer_record *record = c->work->job->record;
    const dropout_place place = {
        .site = DROPOUT_PROBABILITIES, .layer = record->layer, .pass = record->pass, .head = c->work->head.head};
    for (size_t i = 0; step_drops(l) && i < c->block->piece_count; i++) {
        const query_run *piece = &c->block->pieces[i];
        dropout_probabilities(learner_kernels(l), &l->dropout, &place, scores + piece->row * c->lds, c->lds,
                              c->work->head.first_token + piece->place, piece->count, c->key, c->keys);
    }
}

/* The logits of the forward pass again. A block of one piece keeps its strip from chunk to chunk. */
static void make_logits(const chunk_work *c)
{
    const head_work *work = c->work;
    const deberta_session *s = work->job->learner->session;
    const query_block *block = c->block;
    const size_t dp = s->model->padded_head;
    worker_scratch *forward = &work->scratch->forward;
    for (size_t i = 0; i < block->piece_count; i++) {
        const query_run *piece = &block->pieces[i];
        const attention_queries queries = {
            .rows = c->queries + piece->row * dp, .ld = dp, .first = piece->place, .count = piece->count};
        if (s->has_c2p && (c->key == 0 || block->piece_count > 1)) attention_strip(s, &work->head, &queries, forward);
        attention_logits(s, &work->head, &queries, c->key, c->keys, attention_terms_of(s),
                         forward->logits + piece->row * c->lds, c->lds, forward);
    }
}

/* P into the logits' place and dS into scratch->gradients. */
static void make_scores(const chunk_work *c)
{
    const head_work *work = c->work;
    const learner *l = work->job->learner;
    const deberta_session *s = l->session;
    attention_scratch *scratch = work->scratch;
    const size_t d = l->model->head_size, first = (size_t)(c->queries - s->queries) / l->model->padded_head;
    make_logits(c);
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
        .maximum = work->job->record->maximum + first,
        .inverse_total = work->job->record->inverse_total + first,
        .delta = c->keys < work->head.n ? scratch->delta : NULL,
    };
    s->kernels.softmax_backward_f32(&softmax);
    drop_scores(c, scratch->forward.logits); /* values get from what was mixed */
}

/* c [columns][ldc] += a' b, over rows of both, in panels of the head. */
static void add_transposed(const chunk_work *c, const float *a, size_t lda, size_t columns, const float *b, size_t ldb,
                           size_t rows, float *to, size_t ldc)
{
    const learner *l = c->work->job->learner;
    const gemm_tn_task task = {
        .columns = columns,
        .panels = l->model->head_panels,
        .a = a,
        .lda = lda,
        .b = b,
        .ldb = ldb,
        .b_panel_stride = PANEL,
        .c = to,
        .ldc = ldc,
        .c_panel_stride = PANEL,
        .rows = rows,
        .accumulate = true,
    };
    l->session->kernels.gemm_tn_f32(&task);
}

/* c [rows][ldc] = or += a b, b [head panels][..][16] from one of its rows on. */
static void add_product(const chunk_work *c, const float *a, size_t lda, size_t rows, const float *b,
                        size_t b_panel_stride, size_t depth, float *to, size_t ldc, bool accumulate)
{
    const learner *l = c->work->job->learner;
    const gemm_task task = {
        .rows = rows,
        .depth = depth,
        .panels = l->model->head_panels,
        .a = a,
        .lda = lda,
        .b = b,
        .b_panel_stride = b_panel_stride,
        .c = to,
        .ldc = ldc,
        .c_panel_stride = PANEL,
        .accumulate = accumulate,
    };
    l->session->kernels.gemm_f32(&task);
}

static void content_backward(const chunk_work *c)
{
    const head_work *work = c->work;
    const learner *l = work->job->learner;
    const attention_scratch *scratch = work->scratch;
    const size_t count = c->block->count, n = work->head.n;
    add_transposed(c, scratch->forward.logits, c->lds, c->keys, c->d_context, l->session->context_stride, count,
                   d_keys_of(c, 2), l->qkv_stride);
    add_transposed(c, scratch->gradients, c->lds, c->keys, c->queries, l->model->padded_head, count, d_keys_of(c, 1),
                   l->qkv_stride);
    add_product(c, scratch->gradients, c->lds, count, scratch->key_columns + c->key * PANEL, n * PANEL, c->keys,
                c->d_queries, work->job->ld_queries, c->key > 0);
}

/* Rows of the relative table that the chunk's distances reach. */
static void rows_of_chunk(const chunk_work *c, size_t *first, size_t *count)
{
    const query_block *block = c->block;
    const query_run *last_piece = &block->pieces[block->piece_count - 1];
    const ptrdiff_t key = (ptrdiff_t)c->key, last_key = key + (ptrdiff_t)c->keys - 1;
    const ptrdiff_t last_place = (ptrdiff_t)(last_piece->place + last_piece->count) - 1;
    size_t last;
    position_map_rows(&c->work->job->learner->session->positions, (ptrdiff_t)block->pieces[0].place - last_key,
                      last_place - key, first, &last);
    *count = last - *first + 1;
}

/* Of a block's queries or a chunk's keys. */
static position_strips strips_of(const chunk_work *c, size_t rows, size_t others)
{
    return (position_strips){.learner = c->work->job->learner,
                             .strips = c->work->scratch->strip,
                             .rows = rows,
                             .others = others,
                             .has_pieces = c->block->piece_count > 1};
}

/* C_ix = sum of dS_ij over the keys j that read place x: dq += C PK, dPK += C' q. */
static void c2p_backward(const chunk_work *c)
{
    const head_work *work = c->work;
    const learner *l = work->job->learner;
    const position_map *map = &l->session->positions;
    const size_t rows = l->model->relative_rows, dp = l->model->padded_head;
    position_strips strip = strips_of(c, c->block->count, c->keys);
    size_t first_row;
    rows_of_chunk(c, &first_row, &strip.places);
    strip.first = (size_t)map->last_row - (first_row + strip.places - 1);
    strip.place_of = map->position_of + ((ptrdiff_t)c->key - (ptrdiff_t)c->block->pieces[0].place);
    position_strips_clear(&strip);
    for (size_t i = 0; i < c->block->piece_count; i++) {
        const query_run *piece = &c->block->pieces[i];
        const fold_runs_task task = {
            .rows = piece->count,
            .columns = c->keys,
            .s = work->scratch->gradients + piece->row * c->lds,
            .lds = c->lds,
            .s_panel_stride = PANEL,
            .place_of = map->position_of + ((ptrdiff_t)c->key - (ptrdiff_t)piece->place),
            .first = (int32_t)strip.first,
            .unit_steps = map->unit_steps,
            .strip = work->scratch->strip + piece->row * l->fold_stride,
            .ld_strip = l->fold_stride,
        };
        l->session->kernels.fold_runs_f32(&task);
    }
    const strip_products products = {
        .table = l->table_columns + work->head.head * rows * dp + strip.first * PANEL,
        .d_rows = c->d_queries,
        .ld_rows = work->job->ld_queries,
        .vectors = c->queries,
        .d_table = work->scratch->table_keys + strip.first * dp,
    };
    position_strips_multiply(&strip, &products);
}

/* Folds columns [column, column + count) of the turned dS, the first of which is at `place` in the sequence. They begin
 * a panel or lie inside one. */
static void fold_turned(const chunk_work *c, size_t first, size_t column, size_t count, size_t place)
{
    const learner *l = c->work->job->learner;
    const position_map *map = &l->session->positions;
    const fold_runs_task task = {
        .rows = c->keys,
        .columns = count,
        .s = c->work->scratch->turned + column / PANEL * c->keys * PANEL + column % PANEL,
        .lds = PANEL,
        .s_panel_stride = c->keys * PANEL,
        .place_of = map->row_of + ((ptrdiff_t)place - (ptrdiff_t)c->key),
        .first = (int32_t)first,
        .unit_steps = map->unit_steps,
        .strip = c->work->scratch->strip,
        .ld_strip = l->fold_stride,
    };
    l->session->kernels.fold_runs_f32(&task);
}

/* E_jx = sum of dS_ij over the queries i that read row x: dk += E PQ, dPQ += E' k. */
static void p2c_backward(const chunk_work *c)
{
    const head_work *work = c->work;
    const learner *l = work->job->learner;
    const deberta_session *s = l->session;
    const size_t rows = l->model->relative_rows, dp = l->model->padded_head;
    position_strips strip = strips_of(c, c->keys, c->block->count);
    rows_of_chunk(c, &strip.first, &strip.places);
    strip.place_of = s->positions.row_of + ((ptrdiff_t)c->block->pieces[0].place - (ptrdiff_t)c->key);
    s->kernels.pack_panels_f32(work->scratch->turned, c->keys * PANEL, work->scratch->gradients, c->lds,
                               c->block->count, c->keys);
    position_strips_clear(&strip);
    for (size_t i = 0; i < c->block->piece_count; i++) {
        const query_run *piece = &c->block->pieces[i];
        const size_t into = piece->row % PANEL, begun = into ? minimum(PANEL - into, piece->count) : 0;
        if (begun > 0) fold_turned(c, strip.first, piece->row, begun, piece->place);
        if (piece->count > begun)
            fold_turned(c, strip.first, piece->row + begun, piece->count - begun, piece->place + begun);
    }
    const strip_products products = {
        .table = l->table_columns + rows * l->heads_width + work->head.head * rows * dp + strip.first * PANEL,
        .d_rows = d_keys_of(c, 1),
        .ld_rows = l->qkv_stride,
        .vectors = head_key(s, work->head.head, work->head.first_token + c->key),
        .d_table = work->scratch->table_queries + strip.first * dp,
    };
    position_strips_multiply(&strip, &products);
}

/* ------------------------------------------------------------------------------------------------------ blocks, loops */

static void block_backward(const head_work *work, const query_block *block)
{
    const attention_backward *job = work->job;
    const learner *l = job->learner;
    const deberta_session *s = l->session;
    const size_t dp = l->model->padded_head, row = block->row, column = work->head.head * dp;
    chunk_work chunk = {
        .work = work,
        .block = block,
        .queries = head_query(s, work->head.head, row),
        .d_context = job->d_context + row * s->context_stride + column,
        .d_queries = job->d_queries + row * job->ld_queries + column,
        .lds = s->logits_stride,
    };
    /* Of one chunk the kernel takes the sum of P dP itself, which it makes dS of; of several, dO.O is the same number.
     */
    if (work->head.n > KEY_CHUNK)
        s->kernels.dot_rows_f32(work->scratch->delta, chunk.d_context, s->context_stride,
                                job->record->context + row * s->context_stride + column, s->context_stride,
                                block->count, dp);
    for (; chunk.key < work->head.n; chunk.key += KEY_CHUNK) {
        chunk.keys = minimum(KEY_CHUNK, work->head.n - chunk.key);
        make_scores(&chunk);
        content_backward(&chunk);
        if (s->has_c2p) c2p_backward(&chunk);
        if (s->has_p2c) p2c_backward(&chunk);
    }
}

/* The next rows of a sequence's runs: *run is the first that has some left, *done how many of it are behind. */
static void next_block(query_block *block, const query_run **run, const query_run *end, size_t *done)
{
    *block = (query_block){.row = (*run)->row + *done};
    while (*run < end && block->count < QUERY_BLOCK) {
        const size_t count = minimum((*run)->count - *done, QUERY_BLOCK - block->count);
        block->pieces[block->piece_count++] = (query_run){
            .sequence = (*run)->sequence, .place = (*run)->place + *done, .row = block->count, .count = count};
        block->count += count;
        *done += count;
        if (*done < (*run)->count) return;
        ++*run;
        *done = 0;
    }
}

static void clear_part(const attention_backward *job, size_t part, size_t head)
{
    learner *l = job->learner;
    const size_t dp = l->model->padded_head;
    for (size_t t = l->part_bounds[part]; t < l->part_bounds[part + 1]; t++)
        for (size_t which = 1; which < 3; which++)
            memset(l->d_qkv + t * l->qkv_stride + which * l->heads_width + head * dp, 0, dp * sizeof(float));
    for (size_t which = 0; which < POSITION_TABLES; which++)
        for (size_t row = l->reached[which].first; row < l->reached[which].end; row++)
            memset(table_part(l, which, part, row) + head * dp, 0, dp * sizeof(float));
}

/* One head of one part: its sequences in order, so that nothing is shared with other tasks. */
static void head_task(void *context, size_t task, size_t worker)
{
    const attention_backward *job = context;
    learner *l = job->learner;
    const size_t heads = l->model->config.heads, part = task / heads, head = task % heads;
    head_work work = {.job = job, .scratch = &l->workers[worker], .part = part};
    if (!job->continues) clear_part(job, part, head);
    const query_run *run = job->runs + job->run_bounds[part], *end = job->runs + job->run_bounds[part + 1];
    while (run < end) {
        const query_run *next = run;
        size_t done = 0;
        while (next < end && next->sequence == run->sequence) next++;
        begin_sequence(&work, run->sequence, head);
        while (run < next) {
            query_block block;
            next_block(&block, &run, next, &done);
            block_backward(&work, &block);
        }
        end_sequence(&work);
    }
}

void attention_backward_run(const attention_backward *job)
{
    learner *l = job->learner;
    deberta_session *s = l->session;
    s->queries = job->record->queries;
    s->keys = l->records[job->layer].keys;
    s->values = l->records[job->layer].values;
    parallel_for(s->executor, l->group.count * l->model->config.heads, head_task, (void *)job);
}
