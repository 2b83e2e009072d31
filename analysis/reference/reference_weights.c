/* Reads tensors of a model as doubles, by name and expected shape, and converts the weights of a layer to one form
 * (SPEC 3.1, 4.1, 9).
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/reference/reference_weights.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

deberta_status shelf_take(shelf *owner, size_t count, double **values, deberta_error *err)
{
    *values = owner->count < SHELF_CAPACITY ? calloc(count ? count : 1, sizeof **values) : NULL;
    if (!*values) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for %zu more doubles of the reference model", count);
    owner->items[owner->count++] = *values;
    return DEBERTA_OK;
}

void shelf_clear(shelf *owner)
{
    while (owner->count > 0) free(owner->items[--owner->count]);
}

/* ------------------------------------------------------------------------------------------------------- tensors */

bool reference_has(const reference_model *model, const char *name, ...)
{
    char text[160];
    size_t rank, shape[TENSOR_MAX_RANK];
    va_list arguments;
    va_start(arguments, name);
    vsnprintf(text, sizeof text, name, arguments);
    va_end(arguments);
    return model->source.find(model->source.context, text, &rank, shape);
}

static deberta_status check_shape(const reference_model *model, const char *name, size_t rows, size_t columns,
                                  deberta_error *err)
{
    size_t rank, shape[TENSOR_MAX_RANK];
    if (!model->source.find(model->source.context, name, &rank, shape))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "tensor '%s' is missing", name);
    /* Trailing dimensions count as one: a convolution's [h][h/G][width] is h rows here. */
    size_t rest = 1;
    for (size_t axis = 1; axis < rank; axis++) rest *= shape[axis];
    if (rank < 1 || shape[0] != rows || rest != (columns ? columns : 1))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "tensor '%s' has %zu x %zu elements, expected %zu x %zu", name,
                     rank ? shape[0] : 0, rest, rows, columns ? columns : 1);
    return DEBERTA_OK;
}

deberta_status reference_fetch(const reference_model *model, shelf *owner, double **values, size_t rows, size_t columns,
                               deberta_error *err, const char *name, ...)
{
    char text[160];
    va_list arguments;
    va_start(arguments, name);
    vsnprintf(text, sizeof text, name, arguments);
    va_end(arguments);
    size_t count = rows * (columns ? columns : 1);
    DEBERTA_TRY(check_shape(model, text, rows, columns, err));
    DEBERTA_TRY(shelf_take(owner, count, values, err));
    return model->source.read(model->source.context, text, 0, count, *values, err);
}

deberta_status reference_fetch_row(const reference_model *model, const char *name, int64_t row, size_t rows,
                                   size_t width, double *values, deberta_error *err)
{
    DEBERTA_TRY(check_shape(model, name, rows, width, err));
    if (row < 0 || (uint64_t)row >= rows)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "row %lld of '%s', which has %zu", (long long)row, name, rows);
    return model->source.read(model->source.context, name, (size_t)row * width, width, values, err);
}

/* --------------------------------------------------------------------------------------------------------- layers */

/* Splits in_proj, which holds q, k, v of head 0, then of head 1 ... (SPEC 3.1), into v2's three matrices. There is no
 * key bias. */
static deberta_status read_projections_v1(const reference_model *m, size_t layer, layer_weights *w, deberta_error *err)
{
    size_t h = m->config.hidden_size, A = m->config.heads, d = m->config.head_size, H = A * d;
    double *in_proj;
    DEBERTA_TRY(reference_fetch(m, &w->shelf, &in_proj, 3 * H, h, err,
                                "encoder.layer.%zu.attention.self.in_proj.weight", layer));
    double **stacked[3] = {&w->query_weight, &w->key_weight, &w->value_weight};
    for (size_t part = 0; part < 3; part++) {
        DEBERTA_TRY(shelf_take(&w->shelf, H * h, stacked[part], err));
        for (size_t a = 0; a < A; a++)
            memcpy(*stacked[part] + a * d * h, in_proj + (a * 3 + part) * d * h, d * h * sizeof(double));
    }
    DEBERTA_TRY(
        reference_fetch(m, &w->shelf, &w->query_bias, H, 0, err, "encoder.layer.%zu.attention.self.q_bias", layer));
    DEBERTA_TRY(shelf_take(&w->shelf, H, &w->key_bias, err));
    return reference_fetch(m, &w->shelf, &w->value_bias, H, 0, err, "encoder.layer.%zu.attention.self.v_bias", layer);
}

static deberta_status read_pair(const reference_model *m, layer_weights *w, size_t layer, const char *module,
                                size_t out, size_t in, double **weight, double **bias, deberta_error *err)
{
    DEBERTA_TRY(reference_fetch(m, &w->shelf, weight, out, in, err, "encoder.layer.%zu.%s.weight", layer, module));
    return reference_fetch(m, &w->shelf, bias, out, 0, err, "encoder.layer.%zu.%s.bias", layer, module);
}

static deberta_status read_projections_v2(const reference_model *m, size_t layer, layer_weights *w, deberta_error *err)
{
    size_t h = m->config.hidden_size, H = m->config.heads * m->config.head_size;
    DEBERTA_TRY(read_pair(m, w, layer, "attention.self.query_proj", H, h, &w->query_weight, &w->query_bias, err));
    DEBERTA_TRY(read_pair(m, w, layer, "attention.self.key_proj", H, h, &w->key_weight, &w->key_bias, err));
    return read_pair(m, w, layer, "attention.self.value_proj", H, h, &w->value_weight, &w->value_bias, err);
}

/* Reads the position projections: SPEC 3.1 gives v1's names (no bias on the key side), 4.1 the others. */
static deberta_status read_position_projections(const reference_model *m, size_t layer, layer_weights *w,
                                                deberta_error *err)
{
    size_t h = m->config.hidden_size, H = m->config.heads * m->config.head_size;
    bool v1 = m->config.version == 1, shared = !v1 && m->config.share_att_key;
    if (m->c2p && shared) {
        w->position_key_weight = w->key_weight;
        w->position_key_bias = w->key_bias;
    } else if (m->c2p && v1) {
        DEBERTA_TRY(reference_fetch(m, &w->shelf, &w->position_key_weight, H, h, err,
                                    "encoder.layer.%zu.attention.self.pos_proj.weight", layer));
        DEBERTA_TRY(shelf_take(&w->shelf, H, &w->position_key_bias, err));
    } else if (m->c2p) {
        DEBERTA_TRY(read_pair(m, w, layer, "attention.self.pos_key_proj", H, h, &w->position_key_weight,
                              &w->position_key_bias, err));
    }
    if (m->p2c && shared) {
        w->position_query_weight = w->query_weight;
        w->position_query_bias = w->query_bias;
    } else if (m->p2c) {
        const char *module = v1 ? "attention.self.pos_q_proj" : "attention.self.pos_query_proj";
        DEBERTA_TRY(read_pair(m, w, layer, module, H, h, &w->position_query_weight, &w->position_query_bias, err));
    }
    return DEBERTA_OK;
}

static deberta_status read_talking_heads(const reference_model *m, size_t layer, layer_weights *w, deberta_error *err)
{
    size_t A = m->config.heads;
    if (!m->config.talking_heads) return DEBERTA_OK;
    DEBERTA_TRY(reference_fetch(m, &w->shelf, &w->head_logits, A, A, err,
                                "encoder.layer.%zu.attention.self.head_logits_proj.weight", layer));
    return reference_fetch(m, &w->shelf, &w->head_weights, A, A, err,
                           "encoder.layer.%zu.attention.self.head_weights_proj.weight", layer);
}

deberta_status layer_weights_read(const reference_model *m, size_t layer, layer_weights *w, deberta_error *err)
{
    size_t h = m->config.hidden_size, H = m->config.heads * m->config.head_size, f = m->config.intermediate_size;
    memset(w, 0, sizeof *w);
    if (m->config.version == 1)
        DEBERTA_TRY(read_projections_v1(m, layer, w, err));
    else
        DEBERTA_TRY(read_projections_v2(m, layer, w, err));
    DEBERTA_TRY(read_position_projections(m, layer, w, err));
    DEBERTA_TRY(read_talking_heads(m, layer, w, err));
    DEBERTA_TRY(read_pair(m, w, layer, "attention.output.dense", h, H, &w->attention_weight, &w->attention_bias, err));
    DEBERTA_TRY(
        read_pair(m, w, layer, "attention.output.LayerNorm", h, 0, &w->attention_gain, &w->attention_shift, err));
    DEBERTA_TRY(
        read_pair(m, w, layer, "intermediate.dense", f, h, &w->intermediate_weight, &w->intermediate_bias, err));
    DEBERTA_TRY(read_pair(m, w, layer, "output.dense", h, f, &w->output_weight, &w->output_bias, err));
    return read_pair(m, w, layer, "output.LayerNorm", h, 0, &w->output_gain, &w->output_shift, err);
}
