/* Losses of training in float64, from the reference model and the formulas of docs/training.md: the second opinion on
 * what `train` computes, sharing nothing with it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CHECK_EXACT_LOSS_H
#define CHECK_EXACT_LOSS_H

#include "reference/reference.h"

enum { EXACT_NOT_LABELLED = -100 };

typedef struct exact_texts {
    deberta_task task; /* MLM, MLM_EMD: cross entropy, mean over what is labelled; RTD: over all that is no hole */
    size_t sequences;
    const size_t *starts;                /* [sequences + 1] */
    const int32_t *ids, *types, *labels; /* [tokens]; types may be NULL */
    const uint8_t *mask;                 /* [tokens] */
} exact_texts;

deberta_status exact_loss(double *loss, const reference_model *model, const exact_texts *texts, deberta_error *err);

#endif
