/* Sums the gradients of looked-up embeddings into the tables of words, token types and absolute positions.
 *
 * SPDX-License-Identifier: MIT */
#include "train/backward/backward_parts.h"

#include <stdlib.h>

#include "core/base/numbers.h"
#include "train/backward/backward_layer.h"
#include "train/state/step_dropout.h"

/* -------------------------------------------------------------------------------------------------- rows of a table */

/* The gradient of a table's row is the sum over the tokens that read it. So looked-up rows are sorted by id; those of
 * one id are added in the order of their parts: a chain of additions in each part, the parts in the tree of
 * core/kernels.h. */

enum { NO_ROW = -1 };

/* The destination of a table's gradient. */
typedef struct table_sum {
    float *sum; /* [rows of the table][width] */
    size_t width;
} table_sum;

enum { COLUMNS = 64, TASK_ROWS = 256 };

static int compare_keys(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Sorts keys id 2^32 + row, so that the rows of an id follow each other in order. Returns their number. */
static size_t sort_rows(uint64_t *order, const int32_t *ids, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (ids[i] != NO_ROW) order[kept++] = (uint64_t)(uint32_t)ids[i] << 32 | i;
    qsort(order, kept, sizeof *order, compare_keys);
    return kept;
}

typedef struct row_loop {
    const step_state *step;
    float *to;
    size_t width, column_tasks;
    const uint64_t *order;
    const float *rows;
    size_t ld, kept;
    const size_t *bounds;
} row_loop;

static uint32_t id_at(const row_loop *loop, size_t at) { return (uint32_t)(loop->order[at] >> 32); }

/* Adds some columns of the rows order[first ... end), in order. */
typedef struct row_sum {
    const row_loop *loop;
    size_t column, columns;
} row_sum;

static void add_chain(const row_sum *of, size_t first, size_t end, float sum[COLUMNS])
{
    for (size_t c = 0; c < of->columns; c++) sum[c] = 0;
    for (size_t at = first; at < end; at++) {
        const float *row = of->loop->rows + (uint32_t)of->loop->order[at] * of->loop->ld + of->column;
        for (size_t c = 0; c < of->columns; c++) sum[c] = sum[c] + row[c];
    }
}

/* Computes the sum over parts [part, part + count), which contain all these rows: the sums of both halves are added if
 * both have rows. */
static void add_tree(const row_sum *of, size_t first, size_t end, size_t part, size_t count, float sum[COLUMNS])
{
    const row_loop *loop = of->loop;
    while (count > 1) {
        size_t middle = first;
        count /= 2;
        const size_t border = loop->bounds[minimum(part + count, loop->step->group.count)];
        while (middle < end && (uint32_t)loop->order[middle] < border) middle++;
        if (middle == first) part += count;
        if (middle == first || middle == end) continue;
        float other[COLUMNS];
        add_tree(of, first, middle, part, count, sum);
        add_tree(of, middle, end, part + count, count, other);
        for (size_t c = 0; c < of->columns; c++) sum[c] = sum[c] + other[c];
        return;
    }
    add_chain(of, first, end, sum);
}

/* Sums a few columns of the ids that begin among some rows. */
static void id_task(void *context, size_t task, size_t worker)
{
    const row_loop *loop = context;
    const size_t column = task % loop->column_tasks * COLUMNS, begin = task / loop->column_tasks * TASK_ROWS;
    const row_sum some = {loop, column, minimum(COLUMNS, loop->width - column)};
    const size_t stop = minimum(begin + TASK_ROWS, loop->kept);
    const size_t parts = (size_t)1 << tree_levels(loop->step->group.count);
    size_t first = begin;
    (void)worker;
    while (begin > 0 && first < stop && id_at(loop, first) == id_at(loop, begin - 1)) first++;
    for (size_t end; first < stop; first = end) {
        float sum[COLUMNS], *to = loop->to + id_at(loop, first) * loop->width + column;
        for (end = first + 1; end < loop->kept && id_at(loop, end) == id_at(loop, first);) end++;
        add_tree(&some, first, end, 0, parts, sum);
        for (size_t c = 0; c < some.columns; c++) to[c] = to[c] + sum[c];
    }
}

/* Adds to table->sum. rows: [count][ld], in parts by bounds; ids: row of the table to which each belongs, or NO_ROW.
 * Overwrites `order` of the memory. */
static void table_rows_add(const step_state *step, const table_sum *table, const int32_t *ids, const float *rows,
                           size_t ld, size_t count, const size_t *bounds)
{
    step_memory *m = step->memory;
    row_loop loop = {.step = step,
                     .to = table->sum,
                     .width = table->width,
                     .column_tasks = ceiling_divide(table->width, COLUMNS),
                     .order = m->order,
                     .rows = rows,
                     .ld = ld,
                     .bounds = bounds};
    loop.kept = sort_rows(m->order, ids, count);
    parallel_for(step->learner->session->executor, ceiling_divide(loop.kept, TASK_ROWS) * loop.column_tasks, id_task,
                 &loop);
}

/* ------------------------------------------------------------------------------------------------------- embeddings */

static table_sum sum_of(const learner *l, const char *name)
{
    const parameter *table = parameter_find(&l->set, name);
    return table ? (table_sum){.sum = table->gradient, .width = table->shape[1]} : (table_sum){0};
}

/* Returns the sum of looked-up words: separate where the decoder's gradient of the table exists too. */
static table_sum sum_of_words(const step_state *step)
{
    step_memory *m = step->memory;
    table_sum words = sum_of(step->learner, "embeddings.word_embeddings.weight");
    if (m->looked_up) words.sum = m->looked_up;
    return words;
}

/* Adds d_rows [tokens][ld] to the tables whose rows a token's embedding sums up. Holes have no embedding, and the row
 * of the padding token learns nothing from look-ups. */
static void add_to_tables(const step_state *step, const step_batch *batch, const float *d_rows, size_t ld)
{
    const learner *l = step->learner;
    const deberta_session *s = l->session;
    const model_config *config = &l->model->config;
    const size_t tokens = s->tokens;
    int32_t *ids = step->memory->row_ids;
    for (size_t t = 0; t < tokens; t++)
        ids[t] = s->mask[t] && step->ids[t] != config->pad_token_id ? step->ids[t] : NO_ROW;
    const table_sum words = sum_of_words(step), positions = sum_of(l, "embeddings.position_embeddings.weight"),
                    types = sum_of(l, "embeddings.token_type_embeddings.weight");
    table_rows_add(step, &words, ids, d_rows, ld, tokens, step->part_bounds);
    if (config->position_biased_input) {
        for (size_t t = 0; t < tokens; t++) ids[t] = s->mask[t] ? s->position_ids[t] : NO_ROW;
        table_rows_add(step, &positions, ids, d_rows, ld, tokens, step->part_bounds);
    }
    if (config->token_types > 0) {
        for (size_t t = 0; t < tokens; t++)
            ids[t] = !s->mask[t] ? NO_ROW : batch->token_types ? batch->token_types[t] : 0;
        table_rows_add(step, &types, ids, d_rows, ld, tokens, step->part_bounds);
    }
}

void embeddings_backward(const step_state *step, const step_batch *batch)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const deberta_session *s = l->session;
    const model_config *config = &l->model->config;
    const size_t hs = s->hidden_stride, ns = s->normed_stride;
    const row_parts parts = {step->part_bounds, step->group.count};
    float *d_sum = m->passes[0].d_normed, *d_narrow = m->passes[0].d_attention_sum;
    clear_holes(l, m->carried.input, hs, config->hidden_size);
    step_dropout_rows(step, &(dropout_place){.site = DROPOUT_EMBEDDINGS}, m->carried.input, hs, config->hidden_size,
                      s->tokens);
    norm_backward(l, s->tokens, config->hidden_size, &l->model->embedding_norm, m->forward.embedded, hs,
                  m->carried.input, hs, d_sum, ns);
    norm_gradient(step, &l->model->embedding_norm, config->hidden_size, m->forward.embedded, hs, m->carried.input, hs,
                  parts);
    if (step->options->edit) step->options->edit->backward(step->options->edit->context, step, d_sum, ns);
    if (!step_wants_weights(step)) return;
    if (!l->model->embedding_projection.panels) {
        add_to_tables(step, batch, d_sum, ns);
        return;
    }
    matrix_gradient(step, &l->model->embedding_projection, d_sum, ns, m->forward.narrow, ns, parts);
    input_gradient(l, &l->transposed.projection, s->tokens, d_sum, ns, d_narrow, ns);
    add_to_tables(step, batch, d_narrow, ns);
}

void decoder_positions(const step_state *step, const head_rows *rows)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const deberta_session *s = l->session;
    const embedding_edit *edit = step->options->edit;
    if (edit && edit->decoded) edit->decoded(edit->context, step, rows, m->d_first, s->hidden_stride);
    if (!step_wants_weights(step)) return;
    for (size_t i = 0; i < rows->count; i++) m->row_ids[i] = s->position_ids[rows->tokens[i]];
    const table_sum positions = sum_of(l, "embeddings.position_embeddings.weight");
    table_rows_add(step, &positions, m->row_ids, m->d_first, s->hidden_stride, rows->count, rows->bounds);
}
