/* A control for what training does: a model whose layers hold the same weights in other places.
 *
 * The values of every matrix of the layers ("encoder.layer." in the name, two dimensions) are shuffled within the
 * matrix, so that their sizes stay and what was learned in them goes. Words, positions, biases and norms stay as they
 * are.
 *
 * SPDX-License-Identifier: MIT */
#ifndef ANALYSIS_SHUFFLED_MODEL_H
#define ANALYSIS_SHUFFLED_MODEL_H

#include "core/base/status.h"

typedef struct shuffled_weights shuffled_weights;

typedef struct shuffled_model {
    deberta_model *model;
    shuffled_weights *weights; /* what the model reads as long as it lives */
} shuffled_model;

/* Of the model in `folder`. name: what messages call it. The order is a function of the seed alone. A made-up model has
 * no folder: DEBERTA_E_ARGUMENT. */
deberta_status shuffled_model_open(shuffled_model *shuffled, const char *folder, const char *name,
                                   const deberta_model_options *options, uint64_t seed, deberta_error *err);
/* Accepts one of zeros. */
void shuffled_model_close(shuffled_model *shuffled);

#endif
