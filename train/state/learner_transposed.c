/* Carves room for transposed weights. Those of heads are filled after each update, those of layers on demand: a layer's
 * weights are in a cache while it uses them, and transposes of all layers would take as much memory as the weights.
 *
 * SPDX-License-Identifier: MIT */
#include "train/state/step_state.h"

#include <string.h>

#include "train/state/products.h"

/* ---------------------------------------------------------------------------------------------------------- of layers */

static const packed_matrix *learner_transposed_matrix_of(const model_layer *layer, layer_matrix which)
{
    const packed_matrix *const matrices[LAYER_MATRICES] = {
        [MATRIX_QKV] = &layer->qkv,
        [MATRIX_ATTENTION_OUTPUT] = &layer->attention_output,
        [MATRIX_INTERMEDIATE] = &layer->intermediate,
        [MATRIX_OUTPUT] = &layer->output,
        [MATRIX_POSITION_KEY] = &layer->position_key,
        [MATRIX_POSITION_QUERY] = &layer->position_query,
    };
    return matrices[which];
}

const packed_matrix *transposed_of_layer(const step_state *step, size_t layer, layer_matrix which)
{
    const learner *l = step->learner;
    transposed_layer *held = &step->memory->transposed;
    if (held->layers[which] != layer + 1)
        transposed_fill(&held->matrices[which], learner_transposed_matrix_of(&l->model->layers[layer], which),
                        learner_kernels(l), l->session->executor);
    held->layers[which] = layer + 1;
    return &held->matrices[which];
}

/* --------------------------------------------------------------------------------------------------------- of heads */

enum { HEAD_MATRICES = 8 };

/* Parts that a model lacks have no panels. */
typedef struct weight_list {
    packed_matrix *to[HEAD_MATRICES];
    const packed_matrix *from[HEAD_MATRICES];
} weight_list;

static weight_list list_heads(learner *l)
{
    const deberta_model *model = l->model;
    const model_tasks *heads = &model->tasks;
    return (weight_list){
        .to = {&l->transposed.convolution, &l->transposed.projection, &l->transposed.mlm_dense,
               &l->transposed.rtd_dense, &l->transposed.rtd_classifier, &l->transposed.pooler,
               &l->transposed.classifier, &l->transposed.answer},
        .from = {&model->convolution, &model->embedding_projection, &heads->mlm_dense, &heads->rtd_dense,
                 &heads->rtd_classifier, &heads->pooler, &heads->classifier, &heads->answer},
    };
}

/* ------------------------------------------------------------------------------------------------------------ memory */

static void carve(packed_matrix *to, const packed_matrix *from, arena *memory, gradient_room *largest)
{
    const size_t outputs = from->panel_count * PANEL;
    transposed_carve(to, memory, from);
    largest->weight_floats = maximum(largest->weight_floats, outputs * row_stride(from->depth));
    largest->vector_floats = maximum(largest->vector_floats, outputs);
}

/* All layers have the same shapes. */
gradient_room learner_transposed_carve(learner *l, arena *memory)
{
    const weight_list heads = list_heads(l);
    gradient_room largest = {.vector_floats = l->session->normed_stride}; /* gain and bias of a norm */
    for (size_t i = 0; i < HEAD_MATRICES; i++) carve(heads.to[i], heads.from[i], memory, &largest);
    for (layer_matrix which = 0; which < LAYER_MATRICES; which++)
        carve(&l->memory.transposed.matrices[which], learner_transposed_matrix_of(&l->model->layers[0], which), memory,
              &largest);
    return largest;
}

void learner_transposed_fill(learner *l)
{
    const weight_list heads = list_heads(l);
    for (size_t i = 0; i < HEAD_MATRICES; i++)
        transposed_fill(heads.to[i], heads.from[i], learner_kernels(l), l->session->executor);
    memset(l->memory.transposed.layers, 0, sizeof l->memory.transposed.layers);
}
