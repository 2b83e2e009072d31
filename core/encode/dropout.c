/* Maps places in the model to counters of the dropout kernel. SPDX-License-Identifier: MIT */
#include "core/encode/dropout.h"

enum { BLOCK_ROWS = 32 };

static double rate_at(const dropout_plan *plan, dropout_site site)
{
    switch (site) {
    case DROPOUT_PROBABILITIES: return plan->rates.attention;
    case DROPOUT_POOLER: return plan->rates.pooler;
    case DROPOUT_CLASSIFIER: return plan->rates.classifier;
    case DROPOUT_EMBEDDINGS:
    case DROPOUT_TABLE:
    case DROPOUT_ATTENTION:
    case DROPOUT_FEED_FORWARD:
    case DROPOUT_CONVOLUTION: break;
    }
    return plan->rates.hidden;
}

static uint32_t last_word(const dropout_plan *plan, const dropout_place *place)
{
    return plan->model + ((uint32_t)place->site << DROPOUT_SITE_SHIFT) + ((uint32_t)place->pass << DROPOUT_PASS_SHIFT) +
           ((uint32_t)place->layer << DROPOUT_LAYER_SHIFT) + (uint32_t)place->head;
}

static dropout_task task_of(const dropout_plan *plan, dropout_site site)
{
    const double probability = rate_at(plan, site);
    return (dropout_task){
        .seed = plan->seed,
        .step = plan->step,
        .threshold = (uint32_t)(probability * 0x1p32),
        .scale = (float)(1 / (1 - probability)),
    };
}

void dropout_rows(const kernels *table, const dropout_plan *plan, const dropout_place *place, float *x, size_t ld,
                  size_t columns, size_t first, size_t count)
{
    dropout_row of[BLOCK_ROWS];
    dropout_task task = task_of(plan, place->site);
    const uint32_t site = last_word(plan, place);
    if (task.threshold == 0) return;
    task.of = of;
    task.n = columns;
    task.ldx = ld;
    for (size_t row = 0; row < count; row += task.rows) {
        task.rows = count - row < BLOCK_ROWS ? count - row : BLOCK_ROWS;
        task.x = x + row * ld;
        for (size_t i = 0; i < task.rows; i++) {
            const size_t at = first + row + i;
            of[i] = plan->tokens[place->tokens ? place->tokens[at] : at];
            of[i].site += site;
        }
        table->dropout_f32(&task);
    }
}

void dropout_probabilities(const kernels *table, const dropout_plan *plan, const dropout_place *place, float *x,
                           size_t ld, size_t token, size_t rows, size_t key, size_t keys)
{
    dropout_row of[BLOCK_ROWS];
    dropout_task task = task_of(plan, place->site);
    const uint32_t site = last_word(plan, place);
    if (task.threshold == 0) return;
    task.of = of;
    task.n = keys;
    task.ldx = ld;
    task.first = (uint32_t)(key / 4);
    for (size_t row = 0; row < rows; row += task.rows) {
        task.rows = rows - row < BLOCK_ROWS ? rows - row : BLOCK_ROWS;
        task.x = x + row * ld;
        for (size_t i = 0; i < task.rows; i++) {
            of[i] = plan->tokens[token + row + i];
            of[i].site += site;
        }
        table->dropout_f32(&task);
    }
}

void dropout_table(const kernels *table, const dropout_plan *plan, size_t layer, float *x, size_t ld, size_t columns,
                   size_t rows)
{
    const dropout_place place = {.site = DROPOUT_TABLE, .layer = layer};
    dropout_row of;
    dropout_task task = task_of(plan, DROPOUT_TABLE);
    if (task.threshold == 0) return;
    task.of = &of;
    task.rows = 1;
    task.n = columns;
    for (size_t row = 0; row < rows; row++) {
        of = (dropout_row){(uint32_t)row, UINT32_MAX, last_word(plan, &place)};
        task.x = x + row * ld;
        table->dropout_f32(&task);
    }
}
