/* Lists deliberate faults, to prove that a verifier notices faults of this kind.
 *
 * Each belongs to a rule that is easy to get wrong and hard to see in a result. A fault changes what a model is made of
 * while it is opened (configuration, position rule, the weights as they are read), never a comparison or a tolerance.
 * The engine knows nothing of it. `verify --mutate` and the tests use the same list.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta.h"

typedef struct mutation {
    const char *name, *description;
    void (*apply)(deberta_model *model); /* model_internal_options.decorate */
} mutation;

/* All that float32 shows; the last is followed by one without a name. */
const mutation *mutation_list(void);
/* NULL for an unknown name. */
const mutation *mutation_find(const char *name);

/* A mistake in low precision that is not in the list: large channels are not evened out. */
extern const mutation mutation_unsmoothed;

/* Opens a model with a fault in it; without one (NULL) it is deberta_model_open. A fault that does not apply to a model
 * (a missing convolution has no source) leaves it right. */
deberta_status model_open_mutated(deberta_model **model, const char *path, const deberta_model_options *options,
                                  const mutation *fault, deberta_error *err);
