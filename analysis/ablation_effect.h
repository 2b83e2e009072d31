/* What interventions do: the change of the masked-LM loss and of the logits when a head does without a term.
 *
 * SPDX-License-Identifier: MIT */
#ifndef ANALYSIS_ABLATION_EFFECT_H
#define ANALYSIS_ABLATION_EFFECT_H

#include "analysis/component_share.h"
#include "analysis/masked_texts.h"

typedef struct ablation_sweep {
    const deberta_model *model;
    const deberta_session_options *session_options; /* isa, threads, limits; its own ablations are the baseline's */
    const masked_texts *texts;
    deberta_task head;                     /* that is asked: of masked_texts_head */
    const deberta_ablation *interventions; /* [count], one at a time, on top of the baseline's */
    size_t count;
    size_t batch_tokens;
    component_share *share; /* filled by the baseline's runs; NULL: not wanted */
    void (*progress)(void *context, size_t sentences);
    void *context;
} ablation_sweep;

/* Sums over the masks of each sentence; masked_texts_masks says how many these are. */
typedef struct ablation_effects {
    size_t sentences;
    double *loss;         /* [sentences] of the baseline, nats */
    double *loss_change;  /* [count][sentences] loss with the intervention - loss */
    double *logit_change; /* [count][sentences] mean over the vocabulary of |change - its mean|: a softmax does not see
                             a change that is the same for all words */
} ablation_effects;

/* Free also after a failure. */
deberta_status ablation_effects_measure(ablation_effects *effects, const ablation_sweep *sweep, deberta_error *err);
void ablation_effects_free(ablation_effects *effects);

/* Rank correlation of two quantities (Spearman), ties at their mean rank; NaN if one does not vary. */
double rank_correlation(const double *x, const double *y, size_t count);

#endif
