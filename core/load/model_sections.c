/* Computes the sizes of a packed file's sections, and locates the word tables in one of them.
 *
 * SPDX-License-Identifier: MIT */
#include "core/load/model_sections.h"

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
