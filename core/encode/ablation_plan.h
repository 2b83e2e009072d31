/* Interventions: terms of the scores that single heads do without, as they are asked for and what a session remembers
 * of them. ablation.h carries them out.
 *
 * A term is a product of a vector of the text (the query in c2c and c2p, the key in p2c) with something else. Ablating
 * it replaces that vector: by zeros, or by the mean over the tokens of its sequence, so that the term no longer knows
 * which token it is about. The kernels then compute what they always do, from one vector for all rows (a stride of 0):
 * no second code path, and nothing to pay where there is no intervention.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/load/model.h"

enum { ABLATION_TERMS = 3 }; /* DEBERTA_C2C, C2P, P2C */

typedef enum ablation_mode { ABLATION_NONE = 0, ABLATION_ZERO, ABLATION_MEAN } ablation_mode;

typedef struct ablation_plan {
    const deberta_ablation *given; /* the caller's list, only while the session is made */
    size_t given_count;
    uint8_t *modes;      /* [L][A][ABLATION_TERMS] of ablation_mode; NULL: no interventions, and so all the others */
    float *zeros;        /* [max(padded_head, d 16)]: a row of queries, or a panel of keys */
    float *mean_queries; /* [A][max_tokens][padded_head]: of head and sequence, in the layer that ran last */
    float *mean_keys;    /* as packed_keys: the panel of a sequence and head, all 16 lanes alike */
    integer_panels zero_key, mean_key_integers; /* where attention multiplies integers: those panels */
} ablation_plan;

/* The sentence says which of the list is wrong, and what the model has. */
deberta_status ablation_check(const deberta_model *model, const deberta_ablation *list, size_t count,
                              deberta_error *err);
/* Memory for the given list, for sequences of max_tokens in all, packed into key_panels panels of keys a head; also
 * fills the modes when the arena is a real one. */
void ablation_plan_carve(ablation_plan *plan, const deberta_model *model, size_t max_tokens, size_t key_panels,
                         arena *memory);
/* The modes of a head's terms, [ABLATION_TERMS]. Only where the plan has modes. */
uint8_t *ablation_modes(const ablation_plan *plan, const model_config *config, size_t layer, size_t head);
