/* Steps of training in float64: a loss at any weights, and what it holds fixed (docs/training.md, "SiFT").
 *
 * SPDX-License-Identifier: MIT */
#ifndef CHECK_EXACT_STEP_H
#define CHECK_EXACT_STEP_H

#include "check/exact_loss.h"

typedef struct exact_step exact_step;

/* What the loss holds fixed is taken from this model: of SiFT the moved embeddings and both probabilities. The batch
 * must stay. */
deberta_status exact_step_begin(exact_step **step, const exact_batch *batch, const reference_model *model,
                                deberta_error *err);
/* What the step reports as its loss. */
double exact_step_value(const exact_step *step);
/* What the gradients are those of, at another model's weights; but for constants it is the value. */
deberta_status exact_step_loss(const exact_step *step, const reference_model *model, double *loss, deberta_error *err);
/* The sizes of what each sequence adds to the difference of two models' own losses, added up: where a softmax goes over
 * sequences, their terms cancel. */
deberta_status exact_step_terms(const exact_step *step, const reference_model *const models[2], double *terms,
                                deberta_error *err);
void exact_step_free(exact_step **step);

#endif
