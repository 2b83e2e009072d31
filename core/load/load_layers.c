/* Lists and loads the tensors of the embeddings, the relative table, the layers and the convolution.
 *
 * SPDX-License-Identifier: MIT */
#include "core/load/load_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------ embeddings, table */

/* Sets has_position_table. A table that the input does not read serves the Enhanced Mask Decoder alone: with another
 * shape than the configuration's it becomes a note, and the model works without it. */
static deberta_status find_position_table(weight_loader *loader, deberta_model *model, const char *name,
                                          deberta_error *err)
{
    const model_config *config = &model->config;
    deberta_error why = {0};
    weight_tensor table;
    model->has_position_table = config->position_biased_input || loader_has(loader, name);
    if (config->position_biased_input || !model->has_position_table) return DEBERTA_OK;
    const deberta_status status =
        loader_find(loader, &table, name, 2, (size_t[]){config->max_positions, config->embedding_size}, &why);
    if (status == DEBERTA_OK) return DEBERTA_OK;
    if (status != DEBERTA_E_FORMAT) return status_fail(err, status, "%s", why.message);
    model->has_position_table = false;
    return notes_add(&model->notes, err, "%s; so the table is not used, and its decoder (mlm_emd) is not offered",
                     why.message);
}

static deberta_status load_embeddings(weight_loader *loader, deberta_model *model, deberta_error *err)
{
    const model_config *config = &model->config;
    size_t width = config->embedding_size, hidden = config->hidden_size;
    static const char positions[] = "embeddings.position_embeddings.weight";
    model->words.digits = model->digits;
    DEBERTA_TRY(loader_find(loader, &model->words.stored, "embeddings.word_embeddings.weight", 2,
                            (size_t[]){config->vocabulary_size, width}, err));
    /* A table that the input does not read still serves the Enhanced Mask Decoder, but its parameters are not counted
     * (SPEC 1.3). */
    loader->counting = config->position_biased_input;
    DEBERTA_TRY(find_position_table(loader, model, positions, err));
    if (model->has_position_table) {
        DEBERTA_TRY(loader_table(loader, &model->position_table, positions, config->max_positions, width, err));
    }
    loader->counting = true;
    if (config->token_types > 0) {
        DEBERTA_TRY(loader_table(loader, &model->type_table, "embeddings.token_type_embeddings.weight",
                                 config->token_types, width, err));
    }
    if (width != hidden) {
        matrix_plan plan = matrix_plan_plain("embeddings.embed_proj.weight", NULL, hidden, width);
        DEBERTA_TRY(loader_matrix(loader, &model->embedding_projection, &plan, err));
    }
    return load_norm(loader, &model->embedding_norm, "embeddings.LayerNorm.weight", "embeddings.LayerNorm.bias", hidden,
                     err);
}

static void arrange_relative_table(deberta_model *model)
{
    size_t rows = model->relative_rows, stride = model->hidden_stride;
    for (size_t row = 0; row < rows; row++) {
        memcpy(model->relative_reversed + (rows - 1 - row) * stride, model->relative_table + row * stride,
               stride * sizeof(float));
    }
    if (!model->rule.p2c_row) return;
    for (size_t row = 0; row < rows; row++) {
        size_t from = model->rule.p2c_row(&model->rule, row);
        memcpy(model->relative_table + row * stride, model->relative_reversed + (rows - 1 - from) * stride,
               stride * sizeof(float));
    }
}

/* Loads the rows of the relative table. Low precision needs them only while it folds, so they lie in the workspace. */
static deberta_status load_relative_rows(weight_loader *loader, deberta_model *model,
                                         const position_workspace *workspace, deberta_error *err)
{
    static const char name[] = "encoder.rel_embeddings.weight";
    const size_t rows = model->relative_rows, hidden = model->config.hidden_size;
    if (!model->digits) return loader_table(loader, &model->relative_table, name, rows, hidden, err);
    model->relative_table = workspace->relative_table;
    model->relative_reversed = workspace->relative_reversed;
    return loader_table_into(loader, model->relative_table, name, rows, hidden, err);
}

static deberta_status load_relative_table(weight_loader *loader, deberta_model *model,
                                          const position_workspace *workspace, deberta_error *err)
{
    const model_config *config = &model->config;
    size_t rows = model->relative_rows, hidden = config->hidden_size;
    layer_norm norm = {0};
    if (rows == 0) return DEBERTA_OK;
    DEBERTA_TRY(load_relative_rows(loader, model, workspace, err));
    if (config->norm_relative) {
        DEBERTA_TRY(load_norm(loader, &norm, "encoder.LayerNorm.weight", "encoder.LayerNorm.bias", hidden, err));
    }
    if (loader->pass == LOAD_CHECK) return DEBERTA_OK;
    if (!model->digits)
        model->relative_reversed = arena_take(loader->arena, rows * model->hidden_stride, sizeof(float));
    if (loader->pass != LOAD_READ) return DEBERTA_OK;
    if (config->norm_relative) {
        loader->kernels->layernorm_f32(model->relative_table, model->hidden_stride, model->relative_table,
                                       model->hidden_stride, norm.gamma, norm.beta, rows, hidden,
                                       config->layer_norm_eps);
    }
    arrange_relative_table(model);
    return DEBERTA_OK;
}

/* ----------------------------------------------------------------------------------------------------------- layers */

static matrix_plan plan_of_heads(const deberta_model *model, size_t part_count)
{
    return matrix_plan_heads(part_count, model->config.heads, model->head_size, model->padded_head,
                             model->config.hidden_size);
}

/* v1 stores one tensor, q, k and v of a head one after the other, and has no key bias (SPEC 3.1). */
static matrix_plan plan_of_qkv_v1(const deberta_model *model)
{
    static const char *const biases[] = {"attention.self.q_bias", NULL, "attention.self.v_bias"};
    size_t d = model->head_size, width = model->config.heads * d;
    matrix_plan plan = plan_of_heads(model, 3);
    for (size_t part = 0; part < 3; part++) {
        plan.parts[part] = (matrix_part){
            .weight = "attention.self.in_proj.weight",
            .bias = biases[part],
            .first_row = part * d,
            .row_step = 3 * d,
            .tensor_rows = 3 * width,
            .scale = part == 0 ? model->scale : 1,
        };
    }
    return plan;
}

static matrix_plan plan_of_qkv_v2(const deberta_model *model)
{
    static const char *const names[][2] = {
        {"attention.self.query_proj.weight", "attention.self.query_proj.bias"},
        {"attention.self.key_proj.weight", "attention.self.key_proj.bias"},
        {"attention.self.value_proj.weight", "attention.self.value_proj.bias"},
    };
    size_t d = model->head_size;
    matrix_plan plan = plan_of_heads(model, 3);
    for (size_t part = 0; part < 3; part++) {
        plan.parts[part] = (matrix_part){
            .weight = names[part][0],
            .bias = names[part][1],
            .row_step = d,
            .tensor_rows = model->config.heads * d,
            .scale = part == 0 ? model->scale : 1,
        };
    }
    return plan;
}

/* Returns whether this pass estimates the size of the channels, product by product: only the reading pass of low
 * precision does. */
static bool follows_channels(const weight_loader *loader) { return loader->digits && loader->pass == LOAD_READ; }

/* Sets the spread of the hidden states after the LayerNorm of the embeddings. */
static void tell_hidden_of_embeddings(const weight_loader *loader, const deberta_model *model)
{
    const layer_norm *norm = &model->embedding_norm;
    if (follows_channels(loader)) spread_of_norm(&loader->hidden, norm->gamma, norm->beta, model->config.hidden_size);
}

/* Sets the spread of the hidden states after the LayerNorm of a sum of hidden states and the last product's outputs. */
static void tell_hidden_of_sum(const weight_loader *loader, const layer_norm *norm, const model_config *config)
{
    if (follows_channels(loader))
        spread_of_sum_norm(&loader->hidden, &loader->outputs, norm->gamma, norm->beta, config->layer_norm_eps,
                           config->hidden_size);
}

/* Sets the spread of the hidden states after the convolution, whose output has a spread that only running would show.
 */
static void tell_hidden_of_convolution(const weight_loader *loader, const deberta_model *model)
{
    if (!follows_channels(loader) || model->config.convolution_width == 0) return;
    spread_of_unknown(&loader->outputs, model->config.hidden_size);
    tell_hidden_of_sum(loader, &model->convolution_norm, &model->config);
}

/* Makes these channels the inputs of the product that is read next. */
static void tell_inputs(const weight_loader *loader, const channel_spread *from, size_t first, size_t channels)
{
    memcpy(loader->inputs.mean, from->mean + first, channels * sizeof(float));
    memcpy(loader->inputs.deviation, from->deviation + first, channels * sizeof(float));
}

static void tell_usual_inputs(const weight_loader *loader, const channel_spread *from, size_t first, size_t channels)
{
    if (!follows_channels(loader)) return;
    tell_inputs(loader, from, first, channels);
    usual_amplitudes(loader->amplitudes, &loader->inputs, channels);
}

/* Makes the last product's outputs, after the activation, the inputs of the next one. */
static void tell_activated_inputs(const weight_loader *loader, const model_config *config)
{
    const size_t inner = config->intermediate_size;
    if (!follows_channels(loader)) return;
    tell_inputs(loader, &loader->outputs, 0, inner);
    largest_amplitudes(loader->amplitudes, &loader->inputs, loader->kernels, config->hidden_activation, inner,
                       config->hidden_size);
    spread_activate(&loader->inputs, loader->kernels, config->hidden_activation, inner);
}

static deberta_status load_attention(weight_loader *loader, deberta_model *model, model_layer *layer,
                                     deberta_error *err)
{
    const model_config *config = &model->config;
    size_t hidden = config->hidden_size;
    matrix_plan qkv = config->version == 1 ? plan_of_qkv_v1(model) : plan_of_qkv_v2(model);
    tell_usual_inputs(loader, &loader->hidden, 0, hidden);
    DEBERTA_TRY(loader_product(loader, &layer->qkv, &qkv, err));

    /* A context row has every head padded to whole panels, as Q, K and V do. */
    matrix_plan output = matrix_plan_plain("attention.output.dense.weight", "attention.output.dense.bias", hidden,
                                           config->heads * model->head_size);
    output.depth = config->heads * model->padded_head;
    output.input_layout = INPUT_HEADS;
    output.input_group = model->head_size;
    output.input_stride = model->padded_head;
    /* The inputs are averages of values, so they have the spread of V. */
    tell_usual_inputs(loader, &loader->outputs, 2 * output.depth, output.depth);
    DEBERTA_TRY(loader_product(loader, &layer->attention_output, &output, err));
    DEBERTA_TRY(load_norm(loader, &layer->attention_norm, "attention.output.LayerNorm.weight",
                          "attention.output.LayerNorm.bias", hidden, err));
    tell_hidden_of_sum(loader, &layer->attention_norm, config);
    if (config->talking_heads) {
        DEBERTA_TRY(loader_table(loader, &layer->head_logits, "attention.self.head_logits_proj.weight", config->heads,
                                 config->heads, err));
        DEBERTA_TRY(loader_table(loader, &layer->head_weights, "attention.self.head_weights_proj.weight", config->heads,
                                 config->heads, err));
    }
    return DEBERTA_OK;
}

static deberta_status load_feed_forward(weight_loader *loader, deberta_model *model, model_layer *layer,
                                        deberta_error *err)
{
    size_t hidden = model->config.hidden_size, inner = model->config.intermediate_size;
    matrix_plan first = matrix_plan_plain("intermediate.dense.weight", "intermediate.dense.bias", inner, hidden);
    matrix_plan second = matrix_plan_plain("output.dense.weight", "output.dense.bias", hidden, inner);
    tell_usual_inputs(loader, &loader->hidden, 0, hidden);
    DEBERTA_TRY(loader_product(loader, &layer->intermediate, &first, err));
    tell_activated_inputs(loader, &model->config);
    DEBERTA_TRY(loader_product(loader, &layer->output, &second, err));
    DEBERTA_TRY(
        load_norm(loader, &layer->output_norm, "output.LayerNorm.weight", "output.LayerNorm.bias", hidden, err));
    tell_hidden_of_sum(loader, &layer->output_norm, &model->config);
    return DEBERTA_OK;
}

static deberta_status load_layers(weight_loader *loader, deberta_model *model, position_workspace *workspace,
                                  deberta_error *err)
{
    /* The list of layers is allocated only once the check has found all their tensors. It holds addresses, so it is not
     * part of the arena, which may come from a file. */
    if (loader->pass != LOAD_CHECK && !model->layers) {
        model->layers = calloc(model->config.layers, sizeof *model->layers);
        if (!model->layers) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for %zu layers", model->config.layers);
    }
    for (size_t i = 0; i < model->config.layers; i++) {
        model_layer placeholder = {0}, *layer = model->layers ? &model->layers[i] : &placeholder;
        snprintf(loader->prefix, sizeof loader->prefix, "encoder.layer.%zu.", i);
        if (i == 0) tell_hidden_of_embeddings(loader, model);
        if (i == 1) tell_hidden_of_convolution(loader, model);
        DEBERTA_TRY(load_attention(loader, model, layer, err));
        DEBERTA_TRY(load_feed_forward(loader, model, layer, err));
        DEBERTA_TRY(load_position_projections(loader, model, layer, workspace, err));
    }
    loader->prefix[0] = '\0';
    return DEBERTA_OK;
}

static deberta_status load_convolution(weight_loader *loader, deberta_model *model, deberta_error *err)
{
    const model_config *config = &model->config;
    if (config->convolution_width == 0) return DEBERTA_OK;
    matrix_plan plan = matrix_plan_plain("encoder.conv.conv.weight", "encoder.conv.conv.bias", config->hidden_size,
                                         config->hidden_size / config->convolution_groups * config->convolution_width);
    plan.input_layout = INPUT_CONVOLUTION;
    plan.input_group = config->hidden_size / config->convolution_groups;
    plan.input_stride = model->hidden_stride;
    plan.width = config->convolution_width;
    plan.depth = config->convolution_width * model->hidden_stride;
    DEBERTA_TRY(loader_matrix(loader, &model->convolution, &plan, err));
    return load_norm(loader, &model->convolution_norm, "encoder.conv.LayerNorm.weight", "encoder.conv.LayerNorm.bias",
                     config->hidden_size, err);
}

deberta_status load_encoder(weight_loader *loader, deberta_model *model, position_workspace *workspace,
                            deberta_error *err)
{
    loader->counting = true;
    loader->most = LARGEST_WEIGHT;
    loader->prefix[0] = '\0';
    DEBERTA_TRY(load_embeddings(loader, model, err));
    DEBERTA_TRY(load_relative_table(loader, model, workspace, err));
    /* Layer 1 needs the convolution's LayerNorm, for the spread of its inputs. */
    DEBERTA_TRY(load_convolution(loader, model, err));
    return load_layers(loader, model, workspace, err);
}
