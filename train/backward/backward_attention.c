/* Runs the backward pass of attention as tasks for the threads: one per head and part; each processes its sequences in
 * order, block by block of queries.
 *
 * SPDX-License-Identifier: MIT */
#include "train/backward/backward_parts.h"

#include <string.h>

#include "train/backward/backward_chunk.h"

/* -------------------------------------------------------------------------------------------------- layouts of tables */

typedef struct table_loop {
    const step_state *step;
    size_t layer;
} table_loop;

/* Repacks the tables of one head: PK, in panels of 16 places, and PQ, in rows of dp, both become [dp / 16][2K][16].
 * Where sequences read separate tables, a task repacks those of one sequence. */
static void turn_tables(void *context, size_t task, size_t worker)
{
    const table_loop *loop = context;
    const step_state *step = loop->step;
    const learner *l = step->learner;
    const deberta_model *model = l->model;
    const size_t rows = model->relative_rows, d = model->head_size, dp = model->padded_head;
    const size_t head = task % model->config.heads, sequence = task / model->config.heads;
    const position_change *change = step->options->positions;
    float *keys = step_table_columns(step, sequence) + head * rows * dp, *queries = keys + rows * l->heads_width;
    const float *packed = model->layers[loop->layer].position_keys,
                *natural = model->layers[loop->layer].position_queries;
    if (change && change->keys && packed) packed = change->keys + sequence * change->keys_stride;
    if (change && change->queries && natural) natural = change->queries + sequence * change->queries_stride;
    if (packed) packed += head * ceiling_divide(rows, PANEL) * d * PANEL;
    if (natural) natural += head * rows * dp;
    (void)worker;
    for (size_t row = step->reached[TABLE_KEYS].first; packed && row < step->reached[TABLE_KEYS].end; row++)
        for (size_t c = 0; c < d; c++)
            keys[(c / PANEL * rows + row) * PANEL + c % PANEL] = packed[(row / PANEL * d + c) * PANEL + row % PANEL];
    for (size_t row = step->reached[TABLE_QUERIES].first; natural && row < step->reached[TABLE_QUERIES].end; row++)
        for (size_t panel = 0; panel < dp / PANEL; panel++)
            memcpy(queries + (panel * rows + row) * PANEL, natural + row * dp + panel * PANEL, PANEL * sizeof *queries);
}

void attention_backward_begin(const step_state *step, size_t layer)
{
    const learner *l = step->learner;
    const position_change *change = step->options->positions;
    table_loop loop = {.step = step, .layer = layer};
    if (change) change->begin_layer(change->context, layer);
    if (l->model->relative_rows > 0)
        parallel_for(l->session->executor, (change ? l->session->sequences : 1) * l->model->config.heads, turn_tables,
                     &loop);
}

/* ---------------------------------------------------------------------------------------------------- one sequence */

static void clear_table(float *table, const table_range *reached, size_t dp)
{
    memset(table + reached->first * dp, 0, (reached->end - reached->first) * dp * sizeof *table);
}

/* The first sequence of a part writes directly to the part's sum; others are added when they are complete. */
static void begin_tables(head_work *work, bool is_first)
{
    const step_state *step = work->job->step;
    float *const own[POSITION_TABLES] = {work->scratch->table_keys, work->scratch->table_queries};
    const size_t dp = step->learner->model->padded_head;
    for (size_t which = 0; which < POSITION_TABLES; which++) {
        work->tables[which] = is_first ? table_part(step, which, work->part, work->head.head) : own[which];
        if (!is_first) clear_table(own[which], &step->reached[which], dp);
    }
}

/* Packs keys and values of the sequence in the layouts of the products. */
static void begin_sequence(head_work *work, size_t sequence, size_t head_index)
{
    const learner *l = work->job->step->learner;
    deberta_session *s = l->session;
    const deberta_model *model = l->model;
    attention_scratch *scratch = work->scratch;
    const size_t d = model->head_size, dp = model->padded_head;
    attention_head head = attention_head_of(s, work->job->layer, sequence, head_index);
    head.keys.floats = scratch->packed_keys;
    head.p2c_keys.floats = scratch->packed_keys;
    if (head.far_p2c) head.far_p2c = scratch->far_p2c;
    if (!record_exponentials(work->job->record, 0, head.n)) attention_head_pack(s, &head, &scratch->forward);
    const float *rows = head_key(s, head.head, head.first_token);
    for (size_t panel = 0; panel < dp / PANEL; panel++) {
        for (size_t j = 0; j < head.n; j++)
            memcpy(scratch->key_columns + (panel * head.n + j) * PANEL, rows + j * dp + panel * PANEL,
                   PANEL * sizeof(float));
        s->kernels.pack_panels_f32(scratch->packed_values + panel * PANEL * PANEL, d * PANEL,
                                   head.values.floats + panel * head.values.stride, PANEL, head.n,
                                   minimum(PANEL, d - panel * PANEL));
    }
    work->head = head;
}

/* Adds the sequence's table gradients to those of its part. */
static void end_tables(const head_work *work)
{
    const step_state *step = work->job->step;
    const size_t dp = step->learner->model->padded_head;
    for (size_t which = 0; which < POSITION_TABLES; which++) {
        const float *from = work->tables[which];
        float *to = table_part(step, which, work->part, work->head.head);
        if (to == from) continue;
        for (size_t c = step->reached[which].first * dp; c < step->reached[which].end * dp; c++) to[c] += from[c];
    }
}

/* ------------------------------------------------------------------------------------------------------ blocks, loops */

static void block_backward(const head_work *work, const query_block *block)
{
    const attention_backward *job = work->job;
    const learner *l = job->step->learner;
    const deberta_session *s = l->session;
    const size_t dp = l->model->padded_head, row = block->row, column = work->head.head * dp;
    chunk_work chunk = {
        .step = job->step,
        .work = work,
        .block = block,
        .queries = head_query(s, work->head.head, row),
        .d_context = job->d_context + row * s->context_stride + column,
        .d_queries = job->d_queries + row * job->ld_queries + column,
        .lds = l->scores_stride,
    };
    /* With one chunk the kernel itself sums P dP, which dS needs; with several, dO.O is the same number. */
    if (work->head.n > KEY_CHUNK)
        s->kernels.dot_rows_f32(work->scratch->delta, chunk.d_context, s->context_stride,
                                job->record->context + row * s->context_stride + column, s->context_stride,
                                block->count, dp);
    for (; chunk.key < work->head.n; chunk.key += KEY_CHUNK) {
        chunk.keys = minimum(KEY_CHUNK, work->head.n - chunk.key);
        chunk_backward(&chunk);
    }
}

/* Takes the next rows of a sequence's runs: *run is the first unfinished run, *done the number of its finished rows. */
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

static void clear_tables(const attention_backward *job, size_t part, size_t head)
{
    const step_state *step = job->step;
    const size_t dp = step->learner->model->padded_head;
    for (size_t which = 0; which < POSITION_TABLES; which++)
        clear_table(table_part(step, which, part, head), &step->reached[which], dp);
}

/* Clears dk and dv of a sequence that has no query. */
static void clear_keys(const attention_backward *job, size_t sequence, size_t head)
{
    const step_state *step = job->step;
    const learner *l = step->learner;
    const size_t dp = l->model->padded_head, *starts = l->session->starts;
    for (size_t t = starts[sequence]; t < starts[sequence + 1]; t++)
        for (size_t which = 1; which < 3; which++)
            memset(step->memory->d_qkv + t * l->qkv_stride + which * l->heads_width + head * dp, 0, dp * sizeof(float));
}

/* Processes a sequence's runs, at least one. Returns the first run of the next sequence. */
static const query_run *sequence_backward(head_work *work, size_t head, const query_run *run, const query_run *end,
                                          bool is_first)
{
    const query_run *next = run;
    size_t done = 0;
    bool begins = !work->job->continues;
    while (next < end && next->sequence == run->sequence) next++;
    begin_sequence(work, run->sequence, head);
    begin_tables(work, is_first);
    for (; run < next; begins = false) {
        query_block block;
        next_block(&block, &run, next, &done);
        block.begins = begins;
        block_backward(work, &block);
    }
    end_tables(work);
    return next;
}

/* Processes one head of one part: its sequences in order, so that tasks share no sums. */
static void head_task(void *context, size_t task, size_t worker)
{
    const attention_backward *job = context;
    const step_state *step = job->step;
    const size_t heads = step->learner->model->config.heads, part = task / heads, head = task % heads;
    head_work work = {.job = job, .scratch = &step->memory->workers[worker], .part = part};
    const query_run *run = job->runs + job->run_bounds[part], *end = job->runs + job->run_bounds[part + 1];
    bool is_first = !job->continues;
    if (is_first) clear_tables(job, part, head);
    for (size_t sequence = step->sequence_bounds[part]; sequence < step->sequence_bounds[part + 1]; sequence++) {
        if (run < end && run->sequence == sequence) {
            run = sequence_backward(&work, head, run, end, is_first);
            is_first = false;
        } else if (!job->continues) {
            clear_keys(job, sequence, head);
        }
    }
}

void attention_backward_run(const attention_backward *job)
{
    const step_state *step = job->step;
    const learner *l = step->learner;
    deberta_session *s = l->session;
    session_attach(s, job->record);
    parallel_for(s->executor, step->group.count * l->model->config.heads, head_task, (void *)job);
    session_detach(s);
}
