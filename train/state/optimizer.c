/* Computes learning rates, clipping and bias corrections of a step of AdamW or XAdam in double. The kernel adam_f32
 * (simd/tmpl/training_row_tmpl.h) updates moments and weights with them, in parts.
 *
 * SPDX-License-Identifier: MIT */
#include "train/state/optimizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

enum { TASK_WEIGHTS = 16384 };

deberta_status optimizer_open(optimizer *o, const parameter_set *set, size_t layers,
                              const deberta_trainer_options *options, deberta_error *err)
{
    *o = (optimizer){.options = *options, .layers = layers, .count = set->count, .beta1_power = 1, .beta2_power = 1};
    o->moments = calloc(set->count + 1, sizeof *o->moments);
    bool fine = o->moments != NULL;
    for (size_t i = 0; fine && i < set->count; i++) {
        o->moments[i].m = large_floats(set->items[i].count + 1);
        o->moments[i].v = large_floats(set->items[i].count + 1);
        fine = o->moments[i].m && o->moments[i].v;
    }
    if (fine) return DEBERTA_OK;
    optimizer_free(o);
    DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the optimiser's two numbers a weight");
}

void optimizer_free(optimizer *o)
{
    for (size_t i = 0; o->moments && i < o->count; i++) {
        free(o->moments[i].m);
        free(o->moments[i].v);
    }
    free(o->moments);
    *o = (optimizer){0};
}

double schedule_factor(const deberta_trainer_options *options, size_t done)
{
    const double at = (double)done, steps = (double)options->steps, warmup = (double)options->warmup;
    if (done < options->warmup)
        return options->schedule == DEBERTA_SCHEDULE_MICROSOFT ? at / steps / (warmup / steps) : at / warmup;
    switch (options->schedule) {
    case DEBERTA_SCHEDULE_LINEAR:
        return options->steps > options->warmup ? fmax(0, (steps - at) / (steps - warmup)) : 0;
    case DEBERTA_SCHEDULE_MICROSOFT: return fmax(0, 1 - at / steps);
    case DEBERTA_SCHEDULE_CONSTANT: break;
    }
    return 1;
}

/* Returns whether a tensor decays: biases and gains of norms do not, tables do. */
static bool decays(const parameter *p) { return !strstr(p->name, "bias") && !strstr(p->name, "LayerNorm.weight"); }

/* Returns the factor of a tensor's rate: 1 for heads, decay^(L + 1 - l) for layer l, decay^(L + 2) for the rest of the
 * encoder. */
static double depth_factor(const optimizer *o, const parameter *p)
{
    static const char layer[] = "encoder.layer.";
    size_t power = 0;
    if (strncmp(p->name, layer, sizeof layer - 1) == 0)
        power = o->layers + 1 - (size_t)strtoull(p->name + sizeof layer - 1, NULL, 10);
    else if (strncmp(p->name, "encoder.", 8) == 0 || strncmp(p->name, "embeddings.", 11) == 0)
        power = o->layers + 2;
    double factor = 1;
    for (size_t i = 0; i < power; i++) factor *= o->options.layer_decay;
    return factor;
}

static double clip_scale(const deberta_trainer_options *options, double norm)
{
    if (options->clip <= 0) return 1;
    if (options->optimizer == DEBERTA_XADAM) return 1 / fmax(1, norm / options->clip);
    return fmin(1, options->clip / (norm + 1e-6));
}

static adam_task task_of(const optimizer *o, const parameter *p, double norm, double rate)
{
    const deberta_trainer_options *options = &o->options;
    const bool coupled = options->optimizer == DEBERTA_XADAM;
    const double lr = rate * depth_factor(o, p), decay = decays(p) ? options->weight_decay : 0;
    return (adam_task){
        .scale = (float)clip_scale(options, norm),
        .b1 = (float)options->beta1,
        .c1 = (float)(1 - options->beta1),
        .b2 = (float)options->beta2,
        .c2 = (float)(1 - options->beta2),
        .eps = (float)options->epsilon,
        .rate = (float)(coupled ? -lr : -lr / (1 - o->beta1_power)),
        .inverse_root = (float)(1 / sqrt(1 - o->beta2_power)),
        .keep = (float)(1 - lr * decay),
        .decay = (float)decay,
        .coupled = coupled,
    };
}

typedef struct adam_loop {
    const kernels *table;
    adam_task whole;
} adam_loop;

static void adam_part(void *context, size_t index, size_t worker)
{
    const adam_loop *loop = context;
    adam_task task = loop->whole;
    const size_t first = index * TASK_WEIGHTS;
    (void)worker;
    task.n = task.n - first < TASK_WEIGHTS ? task.n - first : TASK_WEIGHTS;
    task.w += first;
    task.m += first;
    task.v += first;
    task.g += first;
    loop->table->adam_f32(&task);
}

/* Powers are products of one factor per step, so that a resumed run has the same powers as one that was never
 * interrupted. */
static void count_step(optimizer *o)
{
    o->done++;
    o->beta1_power *= o->options.beta1;
    o->beta2_power *= o->options.beta2;
}

void optimizer_set_done(optimizer *o, size_t done)
{
    o->done = 0;
    o->beta1_power = o->beta2_power = 1;
    while (o->done < done) count_step(o);
}

void optimizer_skip(optimizer *o) { count_step(o); }

void optimizer_step(optimizer *o, parameter_set *set, double norm, const kernels *table, executor *threads)
{
    const double rate = o->options.learning_rate * schedule_factor(&o->options, o->done);
    count_step(o);
    executor_begin(threads);
    for (size_t i = 0; i < set->count; i++) {
        parameter *p = &set->items[i];
        if (!p->trained) continue;
        adam_loop loop = {.table = table, .whole = task_of(o, p, norm, rate)};
        loop.whole.n = p->count;
        loop.whole.w = p->values;
        loop.whole.m = o->moments[i].m;
        loop.whole.v = o->moments[i].v;
        loop.whole.g = p->gradient;
        parallel_for(threads, (p->count + TASK_WEIGHTS - 1) / TASK_WEIGHTS, adam_part, &loop);
    }
    executor_end(threads);
}
