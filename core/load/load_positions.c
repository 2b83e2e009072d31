/* Loads the tensors that project the relative table, and folds the table into PK and PQ of each layer.
 *
 * SPDX-License-Identifier: MIT */
#include "core/load/load_parts.h"

/* ---------------------------------------------------------------------------------------------------------- tensors */

static matrix_plan plan_of_position_projection(const deberta_model *model, const char *name, const char *bias,
                                               double scale)
{
    matrix_plan plan =
        matrix_plan_heads(1, model->config.heads, model->head_size, model->padded_head, model->config.hidden_size);
    plan.parts[0] = (matrix_part){
        .weight = name,
        .bias = bias,
        .row_step = model->head_size,
        .tensor_rows = model->config.heads * model->head_size,
        .scale = scale,
    };
    return plan;
}

/* Describe the projections of R: those of v1, tensors of their own, or those of the content where share_att_key is
 * true. */
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

/* ---------------------------------------------------------------------------------------------------------- folding */

size_t model_position_key_floats(const deberta_model *model)
{
    size_t panels = ceiling_divide(model->relative_rows, PANEL);
    return model->has_c2p ? model->config.heads * panels * model->head_size * PANEL : 0;
}

/* Returns the number of floats of position_queries. */
static size_t position_query_floats(const deberta_model *model)
{
    return model->has_p2c ? model->config.heads * model->relative_rows * model->padded_head : 0;
}

/* Carves PK and PQ of a layer, each if the model has it. */
static void take_position_floats(arena *memory, const deberta_model *model, float **keys, float **queries)
{
    size_t key_floats = model_position_key_floats(model), query_floats = position_query_floats(model);
    if (key_floats) *keys = arena_take(memory, key_floats, sizeof **keys);
    if (query_floats) *queries = arena_take(memory, query_floats, sizeof **queries);
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
    if (!model->digits) return;
    size_t floats = model->relative_rows * model->hidden_stride;
    workspace->relative_table = arena_take(&workspace->arena, floats, sizeof(float));
    workspace->relative_reversed = arena_take(&workspace->arena, floats, sizeof(float));
    if (model->integer_attention) take_position_floats(&workspace->arena, model, &workspace->keys, &workspace->queries);
}

/* --------------------------------------------------------------------------------------------------------- integers */

static void take_position_integers(arena *memory, const deberta_model *model, model_layer *layer)
{
    size_t heads = model->config.heads, panels = heads * ceiling_divide(model->relative_rows, PANEL);
    if (model->has_c2p) layer->position_key_integers = integer_panels_take(memory, panels, model->head_size);
    if (model->has_p2c)
        layer->position_query_integers =
            integer_rows_take(memory, heads * model_position_tile_rows(model), model->head_size, 1);
}

/* Quantizes the folded tables. */
static void fill_position_integers(const position_fold *fold, const deberta_model *model, const model_layer *layer)
{
    const kernels *table = fold->kernels;
    size_t heads = model->config.heads, d = model->head_size, rows = model->relative_rows;
    if (model->has_c2p)
        integer_panels_fill(&layer->position_key_integers, table, fold->keys, d * PANEL, NULL,
                            heads * ceiling_divide(rows, PANEL), d);
    for (size_t head = 0; model->has_p2c && head < heads; head++) {
        integer_rows to = integer_rows_from(&layer->position_query_integers, head * model_position_tile_rows(model), d);
        integer_rows_fill(&to, table, fold->queries + head * rows * model->padded_head, model->padded_head, rows, d);
    }
}

/* ---------------------------------------------------------------------------------------------------------- loading */

static deberta_status load_one_projection(weight_loader *loader, packed_matrix *kept, const packed_matrix *temporary,
                                          bool keep, const matrix_plan *plan, deberta_error *err)
{
    return keep ? loader_matrix(loader, kept, plan, err) : loader_matrix_into(loader, temporary, plan, err);
}

/* Folding works in float32 in every precision; where attention multiplies integers, its result is quantized. Shared
 * projections that are already quantized are read once more as floats; the layer's matrices already count their
 * parameters. */
deberta_status load_position_projections(weight_loader *loader, deberta_model *model, model_layer *layer,
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

    if (model->integer_attention)
        take_position_integers(loader->arena, model, layer);
    else
        take_position_floats(loader->arena, model, &layer->position_keys, &layer->position_queries);
    if (loader->pass != LOAD_READ || model->relative_rows == 0 || workspace->unfolded) return DEBERTA_OK;

    const packed_matrix *from_key = keep ? &layer->position_key : &workspace->key;
    const packed_matrix *from_query = keep ? &layer->position_query : &workspace->query;
    position_fold fold =
        model_layer_fold(model, &layer->qkv, apart ? from_key : NULL, apart ? from_query : NULL, loader->kernels);
    fold.keys = model->integer_attention ? workspace->keys : layer->position_keys;
    fold.queries = model->integer_attention ? workspace->queries : layer->position_queries;
    fold.workspace = workspace->rows;
    position_fold_run(&fold, loader->executor);
    if (model->integer_attention) fill_position_integers(&fold, model, layer);
    return DEBERTA_OK;
}
