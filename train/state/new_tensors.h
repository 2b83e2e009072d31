/* Creates tensors that no file has: a head for other labels, or a whole model from its configuration. Weights are
 * normal with the configuration's initializer_range, gains 1, biases 0; every number follows from the seed and the
 * tensor's name.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "train/state/parameters.h"

typedef struct new_head {
    deberta_training_task task;
    const char *const *names; /* [labels] names of classes; NULL: no names */
    size_t labels;            /* number of outputs: 1 for a regression or a choice, 2 for an answer */
    bool decodes;             /* a masked language model's head: it needs the table of positions */
} new_head;

/* Replaces the set's head of that kind, or adds it. *config: a copy of the folder's config.json that names the new
 * labels; the caller frees it. On failure the set is unusable. */
deberta_status new_head_add(parameter_set *set, const char *folder, const new_head *head, uint32_t seed, char **config,
                            deberta_error *err);

/* Creates all tensors of an encoder with a masked language model's head, from a folder with a config.json and no
 * weights. On failure *set is empty. */
deberta_status new_model_begin(parameter_set *set, const char *folder, uint32_t seed, deberta_error *err);
