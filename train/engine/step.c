/* SPDX-License-Identifier: MIT */
#include "train/engine/step.h"

#include <stdlib.h>
#include <string.h>

#include "core/model/encoder.h"
#include "train/engine/backward_embeddings.h"
#include "train/engine/backward_layer.h"
#include "train/engine/backward_positions.h"
#include "train/engine/losses.h"
#include "train/engine/pair_records.h"
#include "train/engine/step_counts.h"
#include "train/engine/step_dropout.h"

typedef struct running_step {
    learner *learner;
    const step_batch *batch; /* the whole */
    const step_options *options;
    head_result head;
} running_step;

/* ------------------------------------------------------------------------------------------------------------ forward */

deberta_batch step_encoded_batch(const learner *l, const step_batch *batch)
{
    return (deberta_batch){
        .struct_size = sizeof(deberta_batch),
        .sequences = batch->sequences,
        .sequence_starts = batch->starts,
        .ids = l->ids,
        .token_types = batch->token_types,
        .position_ids = batch->positions,
        .mask = batch->mask,
    };
}

deberta_status step_forward(learner *l, const step_batch *batch, deberta_error *err)
{
    const deberta_batch encoded = step_encoded_batch(l, batch);
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    step_dropout_number(l, batch);
    return deberta_encode(l->session, &encoded, &outputs, err);
}

static deberta_status run_classes(running_step *step, const step_batch *group, class_task task, deberta_error *err)
{
    const step_options *o = step->options;
    class_options classes = {
        .task = task, .pairs = o->pairs, .weight = o->sift_weight, .clean = o->clean, .listener = o->listener};
    memcpy(classes.compared, o->compared, sizeof classes.compared);
    return head_classes(step->learner, group, &classes, &step->head, err);
}

static deberta_status run_head(running_step *step, const step_batch *group, deberta_error *err)
{
    learner *l = step->learner;
    memset(l->passes[0].d_output, 0, group->tokens * l->session->hidden_stride * sizeof(float));
    switch (step->options->task) {
    case STEP_MLM: return head_mlm(l, group, step->options->decodes, &step->head, err);
    case STEP_RTD: return head_rtd(l, group, step->options->rtd_weight, &step->head, err);
    case STEP_SEQUENCE: return run_classes(step, group, CLASSES_OF_SEQUENCE, err);
    case STEP_CHOICE: return run_classes(step, group, CLASSES_OF_CHOICE, err);
    case STEP_TOKEN: return run_classes(step, group, CLASSES_OF_TOKEN, err);
    case STEP_ANSWER: return run_classes(step, group, CLASSES_OF_ANSWER, err);
    }
    return DEBERTA_OK;
}

/* ----------------------------------------------------------------------------------------------------------- backward */

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

/* What the way back through a layer reads: its record, which other layers have overwritten where only inputs are kept.
 * The last layer's is still at hand. */
static void restore_record(learner *l, size_t layer)
{
    if (l->pairs.is_joined) pair_records_restore(l, layer);
    if (!l->options.recomputes || layer + 1 == l->model->config.layers) return;
    encoder_layer_again(l->session, layer);
    stage_lap(l->clock, TRAINING_FORWARD);
}

/* The layers that the head has not gone through itself, then the embeddings. */
static void encoder_backward(learner *l, const step_batch *group, bool decoded)
{
    const bool convolves = l->model->config.convolution_width > 0;
    size_t layers = l->model->config.layers;
    if (decoded && --layers > 0) hand_down(l);
    while (layers-- > 0) {
        restore_record(l, layers);
        if (layers == 0 && convolves) convolution_backward(l);
        layer_backward(l, layers);
        if (layers == 0 && convolves) add_rows(l, l->d_input, l->d_first);
        if (layers > 0) hand_down(l);
    }
    embeddings_backward(l, group);
    stage_lap(l->clock, TRAINING_EMBEDDING_GRADIENTS);
}

/* -0 is what changes nothing that it is added to: words that nothing looks up get nothing. */
static void clear_looked_up(learner *l)
{
    const parameter *words = parameter_find(&l->set, shared_tables[0]);
    for (size_t e = 0; l->looked_up && e < words->count; e++) l->looked_up[e] = -0.0f;
}

static void add_looked_up(learner *l)
{
    const parameter *words = parameter_find(&l->set, shared_tables[0]);
    for (size_t e = 0; l->looked_up && e < words->count; e++) words->gradient[e] += l->looked_up[e];
}

/* What follows from the sums over all shards. */
static void finish_gradients(learner *l)
{
    if (!l->weights_wanted) return;
    executor_begin(l->session->executor);
    add_looked_up(l);
    stage_lap(l->clock, TRAINING_EMBEDDING_GRADIENTS);
    relative_table_backward(l);
    bindings_scale(&l->bindings, l->session->executor);
    executor_end(l->session->executor);
    stage_lap(l->clock, TRAINING_TABLE_GRADIENTS);
}

/* ------------------------------------------------------------------------------------------------------------- groups */

/* The shards of a group, as a batch that begins with token 0. */
static step_batch enter_group(running_step *step, const shard_group *group)
{
    learner *l = step->learner;
    const step_batch view = shard_group_view(group, step->batch, l->group_starts);
    l->group = *group;
    for (size_t part = 0; part <= group->count; part++) {
        l->sequence_bounds[part] = step->batch->shard_bounds[group->first + part] - group->first_sequence;
        l->part_bounds[part] = view.starts[l->sequence_bounds[part]];
    }
    l->ids = step->options->reads_sampled ? view.sampled_ids : view.ids;
    return view;
}

/* looks: nothing but what the head finds is wanted. */
static deberta_status run_group(running_step *step, const step_batch *group, bool looks, deberta_error *err)
{
    learner *l = step->learner;
    const bool decoded = step->options->task == STEP_MLM && l->options.decodes;
    if (l->weights_wanted && !looks) {
        parameter_set_clear_gradients(&l->set, l->session->executor);
        clear_looked_up(l);
    }
    stage_lap(l->clock, TRAINING_CLEAR);
    const step_forward_pass *pass = step->options->pass;
    DEBERTA_TRY(pass ? pass->run(pass->context, group, err) : step_forward(l, group, err));
    stage_lap(l->clock, TRAINING_FORWARD);
    executor_begin(l->session->executor);
    const deberta_status status = run_head(step, group, err);
    stage_lap(l->clock, TRAINING_HEAD);
    if (status == DEBERTA_OK && !looks) encoder_backward(l, group, decoded);
    executor_end(l->session->executor);
    return status;
}

static deberta_status run_groups(running_step *step, bool looks, deberta_error *err)
{
    learner *l = step->learner;
    shard_group group = {0};
    gradient_tree_begin(&l->tree);
    for (size_t first = 0; first < l->options.parts; first += group.count) {
        group = shard_group_at(&l->plan, step->batch, first);
        const step_batch view = enter_group(step, &group);
        if (view.sequences > 0) DEBERTA_TRY(run_group(step, &view, looks, err));
        if (!looks && l->weights_wanted)
            gradient_tree_add(&l->tree, first, group.count, view.sequences > 0, l->session->executor);
        stage_lap(l->clock, TRAINING_WEIGHT_GRADIENTS);
    }
    return DEBERTA_OK;
}

/* --------------------------------------------------------------------------------------------------------------- step */

static void begin_dropout(learner *l, const step_options *options)
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
    step_dropout_begin(l, any && !options->loss_only ? &plan : NULL);
}

/* The places of a choice's scores: by number in the step. */
static bool take_scores(running_step *step)
{
    head_result *head = &step->head;
    if (step->options->task != STEP_CHOICE) return true;
    for (size_t i = 0; i < 2; i++) head->scores[i] = calloc(step->batch->sequences, sizeof(float));
    return head->scores[0] && head->scores[1];
}

/* What the head finds is all that is wanted: there is no way back. */
static bool only_looks(const step_options *options) { return options->loss_only || options->pairs == PAIRS_CLEAN; }

/* Scores of a question may come from several groups: all are known before the first way back. */
static deberta_status run_shards(running_step *step, deberta_error *err)
{
    const learner *l = step->learner;
    const bool is_whole = shard_group_at(&l->plan, step->batch, 0).count == l->options.parts;
    const bool looks = only_looks(step->options);
    if (step->options->task == STEP_CHOICE && !is_whole && !looks) DEBERTA_TRY(run_groups(step, true, err));
    return run_groups(step, looks, err);
}

static double mean_loss(const running_step *step)
{
    const head_result *head = &step->head;
    double means[LOSS_ENDS] = {0};
    for (size_t end = 0; end < LOSS_ENDS; end++)
        if (head->counts.labelled[end])
            means[end] =
                sum_of_parts(head->losses[end], step->learner->options.parts) / (double)head->counts.labelled[end];
    return step->options->task == STEP_ANSWER ? (means[0] + means[1]) / 2 : means[0];
}

static step_result result_of(const running_step *step)
{
    const step_options *o = step->options;
    const head_result *head = &step->head;
    const double loss = mean_loss(step), weight = o->task == STEP_RTD ? (double)o->rtd_weight : 1;
    const double distance = head->counts.pairs ? head->distance / (double)head->counts.pairs : 0;
    return (step_result){.loss = loss * weight + (double)o->sift_weight * distance,
                         .head_loss = loss,
                         .tokens = step->batch->tokens,
                         .labelled = head->counts.labelled[0] + head->counts.labelled[1]};
}

deberta_status step_run(learner *l, const step_batch *batch, const step_options *options, step_result *result,
                        deberta_error *err)
{
    running_step step = {.learner = l, .batch = batch, .options = options};
    deberta_status status = DEBERTA_OK;
    stage_lap(l->clock, TRAINING_BATCH);
    step.head.counts = step_counts(batch, options->task, options->pairs);
    relative_table_begin(l, batch);
    begin_dropout(l, options);
    if (!take_scores(&step)) status = status_fail(err, DEBERTA_E_MEMORY, "no memory for the scores of choices");
    if (status == DEBERTA_OK) status = run_shards(&step, err);
    for (size_t i = 0; i < 2; i++) free(step.head.scores[i]);
    DEBERTA_TRY(status);
    if (!only_looks(options)) finish_gradients(l);
    *result = result_of(&step);
    return DEBERTA_OK;
}
