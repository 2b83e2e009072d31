/* Holds the trained weights: every tensor of a model's files by name, in float32, with its gradient. It is a
 * weight_source, so the engine packs them as it packs a file's (core/load/weight_loader.h): a step multiplies with the
 * same values that opening the saved checkpoint gives.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/load/weight_loader.h"

/* Tables that a generator and a discriminator share, and the discriminator's differences to them. */
enum { SHARED_TABLES = 2 }; /* words, positions */
extern const char *const shared_tables[SHARED_TABLES], *const shared_differences[SHARED_TABLES];

typedef struct parameter {
    char *name, *stored_name; /* canonical, as the engine asks for it; as the file has it */
    size_t rank, shape[TENSOR_MAX_RANK], count;
    float *values, *gradient;
    bool made;    /* not of the files: see parameter_set_add */
    bool trained; /* gets a gradient, counts in the norm, is updated. The others are saved as they were */
} parameter;

typedef struct parameter_set {
    char *name;       /* of the model, for messages */
    parameter *items; /* in ascending order of the canonical names */
    size_t count, capacity;
} parameter_set;

/* Zeros for values and gradient; name and count are set. */
deberta_status parameter_allocate(parameter *parameter, deberta_error *err);

/* Reads all floating-point tensors of a folder. On failure *set is empty. */
deberta_status parameter_set_read(parameter_set *set, const char *folder, deberta_error *err);
void parameter_set_free(parameter_set *set);

/* A tensor of zeros in the shape of another, next to it: "_weight" beside "weight". Nothing where it is there already,
 * or the other is not. Before anything points into the set. */
deberta_status parameter_set_add(parameter_set *set, const char *name, const char *beside, deberta_error *err);
/* A tensor that no file has, stored as prefix + name: its values are 0. The list may move, and is in no order until it
 * is sorted. NULL: no memory. */
parameter *parameter_set_append(parameter_set *set, const char *name, const char *prefix, size_t rank,
                                const size_t *shape);
/* Nothing happens if there is none of that name. */
void parameter_set_remove(parameter_set *set, const char *name);
void parameter_set_sort(parameter_set *set);
/* Tensors whose name, canonical or stored, fits a shell's pattern are no longer trained, or no longer there. Returns
 * how many. */
size_t parameter_set_freeze(parameter_set *set, const char *pattern);
/* Whether any tensor is trained. */
bool parameter_set_is_trained(const parameter_set *set);
size_t parameter_set_drop(parameter_set *set, const char *pattern);

/* The set must stay where it is. */
weight_source parameter_set_source(parameter_set *set);

/* NULL if there is none. */
parameter *parameter_find(const parameter_set *set, const char *name);

/* This and the norm are pieces of work of their own: outside of executor_begin and executor_end. */
void parameter_set_clear_gradients(const parameter_set *set, executor *executor);

/* The square root of the sum of all squares of gradients, in double: a row of a tensor in 16 partials and the tree of
 * kernels.h, rows and tensors in order. */
double parameter_set_norm(const parameter_set *set, executor *executor);

/* The first trained tensor whose gradient is not finite, or NULL. */
const parameter *parameter_set_not_finite(const parameter_set *set);
