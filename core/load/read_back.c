/* Reconstructs the original tensors of an open model: repeats the walk that packed them, with a listener that unpacks
 * one. Positions come back folded: the relative table in each layer's projections.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/io/quote.h"
#include "core/load/load_parts.h"
#include "include/deberta_unstable.h"

typedef struct reader {
    const char *name;
    float *values;
    size_t count;
    bool found, wrong_count;
} reader;

static bool takes(reader *r, const char *name, size_t count)
{
    if (strcmp(r->name, name) != 0) return false;
    r->found = true;
    r->wrong_count = r->count != count;
    return !r->wrong_count;
}

static bool takes_of(reader *r, const char *prefix, const char *name, size_t count)
{
    const size_t length = strlen(prefix);
    if (!name || strncmp(r->name, prefix, length) != 0 || strcmp(r->name + length, name) != 0) return false;
    return takes(r, r->name, count);
}

static float unscaled(float value, double scale) { return scale == 1 ? value : (float)((double)value / scale); }

/* Returns input `column` of output `output`. */
static float packed_value(const packed_matrix *matrix, size_t output, size_t column)
{
    const size_t start = column / matrix->block_depth * matrix->block_depth;
    return packed_matrix_panel(matrix, start, output / PANEL)[(column - start) * PANEL + output % PANEL];
}

static void read_part(reader *r, const packed_matrix *matrix, const matrix_plan *plan, size_t part)
{
    const matrix_part *from = &plan->parts[part];
    for (size_t group = 0; group < plan->groups; group++) {
        for (size_t lane = 0; lane < plan->group_rows; lane++) {
            const size_t row = from->first_row + group * from->row_step + lane;
            const size_t output = (part * plan->groups + group) * plan->padded_group + lane;
            float *to = r->values + row * plan->columns;
            for (size_t c = 0; c < plan->columns; c++)
                to[c] = unscaled(packed_value(matrix, output, matrix_plan_packed_column(plan, row, c)), from->scale);
        }
    }
}

static void read_part_bias(reader *r, const packed_matrix *matrix, const matrix_plan *plan, size_t part)
{
    for (size_t group = 0; group < plan->groups; group++) {
        const float *bias = matrix->bias + (part * plan->groups + group) * plan->padded_group;
        for (size_t lane = 0; lane < plan->group_rows; lane++)
            r->values[group * plan->group_rows + lane] = unscaled(bias[lane], plan->parts[part].scale);
    }
}

static void on_matrix(void *context, const packed_matrix *matrix, const matrix_plan *plan, const char *prefix)
{
    reader *r = context;
    for (size_t part = 0; part < plan->part_count; part++) {
        const matrix_part *from = &plan->parts[part];
        if (takes_of(r, prefix, from->weight, from->tensor_rows * plan->columns)) read_part(r, matrix, plan, part);
        if (takes_of(r, prefix, from->bias, plan->groups * plan->group_rows)) read_part_bias(r, matrix, plan, part);
    }
}

static void on_vector(void *context, const float *vector, size_t count, const char *name)
{
    reader *r = context;
    if (takes(r, name, count)) memcpy(r->values, vector, count * sizeof *vector);
}

/* Walks over a copy of the model, because the walk sets addresses; they come out equal to the model's. */
static deberta_status walk(const deberta_model *model, const load_listener *listener, deberta_error *err)
{
    deberta_model copy = *model;
    position_workspace workspace = {0};
    copy.layers = NULL;
    arena_rewind(&copy.arena);
    weight_loader loader = {.source = &model->source, .arena = &copy.arena, .listener = listener, .pass = LOAD_VIEW};
    deberta_status status = load_encoder(&loader, &copy, &workspace, err);
    if (status == DEBERTA_OK) status = load_tasks(&loader, &copy, err);
    free(copy.layers);
    return status;
}

deberta_status deberta_model_read_weight(const deberta_model *model, const char *name, float *values, size_t count,
                                         deberta_error *err)
{
    if (!model || !name || !values || model->described_only)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "deberta_model_read_weight needs a model with weights, a name and a place for the values");
    if (model->precision != DEBERTA_PRECISION_FLOAT32)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: weights of low precision are not kept as they were", model->name);
    reader r = {.name = name, .values = values, .count = count};
    const load_listener listener = {.context = &r, .on_matrix = on_matrix, .on_vector = on_vector};
    DEBERTA_TRY(walk(model, &listener, err));
    DEBERTA_TRY(model_intact(model, err));
    if (r.wrong_count)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: tensor '%s' has not %zu values", model->name, QUOTE(name), count);
    if (!r.found)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: tensor '%s' is not kept as it was", model->name, QUOTE(name));
    return DEBERTA_OK;
}

deberta_status deberta_model_read_positions(const deberta_model *model, size_t layer, float *keys, float *queries,
                                            deberta_error *err)
{
    if (!model || model->described_only || layer >= model->config.layers)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "deberta_model_read_positions needs a model with weights and a layer of it");
    if ((keys && !model->has_c2p) || (queries && !model->has_p2c))
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s has no %s", model->name, keys && !model->has_c2p ? "c2p" : "p2c");
    if (model->integer_attention)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: position projections of %s are not kept as they were",
                     model->name, deberta_precision_name(model->precision));
    const model_layer *from = &model->layers[layer];
    const size_t d = model->head_size, rows = model->relative_rows, panels = ceiling_divide(rows, PANEL);
    for (size_t head_row = 0; head_row < model->config.heads * rows; head_row++) {
        const size_t head = head_row / rows, reversed = rows - 1 - head_row % rows;
        const float *panel = keys ? from->position_keys + (head * panels + reversed / PANEL) * d * PANEL : NULL;
        for (size_t k = 0; k < d && keys; k++) keys[head_row * d + k] = panel[k * PANEL + reversed % PANEL];
        if (queries)
            memcpy(queries + head_row * d, from->position_queries + head_row * model->padded_head, d * sizeof *queries);
    }
    return model_intact(model, err);
}
