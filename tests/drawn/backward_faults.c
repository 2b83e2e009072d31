/* Defines deliberate faults of training; most replace an entry of the learner's kernel table.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/drawn/backward_faults.h"

#include <math.h>
#include <string.h>

#include "core/base/numbers.h"
#include "core/dispatch.h"
#include "train/state/products.h"

/* The scalar tier's kernels, from which the faults are made; every tier gives the same bits. */
static kernels sound(void)
{
    kernels table;
    deberta_error ignored;
    kernels_select(&table, DEBERTA_ISA_SCALAR, &ignored); /* which is always there */
    return table;
}

/* ------------------------------------------------------------------------------------------------------------ kernels */

/* A kernel that does something sound, but another task. */
#define CHANGED_TASK(slot, name, task_type, change)                                                                    \
    static void name(const task_type *task)                                                                            \
    {                                                                                                                  \
        task_type changed = *task;                                                                                     \
        change;                                                                                                        \
        sound().slot(&changed);                                                                                        \
    }
CHANGED_TASK(softmax_backward_f32, softmax_without_mask, softmax_backward_task, changed.key_bias = NULL)
CHANGED_TASK(sum_rows_f32, sums_without_products, sum_rows_task, changed.b = NULL)
CHANGED_TASK(gemm_tn_f32, product_begins_anew, gemm_tn_task, changed.accumulate = false)

static void softmax_without_sum(const softmax_backward_task *task)
{
    static const float zeros[QUERY_BLOCK];
    softmax_backward_task changed = *task;
    changed.delta = zeros;
    sound().softmax_backward_f32(&changed);
}

/* The exponentials that a pass forward has kept are taken for probabilities. */
static void softmax_undivided(const softmax_backward_task *task)
{
    float ones[QUERY_BLOCK];
    softmax_backward_task changed = *task;
    for (size_t i = 0; i < QUERY_BLOCK; i++) ones[i] = 1;
    if (task->exponentials) changed.inverse_total = ones;
    sound().softmax_backward_f32(&changed);
}

/* dx = r u. */
static void norm_of_constants(const layernorm_backward_task *task)
{
    layernorm_backward_task changed = *task;
    for (size_t i = 0; i < task->rows; i++) {
        const float *x = task->x + i * task->ldx;
        double mean = 0, variance = 0;
        for (size_t e = 0; e < task->n; e++) mean += (double)x[e] / (double)task->n;
        for (size_t e = 0; e < task->n; e++)
            variance += ((double)x[e] - mean) * ((double)x[e] - mean) / (double)task->n;
        changed.rows = 1;
        changed.x = x;
        changed.normal = task->normal + i * task->ld_normal;
        changed.dy = task->dy + i * task->lddy;
        changed.dx = task->dx + i * task->lddx;
        float scaled[1024];
        const float r = (float)(1 / sqrt(variance + (double)task->eps));
        for (size_t e = 0; e < task->n; e++) scaled[e] = r * (task->gamma ? task->gamma[e] : 1) * changed.dy[e];
        sound().layernorm_backward_f32(&changed);
        memcpy(changed.dx, scaled, task->n * sizeof *scaled);
    }
}

static void gelu_of_tanh(float *dy, float *y, const float *x, size_t n, activation function)
{
    sound().activate_backward_f32(dy, y, x, n, function == ACTIVATION_GELU ? ACTIVATION_GELU_TANH : function);
}

static void no_folding(const fold_runs_task *task) { (void)task; }

/* The first column of every block is left out. */
static void fold_one_late(const fold_runs_task *task)
{
    fold_runs_task changed = *task;
    changed.s += task->column_step;
    changed.place_of++;
    changed.columns -= task->columns > 0;
    sound().fold_runs_f32(&changed);
}

/* The first shard is left out. */
static void shard_missed(const gemm_tn_task *task)
{
    size_t bounds[MAX_ROW_PARTS + 1];
    gemm_tn_task changed = *task;
    if (task->bounds) {
        memcpy(bounds, task->bounds, (task->parts + 1) * sizeof *bounds);
        bounds[0] = bounds[1];
        changed.bounds = bounds;
    }
    sound().gemm_tn_f32(&changed);
}

#define PLANT(name, slot)                                                                                              \
    static void plant_##name(learner *l) { l->session->kernels.slot = name; }
PLANT(softmax_without_sum, softmax_backward_f32)
PLANT(softmax_undivided, softmax_backward_f32)
PLANT(norm_of_constants, layernorm_backward_f32)
PLANT(gelu_of_tanh, activate_backward_f32)
PLANT(no_folding, fold_runs_f32)
PLANT(fold_one_late, fold_runs_f32)
PLANT(shard_missed, gemm_tn_f32)
PLANT(sums_without_products, sum_rows_f32)
PLANT(product_begins_anew, gemm_tn_f32)

/* ------------------------------------------------------------------------------------------------------- other places */

/* The backward pass reads no mask while exponentials are kept, so the fault drops them. */
static void plant_softmax_without_mask(learner *l)
{
    for (size_t i = 0; i < l->model->config.layers; i++) l->memory.records[i].exponentials = NULL;
    l->session->kernels.softmax_backward_f32 = softmax_without_mask;
}

static void padding_learns(learner *l) { l->own_model->config.pad_token_id = -1; }

static void query_not_scaled(learner *l)
{
    for (size_t i = 0; i < l->bindings.matrix_count; i++)
        for (size_t part = 0; part < MAX_PARTS; part++) l->bindings.matrices[i].plan.parts[part].scale = 1;
}

/* dX of the last layer's first feed-forward product takes the first layer for its own. */
static void other_layers_weights(learner *l)
{
    const size_t layers = l->model->config.layers;
    transposed_layer *held = &l->memory.transposed;
    if (layers == 1) return;
    executor_begin(l->session->executor);
    transposed_fill(&held->matrices[MATRIX_INTERMEDIATE], &l->model->layers[0].intermediate, learner_kernels(l),
                    l->session->executor);
    executor_end(l->session->executor);
    held->layers[MATRIX_INTERMEDIATE] = layers;
}

/* ------------------------------------------------------------------------------------------------- at rare crossings */

/* The half that goes forward second keeps its narrow embeddings where the first keeps its last layer. */
static void halves_share_rows(learner *l, step_batch *batch)
{
    const size_t last = l->model->config.layers - 1;
    pair_memory *pairs = &l->memory.pairs;
    if (l->options.pairs_up && l->model->embedding_projection.panels)
        pairs->rows.narrow = pairs->layers[last].normed - batch->tokens * l->session->normed_stride;
}

/* The vector of gradients has room for what is as wide as the model; what its head has read lies behind. */
static void labels_beyond_the_vector(learner *l)
{
    const deberta_session *s = l->session;
    const size_t widest = maximum(l->qkv_stride, maximum(s->inner_stride, s->normed_stride));
    const size_t rows = l->tokens_capacity * s->normed_stride;
    if (l->largest.vector_floats >= widest + rows) l->memory.head_rows[0] = l->memory.vector + widest;
}

/* A model without a decoder is opened as one that has it: its last layer is not run. */
static void decoder_for_all(learner *l)
{
    if (!l->options.predicts_words && !l->model->config.position_biased_input) l->memory.forward.decoder_only = true;
}

static void choices_begin_anew(learner *l, step_batch *batch)
{
    enum { REMEMBERED = 1024 };
    (void)l;
    for (size_t i = 0; i < batch->sequences && batch->choices > REMEMBERED; i++)
        if (batch->origin[i] % batch->choices >= REMEMBERED) batch->ids[batch->starts[i]] = batch->ids[0];
}

/* An end of an answer at a hole is the first token. */
static void holes_are_first_tokens(learner *l, step_batch *batch)
{
    (void)l;
    int32_t *const ends[] = {batch->starts_of_answer, batch->ends_of_answer};
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < batch->sequences; i++) {
            const size_t first = batch->starts[i], n = batch->starts[i + 1] - first;
            const int32_t place = ends[k][i];
            if (place >= 0 && (size_t)place < n && !batch->mask[first + (size_t)place]) ends[k][i] = 0;
        }
}

/* The learner whose holes are cleared; a kernel has no argument for it. */
static const learner *cleared;

static bool is_hole(const float *row)
{
    const carried_gradient *carried = &cleared->memory.carried;
    const float *const begins[] = {carried->output, carried->input};
    const size_t stride = cleared->session->hidden_stride;
    for (size_t k = 0; k < 2; k++)
        if (row >= begins[k] && row < begins[k] + cleared->session->tokens * stride)
            return !cleared->session->mask[(size_t)(row - begins[k]) / stride];
    return false;
}

static void norm_without_holes(const layernorm_backward_task *task)
{
    float zeros[1024] = {0};
    for (size_t i = 0; i < task->rows; i++) {
        layernorm_backward_task row = *task;
        row.rows = 1;
        row.x = task->x + i * task->ldx;
        row.normal = task->normal + i * task->ld_normal;
        row.dx = task->dx + i * task->lddx;
        row.dy = task->dy + i * task->lddy;
        if (is_hole(row.dy)) row.dy = zeros;
        sound().layernorm_backward_f32(&row);
    }
}

static void holes_do_not_learn(learner *l)
{
    cleared = l;
    l->session->kernels.layernorm_backward_f32 = norm_without_holes;
}

const backward_fault backward_faults[] = {
    {"softmax_without_sum", "dS = P dP", plant_softmax_without_sum, NULL},
    {"softmax_without_mask", "holes take part in the backward softmax", plant_softmax_without_mask, NULL},
    {"softmax_undivided", "kept exponentials are taken for probabilities", plant_softmax_undivided, NULL},
    {"norm_of_constants", "mean and variance taken for constants", plant_norm_of_constants, NULL},
    {"gelu_of_tanh", "the derivative of the tanh approximation", plant_gelu_of_tanh, NULL},
    {"no_folding", "position terms learn nothing", plant_no_folding, NULL},
    {"fold_one_late", "a run of keys loses its first", plant_fold_one_late, NULL},
    {"shard_missed", "the first shard is no part of the sums", plant_shard_missed, NULL},
    {"sums_without_products", "gains of norms get the gradient of the biases", plant_sums_without_products, NULL},
    {"product_begins_anew", "the decoder's first pass overwrites the keys of its second", plant_product_begins_anew,
     NULL},
    {"padding_learns", "the padding row learns from look-ups", padding_learns, NULL},
    {"query_not_scaled", "the query weights' gradient lacks 1/c", query_not_scaled, NULL},
    {"other_layers_weights", "dX through the weights of another layer", other_layers_weights, NULL},
    {"halves_share_rows", "SiFT: narrow embeddings overwrite the last layer of the half that waits", NULL,
     halves_share_rows},
    {"labels_beyond_the_vector", "the bias of a head with many labels overwrites what it has read",
     labels_beyond_the_vector, NULL},
    {"decoder_for_all", "the last layer of a discriminator is not run", decoder_for_all, NULL},
    {"choices_begin_anew", "choices beyond 1,024 are the first once more", NULL, choices_begin_anew},
    {"holes_are_first_tokens", "an answer at a hole is one at the first token", NULL, holes_are_first_tokens},
    {"holes_do_not_learn", "a hole that a head reads has no gradient", holes_do_not_learn, NULL},
    {0},
};

const backward_fault *backward_fault_find(const char *name)
{
    for (const backward_fault *fault = backward_faults; fault->name; fault++)
        if (strcmp(fault->name, name) == 0) return fault;
    return NULL;
}
