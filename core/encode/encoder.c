/* Implements deberta_encode: checks a batch, in which sequences follow each other without padding, and runs the layers
 * over it.
 *
 * SPDX-License-Identifier: MIT */
#include "core/encode/encoder.h"

#include <math.h>
#include <string.h>

#include "core/encode/encoder_parts.h"

/* --------------------------------------------------------------------------------------------------------- checking */

static deberta_status check_sequences(const deberta_session *s, const deberta_batch *batch, deberta_error *err)
{
    if (!batch->ids || !batch->sequence_starts) {
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "a batch needs ids and sequence_starts");
    }
    if (batch->sequences == 0) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "the batch is empty: it has no sequence");
    const size_t *starts = batch->sequence_starts;
    if (starts[0] != 0) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "sequence 0 starts at token %zu, expected 0", starts[0]);
    for (size_t i = 0; i < batch->sequences; i++) {
        if (starts[i + 1] <= starts[i]) {
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "sequence %zu is empty: it starts at token %zu and ends at %zu", i,
                         starts[i], starts[i + 1]);
        }
        /* This check is inside the loop, so that a wrong number of sequences does not make it read past the end of
         * sequence_starts: it stops after max_tokens sequences. */
        if (starts[i + 1] > s->max_tokens) {
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                         "sequence %zu ends at token %zu, but the session was made for %zu tokens", i, starts[i + 1],
                         s->max_tokens);
        }
    }
    return DEBERTA_OK;
}

static deberta_status check_values(const int32_t *values, size_t count, size_t rows, const char *what,
                                   const char *table, deberta_error *err)
{
    for (size_t t = 0; t < count; t++) {
        if (values[t] >= 0 && (size_t)values[t] < rows) continue;
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s %d at token %zu: the %s has %zu rows (0 ... %zu)", what,
                     (int)values[t], t, table, rows, rows - 1);
    }
    return DEBERTA_OK;
}

/* Absolute positions limit the length only where the input uses their table (SPEC 2). */
static deberta_status check_positions(const deberta_session *s, const deberta_batch *batch, size_t tokens,
                                      deberta_error *err)
{
    const model_config *config = &s->model->config;
    if (!config->position_biased_input) return DEBERTA_OK;
    if (batch->position_ids) {
        return check_values(batch->position_ids, tokens, config->max_positions, "position", "position table", err);
    }
    for (size_t i = 0; i < batch->sequences; i++) {
        size_t n = batch->sequence_starts[i + 1] - batch->sequence_starts[i];
        if (n <= config->max_positions) continue;
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "sequence %zu has %zu tokens, but the position table of this model has %zu rows", i, n,
                     config->max_positions);
    }
    return DEBERTA_OK;
}

static deberta_status check_batch(const deberta_session *s, const deberta_batch *batch, deberta_error *err)
{
    const model_config *config = &s->model->config;
    DEBERTA_TRY(check_sequences(s, batch, err));
    size_t tokens = batch->sequence_starts[batch->sequences];
    DEBERTA_TRY(check_values(batch->ids, tokens, config->vocabulary_size, "id", "vocabulary", err));
    /* Without a table, token types are ignored, whatever their values (SPEC 1.1). */
    if (config->token_types > 0 && batch->token_types) {
        DEBERTA_TRY(
            check_values(batch->token_types, tokens, config->token_types, "token type", "token type table", err));
    }
    return check_positions(s, batch, tokens, err);
}

static deberta_status check_observer(const deberta_session *s, const deberta_observer *observer, deberta_error *err)
{
    if (observer->on_hidden && !(s->features & DEBERTA_OBSERVE_HIDDEN)) {
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "on_hidden needs a session with DEBERTA_OBSERVE_HIDDEN");
    }
    if (observer->on_attention && !(s->features & DEBERTA_OBSERVE_ATTENTION)) {
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "on_attention needs a session with DEBERTA_OBSERVE_ATTENTION");
    }
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------------- running */

/* Copies the parts of the batch that the layers and later calls need. */
static void take_batch(deberta_session *s, const deberta_batch *batch)
{
    s->sequences = batch->sequences;
    s->tokens = batch->sequence_starts[batch->sequences];
    memcpy(s->starts, batch->sequence_starts, (s->sequences + 1) * sizeof *s->starts);
    s->has_holes = false;
    for (size_t t = 0; t < s->tokens; t++) {
        s->mask[t] = !batch->mask || batch->mask[t] != 0;
        s->key_bias[t] = s->mask[t] ? 0 : -INFINITY;
        s->key_present[t] = s->mask[t] ? 1 : 0;
        if (!s->mask[t]) s->has_holes = true;
    }
    for (size_t i = 0; i < s->sequences; i++) {
        for (size_t t = s->starts[i]; t < s->starts[i + 1]; t++) {
            s->position_ids[t] = batch->position_ids ? batch->position_ids[t] : (int32_t)(t - s->starts[i]);
        }
    }
}

void encoder_take_batch(deberta_session *s, const deberta_batch *batch)
{
    take_batch(s, batch);
    /* No keys are packed, so every sequence begins at panel 0. */
    memset(s->panel_starts, 0, s->sequences * sizeof *s->panel_starts);
}

static deberta_status show_hidden(const deberta_session *s, const deberta_observer *observer, size_t layer,
                                  deberta_error *err)
{
    if (!observer || !observer->on_hidden || (s->features & DEBERTA_ONLY_HEADS && layer == s->model->config.layers))
        return DEBERTA_OK;
    const deberta_hidden_block block = {.layer = layer,
                                        .tokens = s->tokens,
                                        .columns = s->model->config.hidden_size,
                                        .stride = s->hidden_stride,
                                        .values = s->hidden};
    const deberta_status status = observer->on_hidden(observer->context, &block);
    if (status == DEBERTA_OK) return DEBERTA_OK;
    DEBERTA_FAIL(err, status, "the observer stopped the encode with status %d at hidden states %zu", status, layer);
}

/* Returns the first failure inside a parallel loop. */
static deberta_status first_failure(const deberta_session *s, deberta_error *err)
{
    if (s->status != DEBERTA_OK && err) *err = s->failure;
    return s->status;
}

/* Repeats a computation that loading usually does once, to measure its benefit. */
static void recompute_positions(deberta_session *s, const model_layer *layer)
{
    double time = profile_start(session_profiling(s));
    bool shared = s->model->config.share_att_key;
    position_fold fold = model_layer_fold(s->model, &layer->qkv, shared ? NULL : &layer->position_key,
                                          shared ? NULL : &layer->position_query, &s->kernels);
    fold.keys = s->fold_keys;
    fold.queries = s->fold_queries;
    fold.workspace = s->fold_workspace;
    position_fold_run(&fold, s->executor);
    profile_lap_all(session_profiling(s), PROFILE_POSITIONS, time);
}

/* Computes what a layer does with its queries, keys and values. */
static void run_rows(deberta_session *s, size_t index, const deberta_observer *observer)
{
    ablation_take_means(s, index);
    s->attend(s, index, observer);
    patches_make_heads(s, index, NULL, s->tokens);
    feed_forward_run(s, &s->model->layers[index], s->tokens, s->context, s->hidden);
}

static void run_layer(deberta_session *s, size_t index, const deberta_observer *observer)
{
    const model_layer *layer = &s->model->layers[index];
    const forward_record *record = s->internal.record;
    const bool only_keys =
        (s->left_to_heads || (record && record->decoder_only)) && index + 1 == s->model->config.layers;
    if (record) session_record(s, &record->layers[index], s->hidden, s->tokens);
    if (s->internal.recompute_positions && (s->has_c2p || s->has_p2c)) recompute_positions(s, layer);
    const position_change *change = session_position_change(s);
    if (change) change->begin_layer(change->context, index);
    double time = profile_start(session_profiling(s));
    attention_project(s, layer, s->tokens, s->hidden, only_keys ? PROJECT_KEYS : PROJECT_ALL);
    profile_lap_all(session_profiling(s), PROFILE_QKV, time);
    if (!only_keys) run_rows(s, index, observer);
    if (record) session_detach(s);
}

void encoder_finish(deberta_session *s)
{
    const size_t last = s->model->config.layers - 1;
    if (!s->left_to_heads) return;
    attention_project(s, &s->model->layers[last], s->tokens, s->hidden, PROJECT_QUERIES);
    run_rows(s, last, NULL);
    s->left_to_heads = false;
}

void encoder_layer_again(deberta_session *s, size_t index)
{
    const layer_record *record = &s->internal.record->layers[index];
    memcpy(s->hidden, record->input, s->tokens * s->hidden_stride * sizeof *s->hidden);
    run_layer(s, index, NULL);
}

/* Returns true if the rows of the last layer wait for the heads that ask for them. Changes see a whole layer. */
static bool leaves_rows(const deberta_session *s)
{
    const deberta_interventions *changes = &s->internal.interventions.changes;
    return s->may_leave_rows && !changes->edit_hidden && !changes->row_bias && changes->patch_count == 0 &&
           !session_position_change(s);
}

static deberta_status encoder_run(deberta_session *s, const deberta_batch *batch, const deberta_observer *observer,
                                  deberta_error *err)
{
    const size_t layers = s->internal.layers ? s->internal.layers : s->model->config.layers, first = s->first_layer;
    s->status = DEBERTA_OK;
    if (first > layers)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "an encode from H[%zu] of a session of %zu layers", first, layers);
    if (first == 0)
        embed_run(s, batch->ids, batch->token_types);
    else
        memset(s->hidden, 0, s->tokens * s->hidden_stride * sizeof *s->hidden);
    DEBERTA_TRY(first_failure(s, err));
    DEBERTA_TRY(interventions_edit(s, first, err));
    DEBERTA_TRY(show_hidden(s, observer, first, err));
    if (s->halo && first == 0) convolution_keep_input(s);
    for (size_t i = first; i < layers; i++) {
        if (i + 1 == layers && s->decoder_input) {
            memcpy(s->decoder_input, s->hidden, s->tokens * s->hidden_stride * sizeof *s->hidden);
        }
        run_layer(s, i, observer);
        if (i == 0 && s->halo) (s->model->convolve ? s->model->convolve : convolution_run)(s);
        DEBERTA_TRY(first_failure(s, err));
        DEBERTA_TRY(interventions_edit(s, i + 1, err));
        DEBERTA_TRY(show_hidden(s, observer, i + 1, err));
    }
    return DEBERTA_OK;
}

/* Size of the first version of deberta_outputs: encoding stores these members, so a smaller struct_size is a mistake.
 * Later members may be stored only where struct_size covers them. */
enum { OUTPUTS_BYTES = offsetof(deberta_outputs, hidden_stride) + sizeof(size_t) };

static deberta_status copy_call(deberta_batch *batch, deberta_observer *observer, const deberta_batch *given,
                                const deberta_outputs *outputs, deberta_error *err)
{
    deberta_outputs out;
    DEBERTA_TRY(copy_struct(batch, given, sizeof *batch, "deberta_batch", err));
    DEBERTA_TRY(copy_struct(&out, outputs, sizeof out, "deberta_outputs", err));
    if (out.struct_size < OUTPUTS_BYTES)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "deberta_outputs: struct_size is %zu, expected at least %zu",
                     out.struct_size, (size_t)OUTPUTS_BYTES);
    return copy_struct(observer, batch->observer, sizeof *observer, "deberta_observer", err);
}

static deberta_status encoder_encode(deberta_session *s, const deberta_batch *batch, const deberta_observer *observer,
                                     deberta_outputs *outputs, deberta_error *err)
{
    DEBERTA_TRY(check_batch(s, batch, err));
    DEBERTA_TRY(check_observer(s, observer, err));
    s->encoded = false;
    take_batch(s, batch);
    s->internal.interventions.changes = s->internal.interventions.next;
    s->first_layer = s->internal.interventions.changes.first_layer;
    s->left_to_heads = leaves_rows(s);
    DEBERTA_TRY(patches_check(s, err));
    executor_begin(s->executor);
    const deberta_status status = encoder_run(s, batch, batch->observer ? observer : NULL, err);
    executor_end(s->executor);
    DEBERTA_TRY(model_intact(s->model, err));
    DEBERTA_TRY(status);
    s->encoded = true;
    outputs->hidden = s->features & DEBERTA_ONLY_HEADS ? NULL : s->hidden;
    outputs->hidden_stride = s->hidden_stride;
    return DEBERTA_OK;
}

deberta_status deberta_encode(deberta_session *s, const deberta_batch *given, deberta_outputs *outputs,
                              deberta_error *err)
{
    if (!s || !given || !outputs)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "deberta_encode needs a session, a batch and outputs");
    deberta_batch batch;
    deberta_observer observer;
    DEBERTA_TRY(copy_call(&batch, &observer, given, outputs, err));
    DEBERTA_TRY(session_enter(s, err));
    const deberta_status status = encoder_encode(s, &batch, &observer, outputs, err);
    session_leave(s);
    return status;
}
