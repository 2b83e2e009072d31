/* Runs one step of training: its groups of shards forward, through the head, and back; then computes the results that
 * follow from their sums.
 *
 * SPDX-License-Identifier: MIT */
#include "train/step/step.h"

#include <stdlib.h>
#include <string.h>

#include "core/encode/encoder.h"
#include "train/backward/backward_layer.h"
#include "train/backward/backward_parts.h"
#include "train/backward/heads.h"
#include "train/state/pair_records.h"
#include "train/state/ranks.h"
#include "train/state/step_dropout.h"

/* ----------------------------------------------------------------------------------------------------------- counts */

static size_t labelled_tokens(const step_batch *b)
{
    size_t count = 0;
    for (size_t t = 0; t < b->tokens; t++) count += b->labels[t] != NOT_LABELLED;
    return count;
}

static size_t kept_tokens(const step_batch *b)
{
    size_t count = 0;
    for (size_t t = 0; t < b->tokens; t++) count += b->mask[t] != 0;
    return count;
}

static size_t labelled_sequences(const step_batch *b)
{
    size_t count = 0;
    for (size_t i = 0; i < b->sequences; i++) count += b->targets || b->sequence_labels[i] != NOT_LABELLED;
    return count;
}

/* Counts the ends of answers that lie in their sequences. */
static size_t ends_inside(const step_batch *b, const int32_t *places)
{
    size_t count = 0;
    for (size_t i = 0; i < b->sequences; i++)
        count += places[i] >= 0 && (size_t)places[i] < b->starts[i + 1] - b->starts[i];
    return count;
}

head_counts step_counts(const step_batch *b, deberta_training_task task, class_pairs pairs)
{
    const bool pairs_up = pairs == PAIRS_FINAL;
    switch (task) {
    case DEBERTA_TRAIN_MLM: return (head_counts){.labelled = {labelled_tokens(b)}};
    case DEBERTA_TRAIN_RTD: return (head_counts){.labelled = {kept_tokens(b)}};
    case DEBERTA_TRAIN_SEQUENCE:
        return (head_counts){.labelled = {pairs_up && b->targets ? b->sequences / 2 : labelled_sequences(b)},
                             .pairs = pairs_up ? b->sequences / 2 : 0};
    case DEBERTA_TRAIN_CHOICE: return (head_counts){.labelled = {b->questions}, .pairs = pairs_up ? b->questions : 0};
    case DEBERTA_TRAIN_TOKEN:
        return (head_counts){.labelled = {labelled_tokens(b)}, .pairs = pairs_up ? kept_tokens(b) / 2 : 0};
    case DEBERTA_TRAIN_QA: break;
    }
    return (head_counts){.labelled = {ends_inside(b, b->starts_of_answer), ends_inside(b, b->ends_of_answer)}};
}

/* ------------------------------------------------------------------------------------------------------------ forward */

deberta_batch step_encoded_batch(const step_state *step, const step_batch *batch)
{
    return (deberta_batch){
        .struct_size = sizeof(deberta_batch),
        .sequences = batch->sequences,
        .sequence_starts = batch->starts,
        .ids = step->ids,
        .token_types = batch->token_types,
        .position_ids = batch->positions,
        .mask = batch->mask,
    };
}

deberta_status step_forward(const step_state *step, const step_batch *batch, deberta_error *err)
{
    const deberta_batch encoded = step_encoded_batch(step, batch);
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    step_dropout_number(step, batch);
    return deberta_encode(step->learner->session, &encoded, &outputs, err);
}

static deberta_status run_head(step_state *step, const step_batch *group, deberta_error *err)
{
    float *d_hidden = step->memory->carried.output;
    memset(d_hidden, 0, group->tokens * step->learner->session->hidden_stride * sizeof *d_hidden);
    switch (step->options->task) {
    case DEBERTA_TRAIN_MLM: return head_mlm(step, group, err);
    case DEBERTA_TRAIN_RTD: return head_rtd(step, group, err);
    case DEBERTA_TRAIN_SEQUENCE:
    case DEBERTA_TRAIN_CHOICE:
    case DEBERTA_TRAIN_TOKEN:
    case DEBERTA_TRAIN_QA: break;
    }
    return head_classes(step, group, err);
}

/* ----------------------------------------------------------------------------------------------------------- backward */

static void add_rows(const learner *l, float *to, const float *from)
{
    const size_t stride = l->session->hidden_stride;
    for (size_t t = 0; t < l->session->tokens; t++)
        for (size_t e = 0; e < l->model->config.hidden_size; e++) to[t * stride + e] += from[t * stride + e];
}

/* Restores the record of a layer for its backward pass: other layers have overwritten it where only inputs are kept.
 * The last layer's is still valid. */
static void restore_record(const step_state *step, size_t layer)
{
    const learner *l = step->learner;
    if (step->memory->pairs.is_joined) pair_records_restore(step, layer);
    if (!l->options.asked.recompute || layer + 1 == l->model->config.layers) return;
    encoder_layer_again(l->session, layer);
    stage_lap(l->clock, TRAINING_FORWARD);
}

/* Runs the layers that the head has not processed itself backward, then the embeddings. */
static void encoder_backward(const step_state *step, const step_batch *group, bool decoded)
{
    const learner *l = step->learner;
    step_memory *m = step->memory;
    const bool convolves = l->model->config.convolution_width > 0;
    size_t layers = l->model->config.layers;
    if (decoded && --layers > 0) carried_hand_down(&m->carried);
    while (layers-- > 0) {
        restore_record(step, layers);
        if (layers == 0 && convolves) convolution_backward(step);
        layer_backward(step, layers);
        if (layers == 0 && convolves) add_rows(l, m->carried.input, m->d_first);
        if (layers > 0) carried_hand_down(&m->carried);
    }
    embeddings_backward(step, group);
    stage_lap(l->clock, TRAINING_EMBEDDING_GRADIENTS);
}

/* Sets the sums of looked-up words to -0, which is neutral in every addition: +0 would turn a decoder's gradient of -0
 * into +0. */
static void clear_looked_up(const step_state *step)
{
    const parameter *words = parameter_find(&step->learner->set, shared_tables[0]);
    float *sums = step->memory->looked_up;
    for (size_t e = 0; sums && e < words->count; e++) sums[e] = -0.0f;
}

static void add_looked_up(const step_state *step)
{
    const parameter *words = parameter_find(&step->learner->set, shared_tables[0]);
    const float *sums = step->memory->looked_up;
    for (size_t e = 0; sums && e < words->count; e++) words->gradient[e] += sums[e];
}

/* Computes the gradients that follow from the sums over all shards. */
static void finish_gradients(const step_state *step)
{
    const learner *l = step->learner;
    if (!step_wants_weights(step)) return;
    executor_begin(l->session->executor);
    add_looked_up(step);
    stage_lap(l->clock, TRAINING_EMBEDDING_GRADIENTS);
    relative_table_backward(step);
    bindings_scale(&l->bindings, l->session->executor);
    executor_end(l->session->executor);
    stage_lap(l->clock, TRAINING_TABLE_GRADIENTS);
}

/* ------------------------------------------------------------------------------------------------------------- groups */

/* Returns the shards of a group as a batch that begins with token 0. */
static step_batch enter_group(step_state *step, const shard_group *group)
{
    const step_batch view = shard_group_view(group, step->batch, step->memory->group_starts);
    step->group = *group;
    for (size_t part = 0; part <= group->count; part++) {
        step->sequence_bounds[part] = step->batch->shard_bounds[group->first + part] - group->first_sequence;
        step->part_bounds[part] = view.starts[step->sequence_bounds[part]];
    }
    step->ids = step->options->reads_sampled ? view.sampled_ids : view.ids;
    return view;
}

/* Runs a group; looks: only the head's results are needed, no gradients. */
static deberta_status run_group(step_state *step, const step_batch *group, bool looks, deberta_error *err)
{
    const learner *l = step->learner;
    const bool decoded = step->options->task == DEBERTA_TRAIN_MLM && l->options.decodes;
    if (step_wants_weights(step) && !looks) {
        parameter_set_clear_gradients(&l->set, l->session->executor);
        clear_looked_up(step);
    }
    stage_lap(l->clock, TRAINING_CLEAR);
    const step_forward_pass *pass = step->options->pass;
    DEBERTA_TRY(pass ? pass->run(pass->context, step, group, err) : step_forward(step, group, err));
    stage_lap(l->clock, TRAINING_FORWARD);
    executor_begin(l->session->executor);
    const deberta_status status = run_head(step, group, err);
    stage_lap(l->clock, TRAINING_HEAD);
    if (status == DEBERTA_OK && !looks) encoder_backward(step, group, decoded);
    executor_end(l->session->executor);
    return status;
}

static deberta_status run_groups(step_state *step, bool looks, deberta_error *err)
{
    const learner *l = step->learner;
    gradient_tree *tree = &step->memory->tree;
    shard_group group = {0};
    const shard_range all = {0, l->options.asked.shards}, own = step->options->loss_only ? all : l->plan.own;
    gradient_tree_begin(tree);
    for (size_t first = own.first; first < own.first + own.count; first += group.count) {
        group = shard_group_at(&l->plan, step->batch, first);
        const step_batch view = enter_group(step, &group);
        if (view.sequences > 0) DEBERTA_TRY(run_group(step, &view, looks, err));
        if (!looks && step_wants_weights(step))
            gradient_tree_add(tree, first - own.first, group.count, view.sequences > 0, l->session->executor);
        stage_lap(l->clock, TRAINING_WEIGHT_GRADIENTS);
    }
    if (!looks && step_wants_weights(step))
        DEBERTA_TRY(rank_sums_add(l->options.asked.ranks, l->options.asked.shards, step->batch, tree, err));
    return DEBERTA_OK;
}

/* --------------------------------------------------------------------------------------------------------------- step */

static void begin_dropout(step_state *step)
{
    enum { GENERATOR_SITES = 32 };
    const step_options *options = step->options;
    const dropout_rates *rates = &options->dropout;
    const bool any = rates->hidden > 0 || rates->attention > 0 || rates->pooler > 0 || rates->classifier > 0;
    const dropout_plan plan = {
        .rates = *rates,
        .seed = options->seed,
        .step = (uint32_t)options->number,
        .model = options->is_generator ? (uint32_t)GENERATOR_SITES << DROPOUT_SITE_SHIFT : 0,
    };
    step_dropout_begin(step, any && !options->loss_only ? &plan : NULL);
}

/* Allocates the scores of choices, by number in the step, or the distances of pairs of rows. */
static bool take_scores(step_state *step)
{
    head_result *head = &step->head;
    if (step->options->task != DEBERTA_TRAIN_CHOICE && step->options->pairs == PAIRS_FINAL) {
        head->distances = calloc(step->batch->tokens, sizeof *head->distances);
        return head->distances != NULL;
    }
    if (step->options->task != DEBERTA_TRAIN_CHOICE) return true;
    for (size_t i = 0; i < 2; i++) head->scores[i] = calloc(step->batch->sequences, sizeof(float));
    return head->scores[0] && head->scores[1];
}

/* Returns whether only the head's results are needed, without a backward pass. */
static bool only_looks(const step_options *options) { return options->loss_only || options->pairs == PAIRS_CLEAN; }

/* Joins the scores: each rank has those of its sequences, and zeros elsewhere. */
static void join_scores(step_state *step)
{
    const deberta_ranks *ranks = step->learner->options.asked.ranks;
    head_result *head = &step->head;
    if (!ranks) return;
    for (size_t i = 0; i < 2; i++) ranks_join(ranks, head->scores[i], step->batch->sequences * sizeof(float));
    head->scored = (step->options->pairs == PAIRS_FINAL ? 2 : 1) * step->batch->questions * step->batch->choices;
}

/* Adds up the losses of shards, each of which one rank has, or several have alike. Distances are summed in the order of
 * rows. */
static void join_losses(step_state *step)
{
    const deberta_ranks *ranks = step->options->loss_only ? NULL : step->learner->options.asked.ranks;
    head_result *head = &step->head;
    ranks_join(ranks, head->losses, sizeof head->losses);
    ranks_join(ranks, &head->distance, sizeof head->distance);
    if (!head->distances) return;
    ranks_join(ranks, head->distances, step->batch->tokens * sizeof *head->distances);
    for (size_t t = 0; t < step->batch->tokens; t++) head->distance += head->distances[t];
}

/* Runs the shards. Scores of a question may come from several groups, so all groups run forward before the first
 * backward pass. */
static deberta_status run_shards(step_state *step, deberta_error *err)
{
    const learner *l = step->learner;
    const bool is_whole = shard_group_at(&l->plan, step->batch, 0).count == l->options.asked.shards;
    const bool looks = only_looks(step->options);
    if (step->options->task == DEBERTA_TRAIN_CHOICE && !is_whole && !looks) {
        DEBERTA_TRY(run_groups(step, true, err));
        join_scores(step);
    }
    DEBERTA_TRY(run_groups(step, looks, err));
    join_losses(step);
    return DEBERTA_OK;
}

static double mean_loss(const step_state *step)
{
    const head_result *head = &step->head;
    double means[LOSS_ENDS] = {0};
    for (size_t end = 0; end < LOSS_ENDS; end++)
        if (head->counts.labelled[end])
            means[end] = sum_of_parts(head->losses[end], step->learner->options.asked.shards) /
                         (double)head->counts.labelled[end];
    return step->options->task == DEBERTA_TRAIN_QA ? (means[0] + means[1]) / 2 : means[0];
}

static step_result result_of(const step_state *step)
{
    const step_options *o = step->options;
    const head_result *head = &step->head;
    const double loss = mean_loss(step), weight = o->task == DEBERTA_TRAIN_RTD ? (double)o->rtd_weight : 1;
    const double distance = head->counts.pairs ? head->distance / (double)head->counts.pairs : 0;
    return (step_result){.loss = loss * weight + (double)o->sift_weight * distance,
                         .head_loss = loss,
                         .tokens = step->batch->tokens,
                         .labelled = head->counts.labelled[0] + head->counts.labelled[1]};
}

static void edit_embedded(void *context, float *rows, size_t first, size_t count)
{
    const step_state *step = context;
    step->options->edit->forward(step->options->edit->context, step, rows, first, count);
}

static void begin_step(step_state *step)
{
    forward_record *forward = &step->memory->forward;
    step->head.counts = step_counts(step->batch, step->options->task, step->options->pairs);
    relative_table_begin(step, step->batch);
    begin_dropout(step);
    forward->edit_embedded = step->options->edit ? edit_embedded : NULL;
    forward->edit_context = step;
    forward->positions = step->options->positions;
}

/* Clears the session's pointers into the step, and frees the step's scores. */
static void end_step(step_state *step)
{
    forward_record *forward = &step->memory->forward;
    forward->edit_embedded = NULL;
    forward->edit_context = NULL;
    forward->dropout = NULL;
    forward->positions = NULL;
    for (size_t i = 0; i < 2; i++) free(step->head.scores[i]);
    free(step->head.distances);
}

deberta_status step_run(learner *l, const step_batch *batch, const step_options *options, step_result *result,
                        deberta_error *err)
{
    step_state step = {.learner = l, .memory = &l->memory, .batch = batch, .options = options};
    stage_lap(l->clock, TRAINING_BATCH);
    begin_step(&step);
    deberta_status status = take_scores(&step)
                                ? run_shards(&step, err)
                                : status_fail(err, DEBERTA_E_MEMORY, "no memory for the scores of a step");
    if (status == DEBERTA_OK && !only_looks(options)) finish_gradients(&step);
    if (status == DEBERTA_OK) *result = result_of(&step);
    end_step(&step);
    return status;
}
