/* Which tensors the embeddings, the relative table, the layers and the convolution consist of.
 * SPDX-License-Identifier: MIT */
#include "core/model/load_layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------ embeddings, table */

static deberta_status load_embeddings(weight_loader *loader, deberta_model *model, deberta_error *err)
{
    const model_config *config = &model->config;
    size_t width = config->embedding_size, hidden = config->hidden_size;
    static const char positions[] = "embeddings.position_embeddings.weight";
    DEBERTA_TRY(loader_find(loader, &model->word_table, "embeddings.word_embeddings.weight", 2,
                            (size_t[]){config->vocabulary_size, width}, err));
    /* Not used at the input, the table still serves the Enhanced Mask Decoder; it is not counted then (SPEC 1.3). */
    loader->counting = config->position_biased_input;
    model->has_position_table = config->position_biased_input || loader_has(loader, positions);
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

static deberta_status load_relative_table(weight_loader *loader, deberta_model *model, deberta_error *err)
{
    const model_config *config = &model->config;
    size_t rows = model->relative_rows, hidden = config->hidden_size;
    layer_norm norm = {0};
    if (rows == 0) return DEBERTA_OK;
    DEBERTA_TRY(loader_table(loader, &model->relative_table, "encoder.rel_embeddings.weight", rows, hidden, err));
    if (config->norm_relative) {
        DEBERTA_TRY(load_norm(loader, &norm, "encoder.LayerNorm.weight", "encoder.LayerNorm.bias", hidden, err));
    }
    if (loader->pass == LOAD_CHECK) return DEBERTA_OK;
    model->relative_reversed = arena_take(loader->arena, rows * model->hidden_stride, sizeof *model->relative_reversed);
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

/* The outputs are heads of d rows, each padded to whole panels. */
static matrix_plan plan_of_heads(const deberta_model *model, size_t part_count)
{
    const model_config *config = &model->config;
    return (matrix_plan){
        .part_count = part_count,
        .groups = config->heads,
        .group_rows = model->head_size,
        .padded_group = model->padded_head,
        .columns = config->hidden_size,
        .depth = config->hidden_size,
    };
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

static matrix_plan plan_of_position_projection(const deberta_model *model, const char *name, const char *bias,
                                               double scale)
{
    matrix_plan plan = plan_of_heads(model, 1);
    plan.parts[0] = (matrix_part){
        .weight = name,
        .bias = bias,
        .row_step = model->head_size,
        .tensor_rows = model->config.heads * model->head_size,
        .scale = scale,
    };
    return plan;
}

/* In low precision reading keeps track of how large the channels become, product by product. */
static bool follows_channels(const weight_loader *loader) { return loader->digits && loader->pass == LOAD_READ; }

/* The hidden states: behind the norm of the embeddings, */
static void tell_hidden_of_embeddings(const weight_loader *loader, const deberta_model *model)
{
    const layer_norm *norm = &model->embedding_norm;
    if (follows_channels(loader)) spread_of_norm(&loader->hidden, norm->gamma, norm->beta, model->config.hidden_size);
}

/* behind that of a sum, to which the last product adds, */
static void tell_hidden_of_sum(const weight_loader *loader, const layer_norm *norm, const model_config *config)
{
    if (follows_channels(loader))
        spread_of_sum_norm(&loader->hidden, &loader->outputs, norm->gamma, norm->beta, config->layer_norm_eps,
                           config->hidden_size);
}

/* and behind that of the convolution, which adds to the first layer what only running tells. */
static void tell_hidden_of_convolution(const weight_loader *loader, const deberta_model *model)
{
    if (!follows_channels(loader) || model->config.convolution_width == 0) return;
    spread_of_unknown(&loader->outputs, model->config.hidden_size);
    tell_hidden_of_sum(loader, &model->convolution_norm, &model->config);
}

/* The product that is read next has the hidden states as its inputs. */
static void tell_inputs_of_hidden(const weight_loader *loader, size_t channels)
{
    if (!follows_channels(loader)) return;
    memcpy(loader->inputs.mean, loader->hidden.mean, channels * sizeof(float));
    memcpy(loader->inputs.deviation, loader->hidden.deviation, channels * sizeof(float));
}

/* It has what the last product wrote, from its output `first` on. */
static void tell_inputs_of_outputs(weight_loader *loader, size_t first, size_t channels)
{
    if (!follows_channels(loader)) return;
    memcpy(loader->inputs.mean, loader->outputs.mean + first, channels * sizeof(float));
    memcpy(loader->inputs.deviation, loader->outputs.deviation + first, channels * sizeof(float));
}

static deberta_status load_attention(weight_loader *loader, deberta_model *model, model_layer *layer,
                                     deberta_error *err)
{
    const model_config *config = &model->config;
    size_t hidden = config->hidden_size;
    matrix_plan qkv = config->version == 1 ? plan_of_qkv_v1(model) : plan_of_qkv_v2(model);
    tell_inputs_of_hidden(loader, hidden);
    DEBERTA_TRY(loader_product(loader, &layer->qkv, &qkv, err));

    /* A context row has every head padded to whole panels, as Q, K and V do. */
    matrix_plan output = matrix_plan_plain("attention.output.dense.weight", "attention.output.dense.bias", hidden,
                                           config->heads * model->head_size);
    output.depth = config->heads * model->padded_head;
    output.input_layout = INPUT_HEADS;
    output.input_group = model->head_size;
    output.input_stride = model->padded_head;
    tell_inputs_of_outputs(loader, 2 * output.depth, output.depth); /* averages of values */
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
    tell_inputs_of_hidden(loader, hidden);
    DEBERTA_TRY(loader_product(loader, &layer->intermediate, &first, err));
    tell_inputs_of_outputs(loader, 0, inner);
    if (follows_channels(loader))
        spread_activate(&loader->inputs, loader->kernels, model->config.hidden_activation, inner);
    DEBERTA_TRY(loader_product(loader, &layer->output, &second, err));
    DEBERTA_TRY(
        load_norm(loader, &layer->output_norm, "output.LayerNorm.weight", "output.LayerNorm.bias", hidden, err));
    tell_hidden_of_sum(loader, &layer->output_norm, &model->config);
    return DEBERTA_OK;
}

size_t model_position_key_floats(const deberta_model *model)
{
    size_t panels = ceiling_divide(model->relative_rows, PANEL);
    return model->has_c2p ? model->config.heads * panels * model->head_size * PANEL : 0;
}

/* The same of position_queries. */
static size_t position_query_floats(const deberta_model *model)
{
    return model->has_p2c ? model->config.heads * model->relative_rows * model->padded_head : 0;
}

position_fold model_layer_fold(const deberta_model *model, const packed_matrix *qkv, const packed_matrix *key,
                               const packed_matrix *query, const kernels *table)
{
    size_t part_panels = model->config.heads * model->head_panels;
    position_fold fold = {
        .kernels = table,
        .heads = model->config.heads,
        .head_size = model->head_size,
        .padded_head = model->padded_head,
        .rows = model->relative_rows,
        .table = model->relative_table,
        .reversed = model->relative_reversed,
        .ld = model->hidden_stride,
        .key_matrix = key ? *key : *qkv,
        .query_matrix = query ? *query : *qkv,
        .first_key_panel = key ? 0 : part_panels,
        .first_query_panel = 0,
    };
    return fold;
}

void position_workspace_carve(position_workspace *workspace, const deberta_model *model)
{
    size_t outputs = model->config.heads * model->padded_head;
    if (!workspace->keep && (!model->config.share_att_key || model->digits)) {
        packed_matrix_carve(&workspace->key, &workspace->arena, outputs, model->config.hidden_size);
        packed_matrix_carve(&workspace->query, &workspace->arena, outputs, model->config.hidden_size);
    }
    workspace->rows = arena_take(&workspace->arena, outputs * model->relative_rows, sizeof *workspace->rows);
}

static deberta_status load_one_projection(weight_loader *loader, packed_matrix *kept, const packed_matrix *temporary,
                                          bool keep, const matrix_plan *plan, deberta_error *err)
{
    return keep ? loader_matrix(loader, kept, plan, err) : loader_matrix_into(loader, temporary, plan, err);
}

/* Names of the projections of R: of v1, of their own, or those of the content, which they may share. */
static matrix_plan plan_of_position_keys(const deberta_model *model)
{
    if (model->config.version == 1)
        return plan_of_position_projection(model, "attention.self.pos_proj.weight", NULL, 1);
    if (model->config.share_att_key)
        return plan_of_position_projection(model, "attention.self.key_proj.weight", "attention.self.key_proj.bias", 1);
    return plan_of_position_projection(model, "attention.self.pos_key_proj.weight", "attention.self.pos_key_proj.bias",
                                       1);
}

static matrix_plan plan_of_position_queries(const deberta_model *model)
{
    if (model->config.version == 1)
        return plan_of_position_projection(model, "attention.self.pos_q_proj.weight", "attention.self.pos_q_proj.bias",
                                           model->scale);
    if (model->config.share_att_key)
        return plan_of_position_projection(model, "attention.self.query_proj.weight", "attention.self.query_proj.bias",
                                           model->scale);
    return plan_of_position_projection(model, "attention.self.pos_query_proj.weight",
                                       "attention.self.pos_query_proj.bias", model->scale);
}

/* Rows of one head among position_query_integers. */
static size_t position_tile_rows(const deberta_model *model) { return round_up(model->relative_rows, DIGIT_TILE_ROWS); }

static void take_position_integers(arena *memory, const deberta_model *model, model_layer *layer)
{
    size_t heads = model->config.heads, panels = heads * ceiling_divide(model->relative_rows, PANEL);
    if (model->has_c2p) layer->position_key_integers = integer_panels_take(memory, panels, model->head_size);
    if (model->has_p2c)
        layer->position_query_integers =
            integer_rows_take(memory, heads * position_tile_rows(model), model->head_size, 1);
}

static void fill_position_integers(const kernels *table, const deberta_model *model, const model_layer *layer)
{
    size_t heads = model->config.heads, d = model->head_size, rows = model->relative_rows;
    if (model->has_c2p)
        integer_panels_fill(&layer->position_key_integers, table, layer->position_keys, d * PANEL, NULL,
                            heads * ceiling_divide(rows, PANEL), d);
    for (size_t head = 0; model->has_p2c && head < heads; head++) {
        integer_rows to = integer_rows_from(&layer->position_query_integers, head * position_tile_rows(model), d);
        integer_rows_fill(&to, table, layer->position_queries + head * rows * model->padded_head, model->padded_head,
                          rows, d);
    }
}

/* What is folded is float32 in every precision; where attention multiplies integers they are there as well. Shared
 * projections that are integers by now are read once more; they are counted among the layer's matrices. */
static deberta_status load_position_projections(weight_loader *loader, deberta_model *model, model_layer *layer,
                                                position_workspace *workspace, deberta_error *err)
{
    bool apart = !model->config.share_att_key || loader->digits, keep = workspace->keep, counting = loader->counting;
    matrix_plan key = plan_of_position_keys(model), query = plan_of_position_queries(model);
    loader->counting = counting && !model->config.share_att_key;
    if (apart && model->has_c2p)
        DEBERTA_TRY(load_one_projection(loader, &layer->position_key, &workspace->key, keep, &key, err));
    if (apart && model->has_p2c)
        DEBERTA_TRY(load_one_projection(loader, &layer->position_query, &workspace->query, keep, &query, err));
    loader->counting = counting;
    if (loader->pass == LOAD_CHECK) return DEBERTA_OK;

    size_t key_floats = model_position_key_floats(model), query_floats = position_query_floats(model);
    if (key_floats) layer->position_keys = arena_take(loader->arena, key_floats, sizeof(float));
    if (query_floats) layer->position_queries = arena_take(loader->arena, query_floats, sizeof(float));
    if (model->integer_attention) take_position_integers(loader->arena, model, layer);
    if (loader->pass != LOAD_READ || model->relative_rows == 0 || workspace->unfolded) return DEBERTA_OK;

    const packed_matrix *from_key = keep ? &layer->position_key : &workspace->key;
    const packed_matrix *from_query = keep ? &layer->position_query : &workspace->query;
    position_fold fold =
        model_layer_fold(model, &layer->qkv, apart ? from_key : NULL, apart ? from_query : NULL, loader->kernels);
    fold.keys = layer->position_keys;
    fold.queries = layer->position_queries;
    fold.workspace = workspace->rows;
    position_fold_run(&fold, loader->executor);
    if (model->integer_attention) fill_position_integers(loader->kernels, model, layer);
    return DEBERTA_OK;
}

static deberta_status load_layers(weight_loader *loader, deberta_model *model, position_workspace *workspace,
                                  deberta_error *err)
{
    /* Not even the list of layers is allocated before all their tensors are known to be there. It holds addresses, so
     * it is no part of the arena, which may come from a file. */
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
    loader->prefix[0] = '\0';
    DEBERTA_TRY(load_embeddings(loader, model, err));
    DEBERTA_TRY(load_relative_table(loader, model, err));
    DEBERTA_TRY(load_convolution(loader, model, err)); /* layer 1 reads its norm */
    return load_layers(loader, model, workspace, err);
}
