/* How well a straight line through the hidden states says where in the sequence a token stands, layer by layer.
 *
 * A ridge regression of the token's index on its row of H[l]. The sequences are split in three in their order, so that
 * the parts are different stretches of text: fit, choice of the penalty (then both are one fit), test. The frame is
 * left out: what [CLS] is, is where it is.
 *
 * SPDX-License-Identifier: MIT */
#ifndef ANALYSIS_POSITION_PROBE_H
#define ANALYSIS_POSITION_PROBE_H

#include "analysis/ridge.h"

/* What was found for every sequence of the test part, so that intervals can be made over sequences: r2 is 1 - sum of
 * errors / sum of deviations. */
typedef struct position_probe {
    size_t layers, tested; /* L + 1: H[0] ... H[L]; sequences */
    double *errors;        /* [layers][tested] squared, summed over the tokens */
    double *deviations;    /* [layers][tested] from the mean position of the other parts */
    double *penalties;     /* [layers] as chosen */
} position_probe;

/* ids: [sequences][tokens], each framed by one special token on either side. At least five sequences of three tokens. A
 * session with DEBERTA_OBSERVE_HIDDEN for that many tokens. The progress callback may be NULL. */
typedef struct position_probe_input {
    deberta_session *session;
    const deberta_model_info *model;
    const int32_t *ids;
    size_t sequences, tokens;
    void (*progress)(void *context, size_t done);
    void *context;
} position_probe_input;

deberta_status position_probe_measure(position_probe *probe, const position_probe_input *input, deberta_error *err);
void position_probe_free(position_probe *probe);

#endif
