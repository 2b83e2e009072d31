/* Counts the labelled tokens, sequences and ends of answers of a batch. SPDX-License-Identifier: MIT */
#include "train/step/step_counts.h"

static size_t labelled_tokens(const step_batch *b)
{
    size_t count = 0;
    for (size_t t = 0; t < b->tokens; t++) count += b->labels[t] != NOT_LABELLED;
    return count;
}

static size_t kept_tokens(const step_batch *b)
{
    size_t count = 0;
    for (size_t t = 0; t < b->tokens; t++) count += b->mask[t] != 0;
    return count;
}

static size_t labelled_sequences(const step_batch *b)
{
    size_t count = 0;
    for (size_t i = 0; i < b->sequences; i++) count += b->targets || b->sequence_labels[i] != NOT_LABELLED;
    return count;
}

/* Ends of answers that lie in their sequences. */
static size_t ends_inside(const step_batch *b, const int32_t *places)
{
    size_t count = 0;
    for (size_t i = 0; i < b->sequences; i++)
        count += places[i] >= 0 && (size_t)places[i] < b->starts[i + 1] - b->starts[i];
    return count;
}

head_counts step_counts(const step_batch *b, deberta_training_task task, class_pairs pairs)
{
    const bool pairs_up = pairs == PAIRS_FINAL;
    switch (task) {
    case DEBERTA_TRAIN_MLM: return (head_counts){.labelled = {labelled_tokens(b)}};
    case DEBERTA_TRAIN_RTD: return (head_counts){.labelled = {kept_tokens(b)}};
    case DEBERTA_TRAIN_SEQUENCE:
        return (head_counts){.labelled = {pairs_up && b->targets ? b->sequences / 2 : labelled_sequences(b)},
                             .pairs = pairs_up ? b->sequences / 2 : 0};
    case DEBERTA_TRAIN_CHOICE: return (head_counts){.labelled = {b->questions}, .pairs = pairs_up ? b->questions : 0};
    case DEBERTA_TRAIN_TOKEN:
        return (head_counts){.labelled = {labelled_tokens(b)}, .pairs = pairs_up ? kept_tokens(b) / 2 : 0};
    case DEBERTA_TRAIN_QA: break;
    }
    return (head_counts){.labelled = {ends_inside(b, b->starts_of_answer), ends_inside(b, b->ends_of_answer)}};
}
