/* SPDX-License-Identifier: MIT */
#include "train/backward_attention.h"

#include <string.h>

#include "core/model/attention.h"
#include "train/step_dropout.h"

/* One head of one sequence at work, with its table gradients. */
typedef struct head_work {
    const attention_backward *job;
    attention_scratch *scratch;
    attention_head head;
    size_t part;
} head_work;

/* A block of queries and a chunk of keys. */
typedef struct chunk_work {
    const head_work *work;
    attention_queries queries;
    const float *d_context; /* of the block's first row, at the head's columns */
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
    for (size_t row = 0; row < rows; row++) {
        for (size_t c = 0; packed && c < d; c++)
            keys[(c / PANEL * rows + row) * PANEL + c % PANEL] = packed[(row / PANEL * d + c) * PANEL + row % PANEL];
        for (size_t panel = 0; natural && panel < dp / PANEL; panel++)
            memcpy(queries + (panel * rows + row) * PANEL, natural + row * dp + panel * PANEL, PANEL * sizeof *queries);
    }
}

void attention_backward_begin(learner *l, size_t layer)
{
    table_loop loop = {.learner = l, .layer = layer};
    if (l->model->relative_rows > 0) parallel_for(l->session->executor, l->model->config.heads, turn_tables, &loop);
}

/* ---------------------------------------------------------------------------------------------------- one sequence */

/* Keys and values of the sequence in the layouts that the products want. */
static void begin_sequence(head_work *work, size_t sequence, size_t head_index)
{
    learner *l = work->job->learner;
    deberta_session *s = l->session;
    const deberta_model *model = l->model;
    attention_scratch *scratch = work->scratch;
    const size_t d = model->head_size, dp = model->padded_head, table = model->relative_rows * dp;
    attention_head head = attention_head_of(s, work->job->layer, sequence, head_index);
    head.keys = scratch->packed_keys;
    head.p2c_keys = scratch->packed_keys;
    if (head.far_p2c) head.far_p2c = scratch->far_p2c;
    attention_pack_keys(s, &head);
    const float *rows = s->keys + (head.head * s->tokens + head.first_token) * dp;
    for (size_t panel = 0; panel < dp / PANEL; panel++) {
        for (size_t j = 0; j < head.n; j++)
            memcpy(scratch->key_columns + (panel * head.n + j) * PANEL, rows + j * dp + panel * PANEL,
                   PANEL * sizeof(float));
        s->kernels.pack_panels_f32(scratch->packed_values + panel * PANEL * PANEL, d * PANEL,
                                   head.values + panel * head.value_panel_stride, PANEL, head.n,
                                   minimum(PANEL, d - panel * PANEL));
    }
    memset(scratch->table_keys, 0, table * sizeof(float));
    memset(scratch->table_queries, 0, table * sizeof(float));
    work->head = head;
}

/* The sequence's table gradients are added to those of its part. */
static void end_sequence(const head_work *work)
{
    learner *l = work->job->learner;
    const size_t rows = l->model->relative_rows, dp = l->model->padded_head, parts = l->options.parts;
    for (size_t row = 0; row < rows; row++) {
        float *keys = l->table_parts + (work->part * rows + row) * l->heads_width + work->head.head * dp;
        float *queries = keys + parts * rows * l->heads_width;
        for (size_t c = 0; c < dp; c++) {
            keys[c] += work->scratch->table_keys[row * dp + c];
            queries[c] += work->scratch->table_queries[row * dp + c];
        }
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
    if (step_drops(l))
        dropout_probabilities(learner_kernels(l), &l->dropout, &place, scores, c->lds,
                              c->work->head.first_token + c->queries.first, c->queries.count, c->key, c->keys);
}

/* P into the logits' place and dS into scratch->gradients. */
static void make_scores(const chunk_work *c)
{
    const head_work *work = c->work;
    const learner *l = work->job->learner;
    const deberta_session *s = l->session;
    attention_scratch *scratch = work->scratch;
    const size_t d = l->model->head_size, first = (size_t)(c->queries.rows - s->queries) / l->model->padded_head;
    attention_logits(s, &work->head, &c->queries, c->key, c->keys, attention_terms_of(s), scratch->forward.logits,
                     c->lds, &scratch->forward);
    const gemm_task products = {
        .rows = c->queries.count,
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
        .rows = c->queries.count,
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
    const size_t count = c->queries.count, n = work->head.n;
    add_transposed(c, scratch->forward.logits, c->lds, c->keys, c->d_context, l->session->context_stride, count,
                   d_keys_of(c, 2), l->qkv_stride);
    add_transposed(c, scratch->gradients, c->lds, c->keys, c->queries.rows, c->queries.ld, count, d_keys_of(c, 1),
                   l->qkv_stride);
    add_product(c, scratch->gradients, c->lds, count, scratch->key_columns + c->key * PANEL, n * PANEL, c->keys,
                c->d_queries, work->job->ld_queries, c->key > 0);
}

/* Rows of the relative table that the chunk's distances reach. */
static void rows_of_chunk(const chunk_work *c, size_t *first, size_t *count)
{
    size_t last;
    const ptrdiff_t place = (ptrdiff_t)c->queries.first, key = (ptrdiff_t)c->key;
    position_map_rows(&c->work->job->learner->session->positions, place - key - (ptrdiff_t)c->keys + 1,
                      place - key + (ptrdiff_t)c->queries.count - 1, first, &last);
    *count = last - *first + 1;
}

static void fold(const chunk_work *c, const float *s, size_t lds, size_t rows, size_t columns, const int32_t *place_of,
                 size_t first, size_t places)
{
    const learner *l = c->work->job->learner;
    float *strip = c->work->scratch->strip;
    for (size_t i = 0; i < rows; i++) memset(strip + i * l->fold_stride, 0, places * sizeof *strip);
    const fold_runs_task task = {
        .rows = rows,
        .columns = columns,
        .s = s,
        .lds = lds,
        .s_panel_stride = PANEL,
        .place_of = place_of,
        .first = (int32_t)first,
        .unit_steps = l->session->positions.unit_steps,
        .strip = strip,
        .ld_strip = l->fold_stride,
    };
    l->session->kernels.fold_runs_f32(&task);
}

/* C_ix = sum of dS_ij over the keys j that read place x: dq += C PK, dPK += C' q. */
static void c2p_backward(const chunk_work *c)
{
    const head_work *work = c->work;
    const learner *l = work->job->learner;
    const position_map *map = &l->session->positions;
    const size_t rows = l->model->relative_rows, dp = l->model->padded_head, count = c->queries.count;
    const float *columns = l->table_columns + work->head.head * rows * dp, *strip = work->scratch->strip;
    size_t first_row, places;
    rows_of_chunk(c, &first_row, &places);
    const size_t first = (size_t)map->last_row - (first_row + places - 1);
    fold(c, work->scratch->gradients, c->lds, count, c->keys,
         map->position_of + ((ptrdiff_t)c->key - (ptrdiff_t)c->queries.first), first, places);
    add_product(c, strip, l->fold_stride, count, columns + first * PANEL, rows * PANEL, places, c->d_queries,
                work->job->ld_queries, true);
    add_transposed(c, strip, l->fold_stride, places, c->queries.rows, c->queries.ld, count,
                   work->scratch->table_keys + first * dp, dp);
}

/* E_jx = sum of dS_ij over the queries i that read row x: dk += E PQ, dPQ += E' k. */
static void p2c_backward(const chunk_work *c)
{
    enum { TURNED_LD = QUERY_BLOCK + PANEL };
    const head_work *work = c->work;
    const learner *l = work->job->learner;
    const deberta_session *s = l->session;
    const size_t rows = l->model->relative_rows, dp = l->model->padded_head, count = c->queries.count;
    const float *columns = l->table_columns + rows * l->heads_width + work->head.head * rows * dp;
    const float *keys = s->keys + (work->head.head * s->tokens + work->head.first_token + c->key) * dp;
    float *turned = work->scratch->turned, *strip = work->scratch->strip;
    size_t first, places;
    rows_of_chunk(c, &first, &places);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < c->keys; j++) turned[j * TURNED_LD + i] = work->scratch->gradients[i * c->lds + j];
    fold(c, turned, TURNED_LD, c->keys, count, s->positions.row_of + ((ptrdiff_t)c->queries.first - (ptrdiff_t)c->key),
         first, places);
    add_product(c, strip, l->fold_stride, c->keys, columns + first * PANEL, rows * PANEL, places, d_keys_of(c, 1),
                l->qkv_stride, true);
    add_transposed(c, strip, l->fold_stride, places, keys, dp, c->keys, work->scratch->table_queries + first * dp, dp);
}

/* ------------------------------------------------------------------------------------------------------ blocks, loops */

static void block_backward(const head_work *work, const query_run *run, size_t first, size_t count)
{
    const attention_backward *job = work->job;
    const learner *l = job->learner;
    const deberta_session *s = l->session;
    const size_t dp = l->model->padded_head, row = run->row + first, column = work->head.head * dp;
    chunk_work chunk = {
        .work = work,
        .queries = {.rows = s->queries + (work->head.head * s->tokens + row) * dp,
                    .ld = dp,
                    .first = run->place + first,
                    .count = count},
        .d_context = job->d_context + row * s->context_stride + column,
        .d_queries = job->d_queries + row * job->ld_queries + column,
        .lds = s->logits_stride,
    };
    /* Of one chunk the kernel takes the sum of P dP itself, which it makes dS of; of several, dO.O is the same number.
     */
    if (work->head.n > KEY_CHUNK)
        s->kernels.dot_rows_f32(work->scratch->delta, chunk.d_context, s->context_stride,
                                job->record->context + row * s->context_stride + column, s->context_stride, count, dp);
    if (s->has_c2p) attention_strip(s, &work->head, &chunk.queries, &work->scratch->forward);
    for (; chunk.key < work->head.n; chunk.key += KEY_CHUNK) {
        chunk.keys = minimum(KEY_CHUNK, work->head.n - chunk.key);
        make_scores(&chunk);
        content_backward(&chunk);
        if (s->has_c2p) c2p_backward(&chunk);
        if (s->has_p2c) p2c_backward(&chunk);
    }
}

static void clear_part(const attention_backward *job, size_t part, size_t head)
{
    learner *l = job->learner;
    const size_t dp = l->model->padded_head, rows = l->model->relative_rows;
    for (size_t t = l->part_bounds[part]; t < l->part_bounds[part + 1]; t++)
        for (size_t which = 1; which < 3; which++)
            memset(l->d_qkv + t * l->qkv_stride + which * l->heads_width + head * dp, 0, dp * sizeof(float));
    for (size_t which = 0; which < 2; which++)
        for (size_t row = 0; row < rows; row++)
            memset(l->table_parts + ((which * l->options.parts + part) * rows + row) * l->heads_width + head * dp, 0,
                   dp * sizeof(float));
}

/* One head of one part: its sequences in order, so that nothing is shared with other tasks. */
static void head_task(void *context, size_t task, size_t worker)
{
    const attention_backward *job = context;
    learner *l = job->learner;
    const size_t heads = l->model->config.heads, part = task / heads, head = task % heads;
    head_work work = {.job = job, .scratch = &l->workers[worker], .part = part};
    if (!job->continues) clear_part(job, part, head);
    for (size_t i = job->run_bounds[part]; i < job->run_bounds[part + 1]; i++) {
        const query_run *run = &job->runs[i];
        const bool begins = i == job->run_bounds[part] || run[-1].sequence != run->sequence;
        const bool ends = i + 1 == job->run_bounds[part + 1] || run[1].sequence != run->sequence;
        if (begins) begin_sequence(&work, run->sequence, head);
        for (size_t first = 0; first < run->count; first += QUERY_BLOCK)
            block_backward(&work, run, first, minimum(QUERY_BLOCK, run->count - first));
        if (ends) end_sequence(&work);
    }
}

void attention_backward_run(const attention_backward *job)
{
    learner *l = job->learner;
    deberta_session *s = l->session;
    s->queries = job->record->queries;
    s->keys = l->records[job->layer].keys;
    s->values = l->records[job->layer].values;
    parallel_for(s->executor, l->options.parts * l->model->config.heads, head_task, (void *)job);
}
