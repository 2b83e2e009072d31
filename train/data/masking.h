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
    size_t max_ngram;   /* most words in a span; if above 1, words of up to eight pieces are masked whole */
    int32_t mask_id;    /* [MASK] */
    size_t vocabulary;  /* pieces of the tokenizer, from which random ones are drawn */
    bool hides_all;     /* whether every labelled piece becomes [MASK], for a generator to fill */
    size_t full_tokens; /* the quota of a sequence is at most that of this many tokens, rounded up to tens */
} masking_options;

/* Masks a sequence. The share of labelled tokens is at most `probability`, rounded to a token; it may exceed this by an
 * eighth where a word is kept whole; at least one token is labelled. ids: [CLS] pieces [SEP], changed in place;
 * labels[t]: the original id, or NOT_LABELLED. begins[t]: whether a word begins with piece t. A text without a piece
 * gets no label. */
deberta_status mask_sequence(const masking_options *options, counter_draws *draws, size_t count, int32_t *ids,
                             const uint8_t *begins, int32_t *labels, deberta_error *err);
