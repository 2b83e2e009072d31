/* How much of the attention scores each term makes, by variance.
 *
 * What is constant over the keys of a row does nothing to its softmax, so from every row of every term its mean over
 * the keys is subtracted; the sum of squares of what remains is the term's variance, and its share is that over the sum
 * of the terms'. Terms may be correlated: shares add up to one by construction, variances do not add up to that of the
 * logits.
 *
 * SPDX-License-Identifier: MIT */
#ifndef STUDY_COMPONENT_SHARE_H
#define STUDY_COMPONENT_SHARE_H

#include "core/base/status.h"

enum { COMPONENT_TERMS = 3 }; /* DEBERTA_C2C, DEBERTA_C2P, DEBERTA_P2C */

/* Squares by sentence, so that intervals can be made over sentences. */
typedef struct component_share {
    size_t sentences, layers, heads;
    double *squares;       /* [sentences][L][A][COMPONENT_TERMS] */
    size_t first_sentence; /* of the batch that is being encoded: set by the caller before each */
} component_share;

deberta_status component_share_create(component_share *share, const deberta_model_info *model, size_t sentences,
                                      deberta_error *err);
void component_share_free(component_share *share);
/* For a session with DEBERTA_OBSERVE_ATTENTION. */
deberta_observer component_share_observer(component_share *share);

static inline double *component_share_at(const component_share *share, size_t sentence, size_t layer, size_t head)
{
    return share->squares + ((sentence * share->layers + layer) * share->heads + head) * COMPONENT_TERMS;
}

#endif
