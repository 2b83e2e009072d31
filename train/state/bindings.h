/* From a packed matrix or vector of the engine back to the named tensors that it was made of: the same plan that the
 * loader read it by (core/load/weight_loader.h), walked the other way, puts a gradient where it belongs.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/state/parameters.h"

typedef struct matrix_binding {
    const packed_matrix *matrix;
    matrix_plan plan;
    parameter *weights[MAX_PARTS], *biases[MAX_PARTS]; /* biases: NULL where there is none */
} matrix_binding;

typedef struct vector_binding {
    const float *vector;
    parameter *parameter;
} vector_binding;

typedef struct binding_list {
    parameter_set *set;
    matrix_binding *matrices;
    vector_binding *vectors;
    size_t matrix_count, matrix_capacity, vector_count, vector_capacity;
    bool out_of_memory;
} binding_list;

/* To be given to the loader while it reads; *list has its set, and stays where it is. */
load_listener bindings_listener(binding_list *list);
void bindings_free(binding_list *list);

/* Adds a gradient of the packed matrix, [outputs][ld] with the columns of its depth, to the gradients of its tensors.
 * bias: [outputs] or NULL. */
void bindings_add_matrix(const binding_list *list, const packed_matrix *matrix, const float *gradient, size_t ld,
                         const float *bias, executor *executor);
/* Adds the gradient of one of the parts that the matrix is made of: qkv has 0 for queries and 1 for keys. */
void bindings_add_part(const binding_list *list, const packed_matrix *matrix, size_t part, const float *gradient,
                       size_t ld, const float *bias, executor *executor);
/* Gradients of scaled parts, such as the query projection, get their scale: once, when all has been added. */
void bindings_scale(const binding_list *list, executor *executor);

/* The tensor that became this vector, NULL if none did. */
parameter *bindings_vector(const binding_list *list, const float *vector);
