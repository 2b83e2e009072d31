/* How much of the attention scores each term makes, by variance: of heads, distances, and kinds of tokens.
 *
 * What is constant over the keys of a row does nothing to its softmax, so from every row of every term its mean over
 * the keys is subtracted; the sum of squares of what remains is the term's variance, and its share is that over the sum
 * of the terms'. Terms may be correlated: shares add up to one by construction, variances do not add up to that of the
 * logits. (attention_terms.h has other measures, of one head and text; this one adds up over a corpus.)
 *
 * SPDX-License-Identifier: MIT */
#ifndef ANALYSIS_COMPONENT_SHARE_H
#define ANALYSIS_COMPONENT_SHARE_H

#include "analysis/attention_terms.h"
#include "analysis/position_term.h"

enum {
    SHARE_P2P = ATTENTION_TERMS, /* a position-to-position term that the model does not have */
    SHARE_TERMS = ATTENTION_TERMS + 1,
    SHARE_CLASSES = 4, /* of query tokens, numbered by the caller */
    SHARE_NAME_BYTES = 48,
    SHARE_DISTANCES = 15, /* bins of r = i - j: 0 in the middle, then 1, 2, 3-4, 5-8 ... 33 and more */
};

/* The bin of a distance, and its name, where the key stands: "left 3..4", "itself", "right 33..". */
size_t share_distance_bin(ptrdiff_t distance);
void share_distance_name(size_t bin, char name[SHARE_NAME_BYTES]);

/* What the squares of a layer are summed over: its heads one by one, bins of distance, classes of the query. The last
 * two take all heads together. */
typedef enum share_group { SHARE_BY_HEAD, SHARE_BY_DISTANCE, SHARE_BY_CLASS } share_group;

/* Squares by sentence, so that intervals can be made over sentences. */
typedef struct component_share {
    size_t sentences, layers, heads;
    double *squares;            /* [sentences][L][A + SHARE_DISTANCES + SHARE_CLASSES][SHARE_TERMS] */
    const position_term *extra; /* NULL: no p2p */
    const uint8_t *classes;     /* [tokens] of all sentences, or NULL: all 0 */
    const size_t *starts;       /* [sentences + 1] among these tokens; needed with classes */
    size_t first_sentence;      /* of the batch that is being encoded: set by the caller before each */
} component_share;

deberta_status component_share_create(component_share *share, const deberta_model_info *model, size_t sentences,
                                      deberta_error *err);
void component_share_free(component_share *share);
/* For a session with DEBERTA_OBSERVE_ATTENTION. */
deberta_observer component_share_observer(component_share *share);

/* [SHARE_TERMS] of one sentence and layer. */
double *component_share_at(const component_share *share, size_t sentence, size_t layer, share_group group,
                           size_t index);

#endif
