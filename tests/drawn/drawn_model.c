/* Draws weights for every tensor that the configuration asks for; saves a model as a folder.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/drawn/drawn_model.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/numbers.h"
#include "core/base/text.h"
#include "core/io/export.h"
#include "output/scope.h"

/* ----------------------------------------------------------------------------------------------------------- weights */

typedef struct weight_writer {
    drawn_model *model;
    uint64_t *state;
    const char *prefix; /* of the encoder's names */
} weight_writer;

/* A number of mean 0 and variance 1, from -3 to 3: the sum of three uniform ones. */
static double random_deviate(uint64_t *state)
{
    return 2 * (random_fraction(state) + random_fraction(state) + random_fraction(state)) - 3;
}

/* A tensor [rows][columns][third], of a vector columns is 0, without a third dimension third is 0. */
static void add_tensor(weight_writer *w, double mean, double deviation, size_t rows, size_t columns, size_t third,
                       const char *prefix, const char *format, va_list arguments)
{
    drawn_model *model = w->model;
    drawn_tensor tensor = {.rank = third ? 3 : columns ? 2 : 1, .shape = {rows, columns, third}};
    const int used = snprintf(tensor.name, sizeof tensor.name, "%s", prefix);
    vsnprintf(tensor.name + used, sizeof tensor.name - (size_t)used, format, arguments);
    tensor.count = rows * (columns ? columns : 1) * (third ? third : 1);
    model->tensors = memory_grown(model->tensors, &model->capacity, model->count + 1, sizeof *model->tensors);
    tensor.values = memory_take(tensor.count, sizeof *tensor.values);
    for (size_t e = 0; e < tensor.count; e++) tensor.values[e] = (float)(mean + deviation * random_deviate(w->state));
    model->tensors[model->count++] = tensor;
}

__attribute__((format(printf, 4, 5))) static void add_table(weight_writer *w, size_t rows, size_t columns,
                                                            const char *name, ...)
{
    va_list arguments;
    va_start(arguments, name);
    add_tensor(w, 0, 1, rows, columns, 0, w->prefix, name, arguments);
    va_end(arguments);
}

/* Adds a matrix, of the encoder if prefix is the writer's; a deviation of 1 keeps the variance of the multiplied
 * values. */
__attribute__((format(printf, 6, 7))) static void add_matrix(weight_writer *w, const char *prefix, double deviation,
                                                             size_t rows, size_t columns, const char *name, ...)
{
    va_list arguments;
    va_start(arguments, name);
    add_tensor(w, 0, deviation / sqrt((double)columns), rows, columns, 0, prefix, name, arguments);
    va_end(arguments);
}

__attribute__((format(printf, 5, 6))) static void add_vector(weight_writer *w, const char *prefix, double mean,
                                                             size_t count, const char *name, ...)
{
    va_list arguments;
    va_start(arguments, name);
    add_tensor(w, mean, 0.2, count, 0, 0, prefix, name, arguments);
    va_end(arguments);
}

/* module.weight and module.bias. */
static void add_linear(weight_writer *w, const char *prefix, double deviation, size_t rows, size_t columns,
                       const char *module)
{
    add_matrix(w, prefix, deviation, rows, columns, "%s.weight", module);
    add_vector(w, prefix, 0, rows, "%s.bias", module);
}

static void add_norm(weight_writer *w, const char *prefix, size_t width, const char *module)
{
    add_vector(w, prefix, 1, width, "%s.weight", module);
    add_vector(w, prefix, 0, width, "%s.bias", module);
}

static void add_convolution(weight_writer *w, const char *name, ...)
{
    const model_config *c = &w->model->config;
    const size_t inputs = c->hidden_size / c->convolution_groups;
    va_list arguments;
    va_start(arguments, name);
    add_tensor(w, 0, 1 / sqrt((double)(inputs * c->convolution_width)), c->hidden_size, inputs, c->convolution_width,
               w->prefix, name, arguments);
    va_end(arguments);
}

static void add_embeddings(weight_writer *w, const drawn_wish *wish)
{
    const model_config *c = &w->model->config;
    const size_t E = c->embedding_size, h = c->hidden_size;
    const bool positions = c->position_biased_input || wish->decodes || random_below(w->state, 2);
    add_table(w, c->vocabulary_size, E, "embeddings.word_embeddings.weight");
    if (positions) add_table(w, c->max_positions, E, "embeddings.position_embeddings.weight");
    if (c->token_types) add_table(w, c->token_types, E, "embeddings.token_type_embeddings.weight");
    if (E != h) add_matrix(w, w->prefix, 1, h, E, "embeddings.embed_proj.weight");
    add_norm(w, w->prefix, h, "embeddings.LayerNorm");
    if (c->c2p || c->p2c) add_table(w, 2 * c->relative_span, h, "encoder.rel_embeddings.weight");
    if ((c->c2p || c->p2c) && c->norm_relative) add_norm(w, w->prefix, h, "encoder.LayerNorm");
    if (c->convolution_width == 0) return;
    add_convolution(w, "encoder.conv.conv.weight");
    add_vector(w, w->prefix, 0, h, "encoder.conv.conv.bias");
    add_norm(w, w->prefix, h, "encoder.conv.LayerNorm");
}

/* Logits of standard deviation around 1, so that attention is neither uniform nor one token's. */
static const double sharp = 1.1;

static void add_attention_v1(weight_writer *w, size_t layer)
{
    const model_config *c = &w->model->config;
    const size_t h = c->hidden_size;
    add_matrix(w, w->prefix, sharp, 3 * h, h, "encoder.layer.%zu.attention.self.in_proj.weight", layer);
    add_vector(w, w->prefix, 0, h, "encoder.layer.%zu.attention.self.q_bias", layer);
    add_vector(w, w->prefix, 0, h, "encoder.layer.%zu.attention.self.v_bias", layer);
    if (c->c2p) add_matrix(w, w->prefix, sharp, h, h, "encoder.layer.%zu.attention.self.pos_proj.weight", layer);
    if (c->p2c) add_matrix(w, w->prefix, sharp, h, h, "encoder.layer.%zu.attention.self.pos_q_proj.weight", layer);
    if (c->p2c) add_vector(w, w->prefix, 0, h, "encoder.layer.%zu.attention.self.pos_q_proj.bias", layer);
    if (!c->talking_heads) return;
    add_matrix(w, w->prefix, 1, c->heads, c->heads, "encoder.layer.%zu.attention.self.head_logits_proj.weight", layer);
    add_matrix(w, w->prefix, 1, c->heads, c->heads, "encoder.layer.%zu.attention.self.head_weights_proj.weight", layer);
}

static void add_module(weight_writer *w, size_t layer, double deviation, size_t rows, size_t columns,
                       const char *module)
{
    char name[80];
    snprintf(name, sizeof name, "encoder.layer.%zu.%s", layer, module);
    if (columns)
        add_linear(w, w->prefix, deviation, rows, columns, name);
    else
        add_norm(w, w->prefix, rows, name);
}

static void add_attention_v2(weight_writer *w, size_t layer)
{
    const model_config *c = &w->model->config;
    const size_t h = c->hidden_size;
    add_module(w, layer, sharp, h, h, "attention.self.query_proj");
    add_module(w, layer, sharp, h, h, "attention.self.key_proj");
    add_module(w, layer, 1, h, h, "attention.self.value_proj");
    if (c->c2p && !c->share_att_key) add_module(w, layer, sharp, h, h, "attention.self.pos_key_proj");
    if (c->p2c && !c->share_att_key) add_module(w, layer, sharp, h, h, "attention.self.pos_query_proj");
}

static void add_layer(weight_writer *w, size_t layer)
{
    const model_config *c = &w->model->config;
    const size_t h = c->hidden_size, f = c->intermediate_size;
    (c->version == 1 ? add_attention_v1 : add_attention_v2)(w, layer);
    add_module(w, layer, 1, h, h, "attention.output.dense");
    add_module(w, layer, 1, h, 0, "attention.output.LayerNorm");
    add_module(w, layer, 1, f, h, "intermediate.dense");
    add_module(w, layer, 1, h, f, "output.dense");
    add_module(w, layer, 1, h, 0, "output.LayerNorm");
}

static void add_legacy_lm(weight_writer *w)
{
    const model_config *c = &w->model->config;
    const size_t E = c->embedding_size, V = c->vocabulary_size;
    add_linear(w, "", 1, E, c->hidden_size, "cls.predictions.transform.dense");
    add_norm(w, "", E, "cls.predictions.transform.LayerNorm");
    add_vector(w, "", 0, V, random_below(w->state, 2) ? "cls.predictions.bias" : "cls.predictions.decoder.bias");
    if (random_below(w->state, 2)) add_matrix(w, "", 1, V, E, "cls.predictions.decoder.weight");
}

static void add_heads(weight_writer *w, const drawn_wish *wish)
{
    const model_config *c = &w->model->config;
    const size_t h = c->hidden_size, E = c->embedding_size;
    if (wish->heads & DRAWN_LM) {
        add_linear(w, "", 1, E, h, "lm_predictions.lm_head.dense");
        add_norm(w, "", E, "lm_predictions.lm_head.LayerNorm");
        add_vector(w, "", 0, c->vocabulary_size, "lm_predictions.lm_head.bias");
    }
    if (wish->heads & DRAWN_LEGACY_LM) add_legacy_lm(w);
    if (wish->heads & DRAWN_RTD) {
        add_linear(w, "", 1, h, h, "mask_predictions.dense");
        add_norm(w, "", h, "mask_predictions.LayerNorm");
        add_linear(w, "", 1, 1, h, "mask_predictions.classifier");
    }
    if (wish->heads & DRAWN_SEQUENCE) add_linear(w, "", 1, h, h, "pooler.dense");
    if (wish->heads & (DRAWN_SEQUENCE | DRAWN_TOKEN)) add_linear(w, "", 1, wish->labels, h, "classifier");
    if (wish->heads & DRAWN_ANSWER) add_linear(w, "", 1, 2, h, "qa_outputs");
}

deberta_status drawn_model_make(drawn_model *model, const drawn_wish *wish, uint64_t *state, deberta_error *err)
{
    static const char *const prefixes[] = {"deberta.", "", "bert."};
    *model = (drawn_model){.json = drawn_configuration(wish, state)};
    weight_writer w = {.model = model, .state = state, .prefix = prefixes[random_below(state, 3)]};
    if (!model->json) memory_short();
    deberta_status status = config_parse(&model->config, model->json, strlen(model->json), "drawn config.json", err);
    if (status == DEBERTA_OK) {
        /* The tensors give the version if the configuration does not. */
        if (model->config.version == 0) model->config.version = 1 + (int)random_below(state, 2);
        add_embeddings(&w, wish);
        for (size_t layer = 0; layer < model->config.layers; layer++) add_layer(&w, layer);
        add_heads(&w, wish);
    }
    if (status != DEBERTA_OK) drawn_model_free(model);
    return status;
}

void drawn_model_free(drawn_model *model)
{
    for (size_t i = 0; i < model->count; i++) free(model->tensors[i].values);
    free(model->tensors);
    free(model->json);
    config_free(&model->config);
    *model = (drawn_model){0};
}

/* ------------------------------------------------------------------------------------------------------------ saving */

static deberta_status save_configuration(const drawn_model *model, const char *folder, deberta_error *err)
{
    char *path = path_join(folder, "config.json");
    FILE *file = path ? fopen(path, "w") : NULL;
    const bool written = file && fputs(model->json, file) >= 0;
    const bool closed = file && stream_close(file);
    free(path);
    if (!written || !closed) DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: config.json cannot be written", folder);
    return DEBERTA_OK;
}

static deberta_status save_tensors(const drawn_model *model, const export_tensor *declared, const char *path,
                                   deberta_error *err)
{
    static const export_note note = {"format", "pt"};
    export_file *file = NULL;
    deberta_status status = export_safetensors(&file, path, declared, model->count, &note, 1, err);
    for (size_t i = 0; status == DEBERTA_OK && i < model->count; i++)
        status = export_write(file, i, 0, model->tensors[i].values, model->tensors[i].count, err);
    if (status == DEBERTA_OK) return export_finish(&file, err);
    export_discard(&file);
    return status;
}

deberta_status drawn_model_save(const drawn_model *model, const char *folder, deberta_error *err)
{
    char *path = path_join(folder, "model.safetensors");
    export_tensor *declared = memory_take(model->count, sizeof *declared);
    if (!path) memory_short();
    deberta_status status = save_configuration(model, folder, err);
    for (size_t i = 0; i < model->count; i++) {
        const drawn_tensor *tensor = &model->tensors[i];
        declared[i] = (export_tensor){.name = tensor->name, .dtype = DTYPE_F32, .rank = tensor->rank};
        memcpy(declared[i].shape, tensor->shape, sizeof tensor->shape);
    }
    if (status == DEBERTA_OK) status = save_tensors(model, declared, path, err);
    free(declared);
    free(path);
    return status;
}

deberta_status drawn_model_open(deberta_model **opened, const drawn_model *model, const deberta_model_options *options,
                                deberta_error *err)
{
    deberta_tensor *tensors = memory_take(model->count, sizeof *tensors);
    for (size_t i = 0; i < model->count; i++)
        tensors[i] = (deberta_tensor){.name = model->tensors[i].name,
                                      .values = model->tensors[i].values,
                                      .dtype = DEBERTA_FLOAT32,
                                      .rank = model->tensors[i].rank,
                                      .shape = model->tensors[i].shape};
    const deberta_status status =
        deberta_model_open_memory(opened, "drawn", model->json, tensors, model->count, options, err);
    free(tensors);
    return status;
}
