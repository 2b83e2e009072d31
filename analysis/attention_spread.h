/* How spread attention is and how far it reaches, over a corpus: sums by sentence, so that intervals can be made over
 * sentences, and curves over the distance.
 *
 * SPDX-License-Identifier: MIT */
#ifndef ANALYSIS_ATTENTION_SPREAD_H
#define ANALYSIS_ATTENTION_SPREAD_H

#include "analysis/capture.h"
#include "analysis/component_share.h"
#include "analysis/distance_sample.h"

/* Of a head, as attention_summary has them: entropy in bits, mean distance and mean offset in tokens. */
typedef enum spread_number { SPREAD_ENTROPY, SPREAD_DISTANCE, SPREAD_OFFSET, SPREAD_NUMBERS } spread_number;

/* Where the keys stand that attention goes to: the bins of share_distance_bin, and the frame ([CLS], [SEP]) apart,
 * which many heads look at when they have nothing to look for. */
enum { SPREAD_FRAME = SHARE_DISTANCES, SPREAD_PLACES };

typedef struct attention_spread {
    const deberta_model_info *model;
    size_t sentences;
    double *numbers;           /* [sentences][L][A][SPREAD_NUMBERS], sums over all tokens as queries */
    double *places;            /* [sentences][L][SPREAD_PLACES], sums of p over heads and the text's own queries */
    distance_sample *profiles; /* [L][DEBERTA_COMPONENT_COUNT]: means over heads, sentences and pairs of own tokens */
} attention_spread;

/* Curves reach from -reach to reach. The info must stay as long as the spread. Free also after a failure. */
deberta_status attention_spread_create(attention_spread *spread, const deberta_model_info *model, size_t sentences,
                                       size_t reach, deberta_error *err);
void attention_spread_free(attention_spread *spread);

/* Adds one encoded sentence: the only one of `captured`, which holds the probabilities of all layers and heads and, as
 * far as their curves are wanted, the terms. own [tokens]: 0 names the frame. Terms are added without the mean of each
 * row over the own keys, which a softmax does not see. */
deberta_status attention_spread_add(attention_spread *spread, size_t sentence, const capture *captured,
                                    const unsigned char *own, deberta_error *err);

double attention_spread_number(const attention_spread *spread, size_t sentence, size_t layer, size_t head,
                               spread_number number);
/* [SPREAD_PLACES] of one sentence and layer. */
const double *attention_spread_places(const attention_spread *spread, size_t sentence, size_t layer);
const distance_sample *attention_spread_profile(const attention_spread *spread, size_t layer,
                                                deberta_component component);
/* "[CLS], [SEP]", else as share_distance_name. */
void attention_spread_place_name(size_t place, char name[SHARE_NAME_BYTES]);

#endif
