/* Describes an open model, digests its checkpoint, sizes the sections of its packed file, and closes it.
 *
 * SPDX-License-Identifier: MIT */
#include "core/load/model.h"

#include <stdlib.h>

deberta_status model_intact(const deberta_model *model, deberta_error *err)
{
    DEBERTA_TRY(mapped_file_intact(&model->packed_file, err));
    return model->checkpoint ? checkpoint_intact(model->checkpoint, err) : DEBERTA_OK;
}

void deberta_model_free(deberta_model **model)
{
    if (!model || !*model) return;
    arena_release(&(*model)->arena);
    mapped_file_close(&(*model)->packed_file);
    free((*model)->layers);
    checkpoint_close(&(*model)->checkpoint);
    config_free(&(*model)->config);
    notes_free(&(*model)->notes);
    free((*model)->name);
    free(*model);
    *model = NULL;
}

void model_fill_info(deberta_model *model)
{
    const model_config *config = &model->config;
    unsigned present = model->tasks.present;
    model->info = (deberta_model_info){
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
        .tasks_present = present,
        .sequence_labels = present & 1u << DEBERTA_TASK_SEQUENCE ? model->tasks.labels : 0,
        .token_labels = present & 1u << DEBERTA_TASK_TOKEN ? model->tasks.labels : 0,
        .parameters = model->parameters,
        .memory_bytes = model->memory_bytes,
        .packed = model->packed,
        .precision = model->precision,
        .reference = config->reference,
        .problem = config->problem,
        .padding_id = config->pad_token_id,
    };
}

const deberta_model_info *deberta_model_describe(const deberta_model *model) { return &model->info; }

const char *deberta_model_note(const deberta_model *model, size_t index) { return notes_at(&model->notes, index); }

const char *deberta_model_label(const deberta_model *model, size_t label)
{
    return label < model->config.labels && model->config.label_names ? model->config.label_names[label] : NULL;
}

deberta_status deberta_model_digest(const deberta_model *model, char digest[65], deberta_error *err)
{
    if (!model || !digest)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "deberta_model_digest needs a model and a place for 65 characters");
    digest[0] = '\0';
    if (model->packed_alone) {
        packed_file_source(&model->packed_file, digest);
        return model_intact(model, err);
    }
    const bool has_files = model->checkpoint && !checkpoint_is_memory(model->checkpoint);
    return has_files ? checkpoint_digest(model->checkpoint, digest, err) : DEBERTA_OK;
}

/* --------------------------------------------------------------------------------------------------------- sections */

static size_t decoder_bytes(const deberta_model *model)
{
    return model->tasks.decoder_apart ? word_table_bytes(&model->tasks.mlm_decoder) : 0;
}

packed_sections model_sections(const deberta_model *model)
{
    packed_sections sections = {0};
    sections.of[PACKED_ARENA].size_bytes = model->memory_bytes;
    if (!model->digits) return sections;
    sections.of[PACKED_WORDS].size_bytes = word_table_bytes(&model->words) + decoder_bytes(model);
    sections.of[PACKED_TENSORS].size_bytes =
        model->packed_alone ? model->names.size_bytes : packed_tensors_bytes(model->checkpoint);
    return sections;
}

deberta_status model_store_words(const deberta_model *model, void *memory, deberta_error *err)
{
    DEBERTA_TRY(word_table_store(&model->words, &model->source, memory, err));
    if (!model->tasks.decoder_apart) return DEBERTA_OK;
    return word_table_store(&model->tasks.mlm_decoder, &model->source,
                            (uint8_t *)memory + word_table_bytes(&model->words), err);
}

void model_view_words(deberta_model *model, const void *memory)
{
    if (!model->digits) return;
    word_table_view(&model->words, memory);
    word_table_view(&model->tasks.mlm_decoder,
                    (const uint8_t *)memory + (model->tasks.decoder_apart ? word_table_bytes(&model->words) : 0));
}
