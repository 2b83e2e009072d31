/* What an open model is asked, and closing it. SPDX-License-Identifier: MIT */
#include "core/model/model.h"

#include <stdlib.h>
#include <string.h>

deberta_status copy_struct(void *to, const void *from, size_t size_bytes, const char *what, deberta_error *err)
{
    memset(to, 0, size_bytes);
    if (!from) return DEBERTA_OK;
    size_t given_bytes;
    memcpy(&given_bytes, from, sizeof given_bytes);
    if (given_bytes < sizeof given_bytes) {
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: struct_size is %zu; set it to sizeof the struct", what, given_bytes);
    }
    memcpy(to, from, minimum(given_bytes, size_bytes));
    return DEBERTA_OK;
}

void deberta_model_free(deberta_model **model)
{
    if (!model || !*model) return;
    arena_release(&(*model)->arena);
    mapped_file_close(&(*model)->packed_file);
    free((*model)->layers);
    checkpoint_close(&(*model)->checkpoint);
    config_free(&(*model)->config);
    free((*model)->name);
    free(*model);
    *model = NULL;
}

void deberta_model_describe(const deberta_model *model, deberta_model_info *info)
{
    const model_config *config = &model->config;
    unsigned present = model->heads.present;
    *info = (deberta_model_info){
        .name = model->name,
        .version = config->version,
        .vocabulary_size = config->vocabulary_size,
        .hidden_size = config->hidden_size,
        .intermediate_size = config->intermediate_size,
        .layers = config->layers,
        .heads = config->heads,
        .head_size = config->head_size,
        .embedding_size = config->embedding_size,
        .max_positions = config->max_positions,
        .max_relative_positions = config->max_relative_positions,
        .position_buckets = config->position_buckets,
        .relative_rows = model->relative_rows,
        .has_c2p = model->has_c2p,
        .has_p2c = model->has_p2c,
        .position_biased_input = config->position_biased_input,
        .has_position_table = model->has_position_table,
        .token_types = config->token_types,
        .convolution_width = config->convolution_width,
        .heads_present = present,
        .sequence_labels = present & 1u << DEBERTA_HEAD_SEQUENCE ? model->heads.labels : 0,
        .token_labels = present & 1u << DEBERTA_HEAD_TOKEN ? model->heads.labels : 0,
        .parameters = model->parameters,
        .memory_bytes = model->memory_bytes,
        .packed = model->packed,
    };
}

const char *deberta_model_label(const deberta_model *model, size_t label)
{
    return label < model->config.labels && model->config.label_names ? model->config.label_names[label] : NULL;
}

deberta_status model_digest(const deberta_model *model, char digest[65], deberta_error *err)
{
    digest[0] = '\0';
    return model->checkpoint ? checkpoint_digest(model->checkpoint, digest, err) : DEBERTA_OK;
}

const char *deberta_version(void) { return DEBERTA_VERSION_TEXT; }
