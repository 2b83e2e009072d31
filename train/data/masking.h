/* Selects the tokens of a text that a masked language model must guess, and their replacements (docs/training.md).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/status.h"
#include "include/deberta_training.h"
#include "train/state/counters.h"

typedef struct masking_options {
    deberta_masking kind;
    double probability; /* above 0, below 1: share of the tokens that are labelled */
    size_t max_ngram;   /* words of a stretch; above 1 words of up to eight pieces are masked whole */
    int32_t mask_id;    /* [MASK] */
    size_t vocabulary;  /* of the tokenizer: what random pieces are drawn from */
    bool hides_all;     /* every labelled piece becomes [MASK]: what a generator fills */
    size_t full_tokens; /* the quota of a sequence is at most that of so many tokens, rounded up to tens */
} masking_options;

/* The share of labelled tokens is at most `probability`, rounded to a token and passed by an eighth of itself where a
 * word is kept whole; one token is labelled at least.
 * ids: [CLS] pieces [SEP], changed in place; labels[t]: what stood there, or NOT_LABELLED. begins[t]: whether a word
 * begins with piece t. A text without a piece gets no label. */
deberta_status mask_sequence(const masking_options *options, counter_draws *draws, size_t count, int32_t *ids,
                             const uint8_t *begins, int32_t *labels, deberta_error *err);
