/* Holds labelled examples of a task as ids in memory, and batches of them for fine-tuning.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/data/batch_order.h"
#include "train/state/step_batch.h"

/* Labels of a sequence; those that the task does not need stay as example_begin sets them. */
typedef struct example_labels {
    int32_t label;      /* label of the sequence; a question with choices has it in each of them */
    float target;       /* target of a regression */
    int32_t start, end; /* the answer's first and last token, NOT_LABELLED: not in this sequence */
} example_labels;

/* Must be zero-initialised, except the members that control the batches. */
typedef struct example_set {
    bool regression, answers; /* whether targets, or places of answers, go into the batches; token labels always do */
    size_t choices;           /* sequences of a question, of which only the first one's label is read; 1: no choices */
    int32_t *ids, *types, *token_labels;
    size_t tokens, ids_capacity, types_capacity, labels_capacity;
    size_t *starts; /* [sequences + 1] */
    example_labels *labels;
    size_t sequences, starts_capacity, sequences_capacity;
    bool failed; /* whether memory was short */
} example_set;

/* Appends a sequence; types and token_labels may be NULL: zeros, NOT_LABELLED. The set remembers a lack of memory. */
void examples_add(example_set *set, const int32_t *ids, const int32_t *types, const int32_t *token_labels, size_t count,
                  example_labels labels);
/* Computes SHA-256 of the whole set. */
void examples_digest(const example_set *set, char digest[65]);
void examples_free(example_set *set);

typedef struct example_batches {
    const example_set *set;
    batch_order order;
} example_batches;

/* Opens batches; the set must stay, and has at least one item. Close it also after a failure. */
deberta_status example_batches_open(example_batches *batches, const example_set *set,
                                    const batch_order_options *options, deberta_error *err);
void example_batches_close(example_batches *batches);

/* Makes a source; the batches must not move. batch->members has the numbers of the sequences in the set. */
batch_source example_batches_source(example_batches *batches);
