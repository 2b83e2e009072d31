/* Lists deliberate faults, to prove that a verifier notices faults of this kind.
 *
 * Each belongs to a rule that is easy to get wrong and hard to see in a result. A fault changes the configuration, the
 * position rule or the weights of a model while it is opened, never a comparison or a tolerance. The engine contains no
 * code for it. `verify --mutate` and the tests use the same list.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta.h"

typedef struct mutation {
    const char *name, *description;
    void (*apply)(deberta_model *model); /* function for model_internal_options.decorate */
} mutation;

/* All faults that show in float32; an entry without a name ends the list. */
const mutation *mutation_list(void);
/* Returns the fault of that name, or NULL. */
const mutation *mutation_find(const char *name);

/* A fault of low precision that is not in the list: large channels are not smoothed. */
extern const mutation mutation_unsmoothed;

/* Opens a model with a fault; NULL: like deberta_model_open. A fault that does not apply to the model, such as one of a
 * convolution that it lacks, changes nothing. */
deberta_status model_open_mutated(deberta_model **model, const char *path, const deberta_model_options *options,
                                  const mutation *fault, deberta_error *err);
