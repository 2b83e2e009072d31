/* Runs the backward pass of a layer over both layer norms, the feed-forward, the output projection, attention and the
 * projections. The arithmetic of layer-norm backward is layernorm_backward_f32 in simd/tmpl/training_row_tmpl.h.
 *
 * SPDX-License-Identifier: MIT */
#include "train/backward/backward_layer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/model/activation.h"
#include "train/backward/backward_parts.h"
#include "train/state/step_dropout.h"
#include "train/state/step_state.h"

/* ---------------------------------------------------------------------------------------------------- small helpers */

void clear_holes(const learner *l, float *rows, size_t ld, size_t columns)
{
    const deberta_session *s = l->session;
    for (size_t t = 0; s->has_holes && t < s->tokens; t++)
        if (!s->mask[t]) memset(rows + t * ld, 0, columns * sizeof *rows);
}

static void add_vector(parameter *to, const float *values)
{
    for (size_t e = 0; to && e < to->count; e++) to->gradient[e] += values[e];
}

void norm_gradient(const step_state *step, const layer_norm *norm, size_t columns, const float *normal,
                   size_t ld_normal, const float *dy, size_t lddy, row_parts parts)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    column_sum sum = {
        .a = dy, .b = normal, .lda = lddy, .ldb = ld_normal, .n = columns, .parts = parts, .y = m->vector};
    assert(columns <= l->largest.vector_floats);
    if (!step_wants_weights(step)) return;
    column_sum_run(&sum, learner_kernels(l), l->session->executor);
    add_vector(bindings_vector(&l->bindings, norm->gamma), m->vector);
    sum.b = NULL;
    column_sum_run(&sum, learner_kernels(l), l->session->executor);
    add_vector(bindings_vector(&l->bindings, norm->beta), m->vector);
}

/* Computes outputs [first, first + outputs) of a packed gradient, into weight and vector of the memory. */
static void part_gradient(const step_state *step, const packed_matrix *matrix, size_t first, size_t outputs,
                          const float *a, size_t lda, const float *b, size_t ldb, row_parts parts)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const size_t ld = row_stride(matrix->depth);
    const weight_product product = {
        .a = a,
        .lda = lda,
        .columns = outputs,
        .b = b,
        .ldb = ldb,
        .panels = ceiling_divide(matrix->depth, PANEL),
        .c = m->weight + first * ld,
        .ldc = ld,
        .parts = parts,
        .sums = m->vector + first,
    };
    assert(first + outputs <= l->largest.vector_floats && (first + outputs) * ld <= l->largest.weight_floats);
    weight_product_run(&product, learner_kernels(l), l->session->executor);
}

void matrix_gradient(const step_state *step, const packed_matrix *matrix, const float *a, size_t lda, const float *b,
                     size_t ldb, row_parts parts)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    if (!step_wants_weights(step)) return;
    part_gradient(step, matrix, 0, matrix->outputs, a, lda, b, ldb, parts);
    bindings_add_matrix(&l->bindings, matrix, m->weight, row_stride(matrix->depth), m->vector, l->session->executor);
}

static void input_gradient_plus(const learner *l, const packed_matrix *transposed, size_t rows, const float *dy,
                                size_t lddy, float *dx, size_t lddx, const float *residual, size_t ld_residual)
{
    const range_product product = {
        .matrix = transposed,
        .depth = transposed->depth,
        .rows = rows,
        .a = dy,
        .lda = lddy,
        .c = dx,
        .ldc = lddx,
        .residual = residual,
        .ld_residual = ld_residual,
    };
    range_product_run(&product, learner_kernels(l), l->session->executor);
}

void input_gradient(const learner *l, const packed_matrix *transposed, size_t rows, const float *dy, size_t lddy,
                    float *dx, size_t lddx)
{
    input_gradient_plus(l, transposed, rows, dy, lddy, dx, lddx, NULL, 0);
}

/* ------------------------------------------------------------------------------------------------------ one pass back */

void norm_backward(const learner *l, size_t rows, size_t columns, const layer_norm *norm, float *sum, size_t ld_sum,
                   const float *dy, size_t lddy, float *dx, size_t lddx)
{
    const layernorm_backward_task task = {
        .rows = rows,
        .n = columns,
        .dx = dx,
        .normal = sum,
        .x = sum,
        .dy = dy,
        .gamma = norm->gamma,
        .lddx = lddx,
        .ld_normal = ld_sum,
        .ldx = ld_sum,
        .lddy = lddy,
        .eps = l->model->config.layer_norm_eps,
    };
    norm_backward_run(&task, learner_kernels(l), l->session->executor);
}

enum { NORM_AGAIN_ROWS = 16 }; /* rows of a task */

typedef struct norm_loop {
    const learner *learner;
    const layer_norm *norm;
    const float *sum;
    float *to;
    size_t ld_sum, rows;
} norm_loop;

static void backward_layer_norm_task(void *context, size_t task, size_t worker)
{
    const norm_loop *loop = context;
    const learner *l = loop->learner;
    const size_t first = task * NORM_AGAIN_ROWS, ld = l->session->normed_stride;
    (void)worker;
    learner_kernels(l)->layernorm_f32(loop->to + first * ld, ld, loop->sum + first * loop->ld_sum, loop->ld_sum,
                                      loop->norm->gamma, loop->norm->beta, minimum(NORM_AGAIN_ROWS, loop->rows - first),
                                      l->model->config.hidden_size, l->model->config.layer_norm_eps);
}

/* Recomputes the output of a norm from recorded sums, in `to` [rows][normed_stride]. */
static void norm_again(const learner *l, const layer_norm *norm, const float *sum, size_t ld_sum, size_t rows,
                       float *to)
{
    norm_loop loop = {.learner = l, .norm = norm, .sum = sum, .to = to, .ld_sum = ld_sum, .rows = rows};
    parallel_for(l->session->executor, ceiling_divide(rows, NORM_AGAIN_ROWS), backward_layer_norm_task, &loop);
}

typedef struct activation_loop {
    const learner *learner;
    const layer_pass *pass;
} activation_loop;

/* Replaces u by act(u), and the gradient of act(u) by du. */
static void activation_task(void *context, size_t row, size_t worker)
{
    const activation_loop *loop = context;
    const learner *l = loop->learner;
    const deberta_session *s = l->session;
    const model_config *config = &l->model->config;
    float *inner = loop->pass->record->inner + row * s->inner_stride;
    float *d_inner = loop->pass->d_inner + row * s->inner_stride;
    (void)worker;
    activate_rows_backward(&s->kernels, config->hidden_activation, d_inner, inner, inner, s->inner_stride, 1,
                           config->intermediate_size);
}

/* Returns the gradient of a product, from that of the sum with its residual. */
static float *behind_dropout(const step_state *step, const layer_pass *pass, dropout_site site, float *d_sum, float *to)
{
    const layer_record *record = pass->record;
    const dropout_place place = {.site = site, .layer = record->layer, .pass = record->pass, .tokens = record->tokens};
    return step_dropout_copy(step, &place, d_sum, step->learner->session->normed_stride, pass->rows, to);
}

/* Propagates gradients from the output of the layer to the context of its attention. In the record the sums before the
 * norms become x̂, and u becomes act(u). */
static void feed_forward_backward(const step_state *step, size_t index, layer_pass *pass)
{
    const learner *l = step->learner;
    const deberta_session *s = l->session;
    const model_layer *layer = &l->model->layers[index];
    const size_t ns = s->normed_stride, hs = s->hidden_stride;
    norm_backward(l, pass->rows, l->model->config.hidden_size, &layer->output_norm, pass->record->output_sum, hs,
                  pass->d_output, hs, pass->d_output_sum, ns);
    pass->d_output_product = behind_dropout(step, pass, DROPOUT_FEED_FORWARD, pass->d_output_sum, pass->dropped[0]);
    input_gradient_plus(l, transposed_of_layer(step, index, MATRIX_OUTPUT), pass->rows, pass->d_output_product, ns,
                        pass->d_inner, s->inner_stride, NULL, 0);
    activation_loop loop = {.learner = l, .pass = pass};
    parallel_for(s->executor, pass->rows, activation_task, &loop);
    input_gradient_plus(l, transposed_of_layer(step, index, MATRIX_INTERMEDIATE), pass->rows, pass->d_inner,
                        s->inner_stride, pass->d_normed, ns, pass->d_output_sum, ns);
    norm_backward(l, pass->rows, l->model->config.hidden_size, &layer->attention_norm, pass->record->attention_sum, ns,
                  pass->d_normed, ns, pass->d_attention_sum, ns);
    pass->d_attention_product = behind_dropout(step, pass, DROPOUT_ATTENTION, pass->d_attention_sum, pass->dropped[1]);
    input_gradient_plus(l, transposed_of_layer(step, index, MATRIX_ATTENTION_OUTPUT), pass->rows,
                        pass->d_attention_product, ns, pass->d_context, s->context_stride, NULL, 0);
    stage_lap(l->clock, TRAINING_INPUT_GRADIENTS);
}

/* ------------------------------------------------------------------------------------------------- weights of a layer */

/* The passes over whose rows one sum runs: inside a part the rows of the first pass, then those of the next. */
typedef struct pass_list {
    const layer_pass *passes[DECODER_PASSES];
    size_t count;
    size_t bounds[MAX_ROW_PARTS + 1];
} pass_list;

static pass_list list_passes(const step_state *step, const layer_pass *first, const layer_pass *second)
{
    pass_list list = {.passes = {first, second}, .count = second ? 2 : 1};
    for (size_t part = 0; part <= step->group.count; part++)
        list.bounds[part] = first->bounds[part] + (second ? second->bounds[part] : 0);
    return list;
}

/* Returns the rows of all passes in the order of the sum. rows: address of the rows of each pass. */
static const float *gather_passes(const step_state *step, const pass_list *list,
                                  const float *const rows[DECODER_PASSES], size_t ld, float *to)
{
    if (list->count == 1) return rows[0];
    size_t at = 0;
    for (size_t part = 0; part < step->group.count; part++)
        for (size_t pass = 0; pass < list->count; pass++) {
            const size_t *bounds = list->passes[pass]->bounds, count = bounds[part + 1] - bounds[part];
            memcpy(to + at * ld, rows[pass] + bounds[part] * ld, count * ld * sizeof *to);
            at += count;
        }
    return to;
}

/* Gathers a member of every pass. */
#define GATHER(list, member, ld, to)                                                                                   \
    gather_passes(step, list,                                                                                          \
                  (const float *const[DECODER_PASSES]){(list)->passes[0]->member,                                      \
                                                       (list)->count > 1 ? (list)->passes[1]->member : NULL},          \
                  ld, to)

static void feed_forward_gradients(const step_state *step, size_t index, const pass_list *list)
{
    const learner *l = step->learner;
    const deberta_session *s = l->session;
    const model_layer *layer = &l->model->layers[index];
    const size_t hidden = l->model->config.hidden_size, hs = s->hidden_stride, ns = s->normed_stride;
    const row_parts parts = {list->bounds, step->group.count};
    float *const *to = step->memory->gathered;
    if (!step_wants_weights(step)) return;
    norm_gradient(step, &layer->output_norm, hidden, GATHER(list, record->output_sum, hs, to[0]), hs,
                  GATHER(list, d_output, hs, to[1]), hs, parts);
    matrix_gradient(step, &layer->output, GATHER(list, d_output_product, ns, to[0]), ns,
                    GATHER(list, record->inner, s->inner_stride, to[1]), s->inner_stride, parts);
    matrix_gradient(step, &layer->intermediate, GATHER(list, d_inner, s->inner_stride, to[0]), s->inner_stride,
                    GATHER(list, record->normed, ns, to[1]), ns, parts);
    norm_gradient(step, &layer->attention_norm, hidden, GATHER(list, record->attention_sum, ns, to[0]), ns,
                  GATHER(list, d_normed, ns, to[1]), ns, parts);
    matrix_gradient(step, &layer->attention_output, GATHER(list, d_attention_product, ns, to[0]), ns,
                    GATHER(list, record->context, s->context_stride, to[1]), s->context_stride, parts);
    stage_lap(l->clock, TRAINING_WEIGHT_GRADIENTS);
}

/* -------------------------------------------------------------------------------------------------- an ordinary layer */

/* Makes one run per sequence, because all its tokens are queries. */
static void sequence_runs(const learner *l, query_run *runs)
{
    const deberta_session *s = l->session;
    for (size_t i = 0; i < s->sequences; i++)
        runs[i] = (query_run){.sequence = i, .row = s->starts[i], .count = session_sequence_length(s, i)};
}

void layer_backward(const step_state *step, size_t index)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    deberta_session *s = l->session;
    layer_pass *pass = &m->passes[0];
    pass->record = &m->records[index];
    pass->rows = s->tokens;
    pass->bounds = step->part_bounds;
    pass->d_output = m->carried.output;
    if (l->norms_again)
        norm_again(l, &l->model->layers[index].attention_norm, pass->record->attention_sum, s->normed_stride, s->tokens,
                   pass->record->normed);
    feed_forward_backward(step, index, pass);

    sequence_runs(l, m->runs);
    const attention_backward attention = {
        .step = step,
        .layer = index,
        .record = pass->record,
        .runs = m->runs,
        .run_bounds = step->sequence_bounds,
        .d_context = pass->d_context,
        .d_queries = m->d_qkv,
        .ld_queries = l->qkv_stride,
    };
    attention_backward_begin(step, index);
    attention_backward_run(&attention);
    stage_lap(l->clock, TRAINING_ATTENTION_BACKWARD);
    positions_total(step, index);
    stage_lap(l->clock, TRAINING_TABLE_GRADIENTS);

    const pass_list list = list_passes(step, pass, NULL);
    const packed_matrix *qkv = &l->model->layers[index].qkv;
    feed_forward_gradients(step, index, &list);
    if (step_wants_weights(step)) {
        const float *input = pass->record->input;
        if (!input) { /* d_normed is free here, because it has been read. */
            norm_again(l, &l->model->layers[index - 1].output_norm, m->records[index - 1].output_sum, s->hidden_stride,
                       s->tokens, pass->d_normed);
            input = pass->d_normed;
        }
        part_gradient(step, qkv, 0, qkv->outputs, m->d_qkv, l->qkv_stride, input,
                      input == pass->d_normed ? s->normed_stride : s->hidden_stride,
                      (row_parts){step->part_bounds, step->group.count});
        bindings_add_matrix(&l->bindings, qkv, m->weight, row_stride(qkv->depth), m->vector, l->session->executor);
        stage_lap(l->clock, TRAINING_WEIGHT_GRADIENTS);
    }
    input_gradient_plus(l, transposed_of_layer(step, index, MATRIX_QKV), s->tokens, m->d_qkv, l->qkv_stride,
                        m->carried.input, s->hidden_stride, pass->d_attention_sum, s->normed_stride);
    stage_lap(l->clock, TRAINING_INPUT_GRADIENTS);
}

/* ------------------------------------------------------------------------------------------------------- the decoder */

/* Collects runs of labelled tokens that follow each other in one sequence; run_bounds counts them for each part. */
static void decoder_runs(const step_state *step, const size_t *positions, const size_t *bounds, query_run *runs,
                         size_t *run_bounds)
{
    const deberta_session *s = step->learner->session;
    size_t count = 0, sequence = 0;
    for (size_t part = 0; part < step->group.count; part++) {
        run_bounds[part] = count;
        for (size_t row = bounds[part]; row < bounds[part + 1]; row++) {
            while (s->starts[sequence + 1] <= positions[row]) sequence++;
            query_run *last = count > run_bounds[part] ? &runs[count - 1] : NULL;
            const size_t place = positions[row] - s->starts[sequence];
            if (last && last->sequence == sequence && last->place + last->count == place)
                last->count++;
            else
                runs[count++] = (query_run){.sequence = sequence, .place = place, .row = row, .count = 1};
        }
    }
    run_bounds[step->group.count] = count;
}

/* Propagates the gradient of a pass's output to its input, in `d_input` [rows][hidden_stride]. */
static void decoder_pass_backward(const step_state *step, layer_pass *pass, const size_t *run_bounds, bool continues,
                                  float *d_input)
{
    const learner *l = step->learner;
    const size_t index = l->model->config.layers - 1, ld = row_stride(l->heads_width);
    feed_forward_backward(step, index, pass);
    const attention_backward attention = {
        .step = step,
        .layer = index,
        .record = pass->record,
        .runs = step->memory->runs,
        .run_bounds = run_bounds,
        .d_context = pass->d_context,
        .d_queries = pass->d_queries,
        .ld_queries = ld,
        .continues = continues,
    };
    attention_backward_run(&attention);
    stage_lap(l->clock, TRAINING_ATTENTION_BACKWARD);
    const range_product product = {
        .matrix = transposed_of_layer(step, index, MATRIX_QKV),
        .depth = l->heads_width,
        .rows = pass->rows,
        .a = pass->d_queries,
        .lda = ld,
        .c = d_input,
        .ldc = l->session->hidden_stride,
        .residual = pass->d_attention_sum,
        .ld_residual = l->session->normed_stride,
    };
    range_product_run(&product, learner_kernels(l), l->session->executor);
    stage_lap(l->clock, TRAINING_INPUT_GRADIENTS);
}

/* Weights of queries sum over the rows of both passes, those of keys and values over all tokens. */
static void decoder_qkv_gradients(const step_state *step, const pass_list *list)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const deberta_session *s = l->session;
    const size_t index = l->model->config.layers - 1, ld = row_stride(l->heads_width), width = l->heads_width;
    const packed_matrix *qkv = &l->model->layers[index].qkv;
    part_gradient(step, qkv, 0, width, GATHER(list, d_queries, ld, m->gathered[0]), ld,
                  GATHER(list, record->input, s->hidden_stride, m->gathered[1]), s->hidden_stride,
                  (row_parts){list->bounds, step->group.count});
    part_gradient(step, qkv, width, 2 * width, m->d_qkv + width, l->qkv_stride, s->decoder_input, s->hidden_stride,
                  (row_parts){step->part_bounds, step->group.count});
    bindings_add_matrix(&l->bindings, qkv, m->weight, row_stride(qkv->depth), m->vector, l->session->executor);
    stage_lap(l->clock, TRAINING_WEIGHT_GRADIENTS);
}

/* Computes the gradient of H[L - 1] through keys and values; the first pass's queries add theirs at the labelled rows.
 */
static void decoder_input_gradient(const step_state *step, const size_t *positions, size_t rows, const float *d_first)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const deberta_session *s = l->session;
    const size_t width = l->heads_width;
    const range_product product = {
        .matrix = transposed_of_layer(step, l->model->config.layers - 1, MATRIX_QKV),
        .first = width,
        .depth = 2 * width,
        .rows = s->tokens,
        .a = m->d_qkv + width,
        .lda = l->qkv_stride,
        .c = m->carried.input,
        .ldc = s->hidden_stride,
    };
    range_product_run(&product, learner_kernels(l), s->executor);
    for (size_t i = 0; i < rows; i++)
        for (size_t e = 0; e < l->model->config.hidden_size; e++)
            m->carried.input[positions[i] * s->hidden_stride + e] += d_first[i * s->hidden_stride + e];
    stage_lap(l->clock, TRAINING_INPUT_GRADIENTS);
}

void decoder_backward(const step_state *step, const size_t *positions, size_t rows, const size_t *bounds)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    size_t run_bounds[MAX_ROW_PARTS + 1];
    layer_pass *first = &m->passes[0], *second = &m->passes[1];
    first->d_output = m->carried.output;
    decoder_runs(step, positions, bounds, m->runs, run_bounds);
    for (size_t i = 0; i < DECODER_PASSES; i++) {
        m->passes[i].record = &m->decoder_records[i];
        m->passes[i].rows = rows;
        m->passes[i].bounds = bounds;
    }
    attention_backward_begin(step, l->model->config.layers - 1);
    decoder_pass_backward(step, second, run_bounds, false, first->d_output);
    decoder_pass_backward(step, first, run_bounds, true, m->d_first);
    positions_total(step, l->model->config.layers - 1);
    stage_lap(l->clock, TRAINING_TABLE_GRADIENTS);
    const pass_list list = list_passes(step, second, first);
    feed_forward_gradients(step, l->model->config.layers - 1, &list);
    if (step_wants_weights(step)) decoder_qkv_gradients(step, &list);
    decoder_input_gradient(step, positions, rows, m->d_first);
}
