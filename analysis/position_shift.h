/* The same phrase elsewhere: how far do its hidden states and the attention inside it move?
 *
 * A phrase is encoded alone, [CLS] phrase [SEP], and again with something changed that leaves its own tokens and their
 * distances as they were. A change of position ids moves a model only if it reads them; other tokens before or after
 * the phrase move every model, because they are attended to, but only before it do they also change its positions.
 *
 * SPDX-License-Identifier: MIT */
#ifndef ANALYSIS_POSITION_SHIFT_H
#define ANALYSIS_POSITION_SHIFT_H

#include "core/base/status.h"

typedef enum position_change {
    POSITION_IDS_LATER, /* the same ids, every absolute position larger */
    POSITION_TOKENS_BEFORE,
    POSITION_TOKENS_AFTER,
    POSITION_CHANGES
} position_change;

enum { POSITION_AMOUNTS = 3, POSITION_VARIANTS = POSITION_CHANGES * POSITION_AMOUNTS };
extern const size_t position_amounts[POSITION_AMOUNTS]; /* tokens */

/* By phrase, so that intervals can be made over phrases. Variant v is change v / POSITION_AMOUNTS by the amount v %
 * POSITION_AMOUNTS. */
typedef struct position_shift {
    size_t phrases, layers; /* layers: L */
    double *moved;          /* [variants][L + 1][phrases] mean squared movement of a token's row of H[l] */
    double *spread;    /* [L + 1][phrases] mean squared distance between two different tokens of the phrase, unmoved */
    double *attention; /* [variants][L][phrases] mean total variation distance between a query's probabilities over the
                          phrase's keys (renormalised), before and after: 0 ... 1 */
} position_shift;

/* tokens: phrase k is [starts[k], starts[k + 1]), without frame, at least two tokens; what surrounds a phrase is the
 * text that follows it, from the beginning again at the end. `first` and `last` frame everything. A session that
 * observes hidden states and attention, for position_shift_tokens(longest phrase) tokens. */
typedef struct position_shift_input {
    deberta_session *session;
    const deberta_model_info *model;
    const int32_t *tokens;
    const size_t *starts;
    size_t phrases;
    int32_t first, last;
    void (*progress)(void *context, size_t done); /* may be NULL */
    void *context;
} position_shift_input;

size_t position_shift_tokens(size_t longest_phrase);
deberta_status position_shift_measure(position_shift *shift, const position_shift_input *input, deberta_error *err);
void position_shift_free(position_shift *shift);

#endif
