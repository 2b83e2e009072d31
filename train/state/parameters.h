/* Holds the trained weights: every tensor of a model's files by name, in float32, with its gradient. It is a
 * weight_source, so the engine packs them as it packs a file's (core/load/weight_loader.h): a step multiplies with the
 * same values that opening the saved checkpoint gives.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/load/weight_loader.h"

/* The number of tables that a generator and a discriminator share, with the discriminator's differences to them. */
enum { SHARED_TABLES = 2 }; /* words, positions */
extern const char *const shared_tables[SHARED_TABLES], *const shared_differences[SHARED_TABLES];

typedef struct parameter {
    char *name, *stored_name; /* canonical, as the engine requests it; as in the file */
    size_t rank, shape[TENSOR_MAX_RANK], count;
    float *values, *gradient;
    bool made;    /* whether no file has it: see parameter_set_add */
    bool trained; /* whether it gets a gradient, counts in the norm, and is updated; others are saved unchanged */
} parameter;

typedef struct parameter_set {
    char *name;       /* name of the model, for messages */
    parameter *items; /* in ascending order of the canonical names */
    size_t count, capacity;
} parameter_set;

/* Allocates zeros for values and gradient; name and count are set before. */
deberta_status parameter_allocate(parameter *parameter, deberta_error *err);

/* Reads all floating-point tensors of a folder. On failure *set is empty. */
deberta_status parameter_set_read(parameter_set *set, const char *folder, deberta_error *err);
void parameter_set_free(parameter_set *set);

/* Adds a tensor of zeros in the shape of another, next to it: "_weight" beside "weight". It does nothing if the tensor
 * exists already, or the other does not. Call it before any pointer into the set exists. */
deberta_status parameter_set_add(parameter_set *set, const char *name, const char *beside, deberta_error *err);
/* Appends a tensor that no file has, stored as prefix + name, with values 0. The list may move, and is unordered until
 * it is sorted. NULL: no memory. */
parameter *parameter_set_append(parameter_set *set, const char *name, const char *prefix, size_t rank,
                                const size_t *shape);
/* Removes a tensor, if there is one of that name. */
void parameter_set_remove(parameter_set *set, const char *name);
void parameter_set_sort(parameter_set *set);
/* Freeze or remove tensors whose name, canonical or stored, matches a shell pattern. Return their number. */
size_t parameter_set_freeze(parameter_set *set, const char *pattern);
/* Returns whether any tensor is trained. */
bool parameter_set_is_trained(const parameter_set *set);
size_t parameter_set_drop(parameter_set *set, const char *pattern);

/* Makes a source; the set must not move. */
weight_source parameter_set_source(parameter_set *set);

/* Returns NULL if there is none. */
parameter *parameter_find(const parameter_set *set, const char *name);

/* Clears all gradients. This and the norm use the executor themselves: call them outside of executor_begin and
 * executor_end. */
void parameter_set_clear_gradients(const parameter_set *set, executor *executor);

/* Returns the square root of the sum of all squares of gradients, in double: a row of a tensor in 16 partials and the
 * tree of kernels.h, rows and tensors in order. */
double parameter_set_norm(const parameter_set *set, executor *executor);

/* Returns the first trained tensor whose gradient is not finite, or NULL. */
const parameter *parameter_set_not_finite(const parameter_set *set);
