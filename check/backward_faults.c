/* Most are planted in the learner's table of kernels.
 *
 * SPDX-License-Identifier: MIT */
#include "check/backward_faults.h"

#include <math.h>
#include <string.h>

#include "core/dispatch.h"

/* What the faults are made of: the scalar tier, which gives the bits of all. */
static kernels sound(void)
{
    kernels table;
    deberta_error ignored;
    kernels_select(&table, DEBERTA_ISA_SCALAR, &ignored); /* which is always there */
    return table;
}

/* ------------------------------------------------------------------------------------------------------------ kernels */

static void softmax_without_sum(const softmax_backward_task *task)
{
    static const float zeros[QUERY_BLOCK];
    softmax_backward_task changed = *task;
    changed.delta = zeros;
    sound().softmax_backward_f32(&changed);
}

static void softmax_without_mask(const softmax_backward_task *task)
{
    softmax_backward_task changed = *task;
    changed.key_bias = NULL;
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

static void gelu_of_tanh(float *dy, float *y, const float *x, size_t n, kernel_activation function)
{
    sound().activate_backward_f32(dy, y, x, n, function == KERNEL_GELU ? KERNEL_GELU_TANH : function);
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

static void sums_without_products(const sum_rows_task *task)
{
    sum_rows_task changed = *task;
    changed.b = NULL;
    sound().sum_rows_f32(&changed);
}

/* Products over rows forget what they have added up so far. */
static void product_begins_anew(const gemm_tn_task *task)
{
    gemm_tn_task changed = *task;
    changed.accumulate = false;
    sound().gemm_tn_f32(&changed);
}

#define PLANT(name, slot)                                                                                              \
    static void plant_##name(learner *l) { l->session->kernels.slot = name; }
PLANT(softmax_without_sum, softmax_backward_f32)
PLANT(softmax_without_mask, softmax_backward_f32)
PLANT(norm_of_constants, layernorm_backward_f32)
PLANT(gelu_of_tanh, activate_backward_f32)
PLANT(no_folding, fold_runs_f32)
PLANT(fold_one_late, fold_runs_f32)
PLANT(shard_missed, gemm_tn_f32)
PLANT(sums_without_products, sum_rows_f32)
PLANT(product_begins_anew, gemm_tn_f32)

/* ------------------------------------------------------------------------------------------------------- other places */

static void padding_learns(learner *l) { l->model->config.pad_token_id = -1; }

static void query_not_scaled(learner *l)
{
    for (size_t i = 0; i < l->bindings.matrix_count; i++)
        for (size_t part = 0; part < MAX_PARTS; part++) l->bindings.matrices[i].plan.parts[part].scale = 1;
}

/* dX of the last layer's first feed-forward product takes the layer before for its own. */
static void other_layers_weights(learner *l)
{
    if (l->model->config.layers > 1) l->transposed[1].intermediate = l->transposed[0].intermediate;
}

const backward_fault backward_faults[] = {
    {"softmax_without_sum", "dS = P dP", plant_softmax_without_sum},
    {"softmax_without_mask", "holes take part in the backward softmax", plant_softmax_without_mask},
    {"norm_of_constants", "mean and variance taken for constants", plant_norm_of_constants},
    {"gelu_of_tanh", "the derivative of the tanh approximation", plant_gelu_of_tanh},
    {"no_folding", "position terms learn nothing", plant_no_folding},
    {"fold_one_late", "a run of keys loses its first", plant_fold_one_late},
    {"shard_missed", "the first shard is no part of the sums", plant_shard_missed},
    {"sums_without_products", "gains of norms get the gradient of the biases", plant_sums_without_products},
    {"product_begins_anew", "the decoder's first pass overwrites the keys of its second", plant_product_begins_anew},
    {"padding_learns", "the padding row learns from look-ups", padding_learns},
    {"query_not_scaled", "the query weights' gradient lacks 1/c", query_not_scaled},
    {"other_layers_weights", "dX through the weights of another layer", other_layers_weights},
    {0},
};

const backward_fault *backward_fault_find(const char *name)
{
    for (const backward_fault *fault = backward_faults; fault->name; fault++)
        if (strcmp(fault->name, name) == 0) return fault;
    return NULL;
}
