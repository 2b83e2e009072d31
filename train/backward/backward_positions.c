/* Sums the gradients of PK and PQ over parts, projects them to weights, and propagates them through the relative table.
 *
 * SPDX-License-Identifier: MIT */
#include "train/backward/backward_parts.h"

#include <string.h>

#include "train/state/products.h"
#include "train/state/step_dropout.h"
#include "train/state/step_state.h"

enum { TOTAL_ROWS = 32 };              /* rows of a table that one task sums */
enum { REACHED_PARTS = 2 };            /* number of parts of the table's rows, see reached_rows */
enum { QUERY_PART = 0, KEY_PART = 1 }; /* parts of qkv */

/* ------------------------------------------------------------------------------------------------- the tree of parts */

typedef struct table_totals {
    const step_state *step;
    float *to;   /* sums of the layer: [2][2K][A dp] */
    size_t cuts; /* number of tasks of a head's table */
} table_totals;

/* Sums some rows of one head's table over the parts: neighbouring parts are added, then neighbours of these. Parts
 * without a sequence hold zeros. PK is by place, which is the last row minus the row. */
static void total_rows(void *context, size_t task, size_t worker)
{
    const table_totals *job = context;
    const step_state *step = job->step;
    const learner *l = step->learner;
    const size_t rows = l->model->relative_rows, heads = l->model->config.heads, dp = l->model->padded_head;
    const size_t which = task / job->cuts / heads, head = task / job->cuts % heads;
    const size_t first = step->reached[which].first + task % job->cuts * TOTAL_ROWS;
    const size_t end = minimum(first + TOTAL_ROWS, step->reached[which].end);
    (void)worker;
    for (size_t apart = 1; apart < step->group.count; apart *= 2)
        for (size_t part = 0; part < step->group.count; part += 2 * apart) {
            float *to = table_part(step, which, part, head);
            const float *from = table_part(step, which, part + apart, head);
            for (size_t c = first * dp; c < end * dp; c++) to[c] += from[c];
        }
    for (size_t row = first; row < end; row++) {
        const size_t natural = which == TABLE_KEYS ? rows - 1 - row : row;
        memcpy(job->to + (which * rows + natural) * l->heads_width + head * dp,
               table_part(step, which, 0, head) + row * dp, dp * sizeof(float));
    }
}

void positions_total(const step_state *step, size_t index)
{
    const learner *l = step->learner;
    table_totals job = {.step = step, .to = step_table_sums(step, index)};
    job.cuts = ceiling_divide(step->reached[TABLE_KEYS].end - step->reached[TABLE_KEYS].first, TOTAL_ROWS);
    if (l->model->relative_rows > 0 && step_wants_tables(step))
        parallel_for(l->session->executor, POSITION_TABLES * l->model->config.heads * job.cuts, total_rows, &job);
}

/* --------------------------------------------------------------------------------------------------------- projections */

/* Computes d(table)' R and the sum of the rows of d(table) into the second packed gradient. */
static void project_table(const step_state *step, const packed_matrix *matrix, const float *seen, const float *d_table,
                          row_parts rows)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const size_t width = l->heads_width;
    const weight_product product = {
        .a = d_table,
        .lda = width,
        .columns = width,
        .b = seen,
        .ldb = l->model->hidden_stride,
        .panels = ceiling_divide(matrix->depth, PANEL),
        .c = m->second_weight,
        .ldc = row_stride(matrix->depth),
        .parts = rows,
        .sums = m->second_vector,
    };
    weight_product_run(&product, learner_kernels(l), l->session->executor);
}

/* Adds dW += d(PK)' R for one part of qkv. */
static void add_shared(const step_state *step, const packed_matrix *qkv, size_t part, const float *seen,
                       const float *d_table, row_parts rows)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    project_table(step, qkv, seen, d_table, rows);
    bindings_add_part(&l->bindings, qkv, part, m->second_weight, row_stride(qkv->depth), m->second_vector,
                      l->session->executor);
}

/* Adds the gradient of separate projections, to which nothing else contributes. */
static void add_separate(const step_state *step, const packed_matrix *matrix, const float *seen, const float *d_table,
                         row_parts rows)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    project_table(step, matrix, seen, d_table, rows);
    bindings_add_matrix(&l->bindings, matrix, m->second_weight, row_stride(matrix->depth), m->second_vector,
                        l->session->executor);
}

/* Adds dR += d(table) W, where W are the outputs from `first` on of the transposed matrix. Rows that no distance reads
 * get no gradient. */
static void add_to_table(const step_state *step, const packed_matrix *transposed, size_t first, const float *d_table,
                         float *to)
{
    const learner *l = step->learner;
    const table_range *reached = &step->reached[TABLE_QUERIES];
    const range_product product = {
        .matrix = transposed,
        .first = first,
        .depth = l->heads_width,
        .rows = reached->end - reached->first,
        .a = d_table + reached->first * l->heads_width,
        .lda = l->heads_width,
        .c = to + reached->first * l->session->hidden_stride,
        .ldc = l->session->hidden_stride,
        .accumulate = true,
    };
    range_product_run(&product, learner_kernels(l), l->session->executor);
}

/* Cuts the reached rows where chunks of the whole table would be. */
static row_parts reached_parts(const step_state *step, size_t bounds[REACHED_PARTS + 1])
{
    const table_range *reached = &step->reached[TABLE_QUERIES];
    const size_t chunks = (reached->end - 1) / ROW_CHUNK - reached->first / ROW_CHUNK + 1;
    const bool is_cut = chunks == REACHED_PARTS;
    bounds[0] = reached->first;
    bounds[1] = is_cut ? (reached->first / ROW_CHUNK + 1) * ROW_CHUNK : reached->end;
    bounds[2] = reached->end;
    return (row_parts){bounds, is_cut ? REACHED_PARTS : 1};
}

static void positions_backward(const step_state *step, size_t index)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const deberta_model *model = l->model;
    const model_layer *layer = &model->layers[index];
    const size_t rows = model->relative_rows;
    size_t bounds[REACHED_PARTS + 1];
    const float *d_keys = step_table_sums(step, index), *d_queries = d_keys + rows * l->heads_width;
    const bool shared = model->config.share_att_key;
    if (rows == 0) return;
    const row_parts reached = reached_parts(step, bounds);
    const float *seen = step_dropout_table(step, index);
    if (model->has_c2p && shared) add_shared(step, &layer->qkv, KEY_PART, seen, d_keys, reached);
    if (model->has_c2p && !shared) add_separate(step, &layer->position_key, seen, d_keys, reached);
    if (model->has_p2c && shared) add_shared(step, &layer->qkv, QUERY_PART, seen, d_queries, reached);
    if (model->has_p2c && !shared) add_separate(step, &layer->position_query, seen, d_queries, reached);
    /* With dropout, the mask of a layer is applied to its share before it is added. */
    float *to = step_drops(step) ? m->table_work : m->d_table;
    if (step_drops(step)) memset(to, 0, rows * l->session->hidden_stride * sizeof *to);
    if (model->has_c2p)
        add_to_table(step, transposed_of_layer(step, index, shared ? MATRIX_QKV : MATRIX_POSITION_KEY),
                     shared ? l->heads_width : 0, d_keys, to);
    if (model->has_p2c)
        add_to_table(step, transposed_of_layer(step, index, shared ? MATRIX_QKV : MATRIX_POSITION_QUERY), 0, d_queries,
                     to);
    if (!step_drops(step)) return;
    step_dropout_table_gradient(step, index, to);
    for (size_t e = 0; e < rows * l->session->hidden_stride; e++) m->d_table[e] += to[e];
}

/* ---------------------------------------------------------------------------------------------------------- the table */

/* Returns the rows that a batch reads: the longest sequence contains all its distances. Sums over rows of the table are
 * chunks of ROW_CHUNK from row 0 on, added in order: two of them are a tree of two parts, wherever they begin; of more,
 * no row is left out. */
static table_range reached_rows(const learner *l, const step_batch *batch)
{
    size_t longest = 1, first, last;
    for (size_t i = 0; i < batch->sequences; i++) longest = maximum(longest, batch->starts[i + 1] - batch->starts[i]);
    position_map_rows(&l->session->positions, 1 - (ptrdiff_t)longest, (ptrdiff_t)longest - 1, &first, &last);
    if (last / ROW_CHUNK - first / ROW_CHUNK >= REACHED_PARTS) return (table_range){0, l->model->relative_rows};
    return (table_range){first, last + 1};
}

void relative_table_begin(step_state *step, const step_batch *batch)
{
    const learner *l = step->learner;
    const size_t rows = l->model->relative_rows;
    if (rows == 0) return;
    const table_range reached = reached_rows(l, batch);
    step->reached[TABLE_QUERIES] = reached;
    step->reached[TABLE_KEYS] = (table_range){rows - reached.end, rows - reached.first};
}

static void add_columns(parameter *to, const float *rows, size_t ld)
{
    const size_t columns = to->shape[1];
    for (size_t i = 0; i < to->shape[0]; i++)
        for (size_t c = 0; c < columns; c++) to->gradient[i * columns + c] += rows[i * ld + c];
}

/* Propagates the gradient through the table's norm to its parameters. */
static void table_backward(const step_state *step)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const model_config *config = &l->model->config;
    const size_t rows = l->model->relative_rows, hidden = config->hidden_size, ld = l->session->hidden_stride;
    const size_t bounds[2] = {0, rows};
    parameter *table = parameter_find(&l->set, "encoder.rel_embeddings.weight");
    if (!config->norm_relative) {
        add_columns(table, m->d_table, ld);
        return;
    }
    parameter *gain = parameter_find(&l->set, "encoder.LayerNorm.weight");
    parameter *bias = parameter_find(&l->set, "encoder.LayerNorm.bias");
    const layernorm_backward_task task = {
        .rows = rows,
        .n = hidden,
        .dx = m->table_work,
        .normal = m->table_normal,
        .x = table->values,
        .dy = m->d_table,
        .gamma = gain->values,
        .lddx = ld,
        .ld_normal = ld,
        .ldx = hidden,
        .lddy = ld,
        .eps = config->layer_norm_eps,
    };
    norm_backward_run(&task, learner_kernels(l), l->session->executor);
    column_sum sum = {.a = m->d_table,
                      .b = m->table_normal,
                      .lda = ld,
                      .ldb = ld,
                      .n = hidden,
                      .parts = {bounds, 1},
                      .y = gain->gradient};
    column_sum_run(&sum, learner_kernels(l), l->session->executor);
    sum.b = NULL;
    sum.y = bias->gradient;
    column_sum_run(&sum, learner_kernels(l), l->session->executor);
    add_columns(table, m->table_work, ld);
}

void relative_table_backward(const step_state *step)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const size_t rows = l->model->relative_rows;
    if (rows == 0) return;
    memset(m->d_table, 0, rows * l->session->hidden_stride * sizeof *m->d_table);
    for (size_t layer = l->model->config.layers; layer-- > 0;) positions_backward(step, layer);
    table_backward(step);
}
