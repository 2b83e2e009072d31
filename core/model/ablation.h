/* Interventions: terms of the scores that single heads do without.
 *
 * A term is a product of a vector of the text (the query in c2c and c2p, the key in p2c) with something else. Ablating
 * it replaces that vector: by zeros, or by the mean over the tokens of its sequence, so that the term no longer knows
 * which token it is about. The kernels then compute what they always do, from one vector for all rows (a stride of 0):
 * no second code path, and nothing to pay where there is no intervention.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CORE_MODEL_ABLATION_H
#define CORE_MODEL_ABLATION_H

#include "core/model/model.h"

enum { ABLATION_TERMS = 3 }; /* DEBERTA_C2C, C2P, P2C */

typedef enum ablation_mode { ABLATION_NONE = 0, ABLATION_ZERO, ABLATION_MEAN } ablation_mode;

typedef struct ablation_plan {
    const deberta_ablation *given; /* the caller's list, only while the session is made */
    size_t given_count;
    uint8_t *modes;      /* [L][A][ABLATION_TERMS] of ablation_mode; NULL: no interventions, and so all the others */
    float *zeros;        /* [max(padded_head, d 16)]: a row of queries, or a panel of keys */
    float *mean_queries; /* [A][max_tokens][padded_head]: of head and sequence, in the layer that ran last */
    float *mean_keys;    /* as packed_keys: the panel of a sequence and head, all 16 lanes alike */
} ablation_plan;

struct deberta_session;
struct attention_head;

/* The sentence says which of the list is wrong, and what the model has. */
deberta_status ablation_check(const deberta_model *model, const deberta_ablation *list, size_t count,
                              deberta_error *err);
/* Other interventions from now on, for a session that was made with interventions of the same kinds: studies go through
 * many of them. A mean that the session has no memory for is DEBERTA_E_ARGUMENT. */
deberta_status ablation_change(struct deberta_session *session, const deberta_ablation *list, size_t count,
                               deberta_error *err);
/* Memory for the given list; also fills the modes when the arena is a real one. */
void ablation_carve(struct deberta_session *session, arena *memory);

/* After the projections of a layer: the mean queries of its heads that need them. */
void ablation_take_means(struct deberta_session *session, size_t layer);
/* Replaces what the head's terms are made of; `place` is that of its panels in packed_keys. */
void ablation_apply(const struct deberta_session *session, size_t layer, size_t place, struct attention_head *head);
/* The mean of the head's keys into its panel, if it needs one; with the packing of the keys. */
void ablation_pack_mean_key(struct deberta_session *session, const struct attention_head *head);

#endif
