/* Room for the transposed weights is carved, and they are filled again after each update.
 *
 * SPDX-License-Identifier: MIT */
#include "train/engine/learner_transposed.h"

#include "train/engine/products.h"

enum { MOST_MATRICES = 8 };

/* Matrices of a layer, or those outside of layers; what a model lacks has no panels. */
typedef struct weight_list {
    packed_matrix *to[MOST_MATRICES];
    const packed_matrix *from[MOST_MATRICES];
    size_t count;
} weight_list;

static weight_list list_layer(const model_layer *from, transposed_layer *to)
{
    return (weight_list){
        .to = {&to->qkv, &to->attention_output, &to->intermediate, &to->output, &to->position_key, &to->position_query},
        .from = {&from->qkv, &from->attention_output, &from->intermediate, &from->output, &from->position_key,
                 &from->position_query},
        .count = 6,
    };
}

static weight_list list_others(learner *l)
{
    const deberta_model *model = l->model;
    const model_tasks *heads = &model->tasks;
    return (weight_list){
        .to = {&l->transposed.convolution, &l->transposed.projection, &l->transposed.mlm_dense,
               &l->transposed.rtd_dense, &l->transposed.rtd_classifier, &l->transposed.pooler,
               &l->transposed.classifier, &l->transposed.answer},
        .from = {&model->convolution, &model->embedding_projection, &heads->mlm_dense, &heads->rtd_dense,
                 &heads->rtd_classifier, &heads->pooler, &heads->classifier, &heads->answer},
        .count = 8,
    };
}

static void carve(const weight_list *list, arena *memory, gradient_room *largest)
{
    for (size_t i = 0; i < list->count; i++) {
        const packed_matrix *matrix = list->from[i];
        const size_t outputs = matrix->panel_count * PANEL;
        transposed_carve(list->to[i], memory, matrix);
        largest->weight_floats = maximum(largest->weight_floats, outputs * row_stride(matrix->depth));
        largest->vector_floats = maximum(largest->vector_floats, outputs);
    }
}

gradient_room learner_transposed_carve(learner *l, arena *memory)
{
    const weight_list others = list_others(l);
    gradient_room largest = {.vector_floats = l->session->normed_stride}; /* of norms */
    carve(&others, memory, &largest);
    l->transposed.layers = arena_take(memory, l->model->config.layers, sizeof *l->transposed.layers);
    for (size_t i = 0; i < l->model->config.layers; i++) {
        transposed_layer measured = {0};
        const weight_list layer =
            list_layer(&l->model->layers[i], l->transposed.layers ? &l->transposed.layers[i] : &measured);
        carve(&layer, memory, &largest);
    }
    return largest;
}

static void fill(const learner *l, const weight_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        transposed_fill(list->to[i], list->from[i], learner_kernels(l), l->session->executor);
}

void learner_transposed_fill(learner *l)
{
    const weight_list others = list_others(l);
    for (size_t i = 0; i < l->model->config.layers; i++) {
        const weight_list layer = list_layer(&l->model->layers[i], &l->transposed.layers[i]);
        fill(l, &layer);
    }
    fill(l, &others);
}
