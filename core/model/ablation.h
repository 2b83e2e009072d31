/* The interventions of a session (ablation_plan.h), carried out while it encodes.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CORE_MODEL_ABLATION_H
#define CORE_MODEL_ABLATION_H

#include "core/model/attention_head.h"
#include "core/model/session.h"

/* Other interventions from now on, for a session that was made with interventions of the same kinds: studies go through
 * many of them. A mean that the session has no memory for is DEBERTA_E_ARGUMENT. */
deberta_status ablation_change(deberta_session *session, const deberta_ablation *list, size_t count,
                               deberta_error *err);

/* After the projections of a layer: the mean queries of its heads that need them. */
void ablation_take_means(deberta_session *session, size_t layer);
/* Replaces what the head's terms are made of; `place` is that of its panels in packed_keys. */
void ablation_apply(const deberta_session *session, size_t layer, size_t place, attention_head *head);
/* The mean of the head's keys into its panel, if it needs one; with the packing of the keys. */
void ablation_pack_mean_key(deberta_session *session, const attention_head *head);

#endif
