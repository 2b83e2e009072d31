/* The sentences of a study: texts of --file and --text through the model's tokenizer, side by side as one ragged batch.
 *
 * SPDX-License-Identifier: MIT */
#ifndef STUDIES_STUDY_TEXTS_H
#define STUDIES_STUDY_TEXTS_H

#include "program/frame/input/text_batches.h"
#include "analysis/masked_texts.h"

typedef struct study_texts {
    text_batches model;     /* model.model, model.tokenizer, model.info, model.session_options are open and filled */
    size_t count, capacity; /* sentences */
    char **sentences;       /* [count] as they were read, with a NUL after them */
    deberta_tokens **lists; /* [count] roles, spans and texts of the tokens */
    size_t *starts;         /* [count + 1] of the sentences in ids */
    int32_t *ids;           /* [starts[count]] */
} study_texts;

/* Opens the model and its tokenizer and reads texts, as many as `most`. A text that the model cannot take ends it, with
 * its place: a study says on what it was made. EXIT_OK or an exit code, after saying why. */
int study_texts_open(study_texts *texts, const reading_options *options, size_t most);
void study_texts_close(study_texts *texts);

/* Where the batch that begins with sentence `first` ends: as many as fit in `tokens`, at least one. */
size_t study_texts_batch_end(const study_texts *texts, size_t first, size_t tokens);
/* Tokens of the largest such batch: the max_tokens of a session for it. */
size_t study_texts_largest_batch(const study_texts *texts, size_t tokens);

/* The model's piece of a batch: ids of the sentences [first, end), and their starts counted from 0. starts_room:
 * [end - first + 1]. */
deberta_batch study_texts_batch(const study_texts *texts, size_t first, size_t end, size_t *starts_room);

/* 15 % of each sentence's own tokens replaced by [MASK], at least one; masks [count]: how many in each. */
deberta_status study_texts_hide(const study_texts *texts, uint64_t seed, masked_texts *masked, double *masks,
                                deberta_error *err);

#endif
