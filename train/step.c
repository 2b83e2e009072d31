/* SPDX-License-Identifier: MIT */
#include "train/step.h"

#include <string.h>

#include "train/backward_embeddings.h"
#include "train/backward_layer.h"
#include "train/backward_positions.h"
#include "train/step_dropout.h"

static deberta_status forward(learner *l, const step_batch *batch, deberta_error *err)
{
    const deberta_batch encoded = {
        .struct_size = sizeof encoded,
        .sequences = batch->sequences,
        .sequence_starts = batch->starts,
        .ids = l->ids,
        .token_types = batch->token_types,
        .position_ids = batch->positions,
        .mask = batch->mask,
    };
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    return deberta_encode(l->session, &encoded, &outputs, err);
}

static deberta_status run_classes(learner *l, const step_batch *batch, class_task task, const step_options *options,
                                  head_result *result, deberta_error *err)
{
    const class_options classes = {
        .task = task, .pairs = options->pairs, .weight = options->sift_weight, .listener = options->listener};
    return head_classes(l, batch, &classes, result, err);
}

static deberta_status run_head(learner *l, const step_batch *batch, const step_options *options, head_result *result,
                               deberta_error *err)
{
    memset(l->passes[0].d_output, 0, batch->tokens * l->session->hidden_stride * sizeof(float));
    switch (options->task) {
    case STEP_MLM: return head_mlm(l, batch, options->decodes, result, err);
    case STEP_RTD: return head_rtd(l, batch, options->rtd_weight, result, err);
    case STEP_SEQUENCE: return run_classes(l, batch, CLASSES_OF_SEQUENCE, options, result, err);
    case STEP_CHOICE: return run_classes(l, batch, CLASSES_OF_CHOICE, options, result, err);
    case STEP_TOKEN: return run_classes(l, batch, CLASSES_OF_TOKEN, options, result, err);
    case STEP_ANSWER: return run_classes(l, batch, CLASSES_OF_ANSWER, options, result, err);
    }
    return DEBERTA_OK;
}

/* The gradient of a layer's input is that of the output of the layer before it. */
static void hand_down(learner *l)
{
    float *gradient = l->passes[0].d_output;
    l->passes[0].d_output = l->d_input;
    l->d_input = gradient;
}

static void add_rows(learner *l, float *to, const float *from)
{
    const size_t stride = l->session->hidden_stride;
    for (size_t t = 0; t < l->session->tokens; t++)
        for (size_t e = 0; e < l->model->config.hidden_size; e++) to[t * stride + e] += from[t * stride + e];
}

/* The layers that the head has not gone through itself, then the embeddings. */
static void encoder_backward(learner *l, const step_batch *batch, bool decoded)
{
    const bool convolves = l->model->config.convolution_width > 0;
    size_t layers = l->model->config.layers;
    if (decoded && --layers > 0) hand_down(l);
    while (layers-- > 0) {
        if (layers == 0 && convolves) convolution_backward(l);
        layer_backward(l, layers);
        if (layers == 0 && convolves) add_rows(l, l->d_input, l->d_first);
        if (layers > 0) hand_down(l);
    }
    relative_table_end(l);
    stage_lap(l->clock, TRAINING_TABLE_GRADIENTS);
    embeddings_backward(l, batch);
    stage_lap(l->clock, TRAINING_EMBEDDING_GRADIENTS);
}

static void take_bounds(learner *l, const step_batch *batch)
{
    for (size_t part = 0; part <= l->options.parts; part++) {
        l->sequence_bounds[part] = batch->shard_bounds[part];
        l->part_bounds[part] = batch->starts[batch->shard_bounds[part]];
    }
}

static void begin_dropout(learner *l, const step_batch *batch, const step_options *options)
{
    enum { GENERATOR_SITES = 32 };
    const dropout_rates *rates = &options->dropout;
    const bool any = rates->hidden > 0 || rates->attention > 0 || rates->pooler > 0 || rates->classifier > 0;
    const dropout_plan plan = {
        .rates = *rates,
        .seed = options->seed,
        .step = (uint32_t)options->number,
        .model = options->is_generator ? (uint32_t)GENERATOR_SITES << DROPOUT_SITE_SHIFT : 0,
    };
    step_dropout_begin(l, batch, any && !options->loss_only ? &plan : NULL);
}

deberta_status step_run(learner *l, const step_batch *batch, const step_options *options, step_result *result,
                        deberta_error *err)
{
    head_result head = {0};
    const bool decoded = options->task == STEP_MLM && l->options.decodes;
    stage_lap(l->clock, TRAINING_BATCH);
    take_bounds(l, batch);
    l->ids = options->reads_sampled ? batch->sampled_ids : batch->ids;
    parameter_set_clear_gradients(&l->set, l->session->executor);
    stage_lap(l->clock, TRAINING_CLEAR);
    begin_dropout(l, batch, options);
    DEBERTA_TRY(forward(l, batch, err));
    stage_lap(l->clock, TRAINING_FORWARD);
    executor_begin(l->session->executor);
    relative_table_begin(l);
    const deberta_status status = run_head(l, batch, options, &head, err);
    stage_lap(l->clock, TRAINING_HEAD);
    if (status == DEBERTA_OK && !options->loss_only) encoder_backward(l, batch, decoded);
    executor_end(l->session->executor);
    DEBERTA_TRY(status);
    const double weight = options->task == STEP_RTD ? (double)options->rtd_weight : 1;
    *result = (step_result){.loss = head.loss * weight + (double)options->sift_weight * head.distance,
                            .head_loss = head.loss,
                            .tokens = batch->tokens,
                            .labelled = head.labelled};
    return DEBERTA_OK;
}
