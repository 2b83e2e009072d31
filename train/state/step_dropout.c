/* Drops and folds the relative table once a layer, and applies the same masks to gradients.
 *
 * SPDX-License-Identifier: MIT */
#include "train/state/step_dropout.h"

#include <string.h>

/* ---------------------------------------------------------------------------------------------------------- a step */

void step_dropout_number(const step_state *step, const step_batch *batch)
{
    for (size_t i = 0; step_drops(step) && i < batch->sequences; i++) {
        const uint32_t pass = batch->passes ? batch->passes[i] : 0;
        for (size_t t = batch->starts[i]; t < batch->starts[i + 1]; t++)
            step->memory->dropout_tokens[t] =
                (dropout_row){(uint32_t)(t - batch->starts[i]), (uint32_t)batch->origin[i], pass << DROPOUT_PASS_SHIFT};
    }
}

/* Writes the relative table R after the dropout of one layer to dropped_table and, last row first, to
 * dropped_reversed. */
static void drop_table(const step_state *step, size_t layer)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const size_t rows = l->model->relative_rows, ld = l->model->hidden_stride;
    memcpy(m->dropped_table, l->model->relative_table, rows * ld * sizeof(float));
    dropout_table(learner_kernels(l), &step->dropout, layer, m->dropped_table, ld, l->model->config.hidden_size, rows);
    for (size_t row = 0; row < rows; row++)
        memcpy(m->dropped_reversed + (rows - 1 - row) * ld, m->dropped_table + row * ld, ld * sizeof(float));
}

/* Folds PK and PQ of all layers. */
static void fold_tables(const step_state *step, bool on)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const deberta_model *model = l->model;
    const bool shared = model->config.share_att_key;
    if (model->relative_rows == 0 || (!on && m->folded.state == FOLDED_PLAIN)) return;
    executor_begin(l->session->executor);
    for (size_t i = 0; i < model->config.layers; i++) {
        const model_layer *layer = &model->layers[i];
        position_fold fold = model_layer_fold(model, &layer->qkv, shared ? NULL : &layer->position_key,
                                              shared ? NULL : &layer->position_query, learner_kernels(l));
        fold.keys = layer->position_keys;
        fold.queries = layer->position_queries;
        fold.workspace = m->fold_workspace;
        if (on) {
            drop_table(step, i);
            fold.table = m->dropped_table;
            fold.reversed = m->dropped_reversed;
        }
        position_fold_run(&fold, l->session->executor);
    }
    executor_end(l->session->executor);
    m->folded = (folded_tables){on ? FOLDED_WITH_DROPOUT : FOLDED_PLAIN, step->dropout};
}

/* Returns whether the tables of this step are folded already: SiFT passes through it more than once. */
static bool is_folded(const folded_tables *folded, const dropout_plan *plan)
{
    const dropout_plan *last = &folded->plan;
    return folded->state == FOLDED_WITH_DROPOUT && last->seed == plan->seed && last->step == plan->step &&
           last->model == plan->model;
}

void step_dropout_begin(step_state *step, const dropout_plan *plan)
{
    step_memory *m = step->memory;
    const bool on = plan && step->learner->options.drops, is_same = on && is_folded(&m->folded, plan);
    m->forward.dropout = on ? &step->dropout : NULL;
    if (on) {
        step->dropout = *plan;
        step->dropout.tokens = m->dropout_tokens;
    }
    if (!is_same) fold_tables(step, on && plan->rates.hidden > 0);
}

/* ---------------------------------------------------------------------------------------------------------- gradients */

typedef struct rows_loop {
    const step_state *step;
    const dropout_place *place;
    float *rows;
    size_t ld, columns, count;
} rows_loop;

enum { TASK_ROWS = 64 };

static void rows_task(void *context, size_t task, size_t worker)
{
    const rows_loop *loop = context;
    const size_t first = task * TASK_ROWS;
    (void)worker;
    dropout_rows(learner_kernels(loop->step->learner), &loop->step->dropout, loop->place, loop->rows + first * loop->ld,
                 loop->ld, loop->columns, first, minimum(TASK_ROWS, loop->count - first));
}

void step_dropout_rows(const step_state *step, const dropout_place *place, float *rows, size_t ld, size_t columns,
                       size_t count)
{
    rows_loop loop = {step, place, rows, ld, columns, count};
    if (step_drops(step))
        parallel_for(step->learner->session->executor, ceiling_divide(count, TASK_ROWS), rows_task, &loop);
}

float *step_dropout_copy(const step_state *step, const dropout_place *place, float *rows, size_t ld, size_t count,
                         float *to)
{
    if (!step_drops(step)) return rows;
    memcpy(to, rows, count * ld * sizeof *to);
    step_dropout_rows(step, place, to, ld, step->learner->model->config.hidden_size, count);
    return to;
}

const float *step_dropout_table(const step_state *step, size_t layer)
{
    if (!step_drops(step)) return step->learner->model->relative_table;
    drop_table(step, layer);
    return step->memory->dropped_table;
}

void step_dropout_table_gradient(const step_state *step, size_t layer, float *d_rows)
{
    const learner *l = step->learner;
    dropout_table(learner_kernels(l), &step->dropout, layer, d_rows, l->session->hidden_stride,
                  l->model->config.hidden_size, l->model->relative_rows);
}
