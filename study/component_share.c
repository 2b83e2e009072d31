/* SPDX-License-Identifier: MIT */
#include "study/component_share.h"

#include <stdlib.h>

deberta_status component_share_create(component_share *share, const deberta_model_info *model, size_t sentences,
                                      deberta_error *err)
{
    *share = (component_share){.sentences = sentences, .layers = model->layers, .heads = model->heads};
    size_t count;
    if (size_multiply(sentences, model->layers * model->heads * COMPONENT_TERMS, &count))
        share->squares = calloc(count, sizeof *share->squares);
    if (!share->squares) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the shares of %zu sentences", sentences);
    return DEBERTA_OK;
}

void component_share_free(component_share *share)
{
    free(share->squares);
    *share = (component_share){0};
}

static int wants_attention(void *context, size_t layer, size_t head, deberta_component component)
{
    (void)context, (void)layer, (void)head;
    return component == DEBERTA_C2C || component == DEBERTA_C2P || component == DEBERTA_P2C;
}

static void on_attention(void *context, const deberta_attention_block *block)
{
    component_share *share = context;
    double squares = 0;
    for (size_t i = 0; i < block->rows; i++) {
        const float *row = block->values + i * block->stride;
        double mean = 0;
        for (size_t j = 0; j < block->keys; j++) mean += (double)row[j];
        mean /= (double)block->keys;
        for (size_t j = 0; j < block->keys; j++) squares += ((double)row[j] - mean) * ((double)row[j] - mean);
    }
    component_share_at(share, share->first_sentence + block->sequence, block->layer, block->head)[block->component] +=
        squares;
}

deberta_observer component_share_observer(component_share *share)
{
    return (deberta_observer){.context = share, .wants_attention = wants_attention, .on_attention = on_attention};
}
