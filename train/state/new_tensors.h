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
    const char *const *names; /* [labels] of classes; NULL: none has one */
    size_t labels;            /* outputs: 1 of a regression or a choice, 2 of an answer */
    bool decodes;             /* of a masked language model: it needs the table of positions */
} new_head;

/* In place of the set's head of that kind, if it has one. *config: a copy of the folder's config.json that names the
 * new labels, to be freed. On failure the set is of no use. */
deberta_status new_head_add(parameter_set *set, const char *folder, const new_head *head, uint32_t seed, char **config,
                            deberta_error *err);

/* All tensors of an encoder with a masked language model's head, from a folder with a config.json and no weights. On
 * failure *set is empty. */
deberta_status new_model_begin(parameter_set *set, const char *folder, uint32_t seed, deberta_error *err);
