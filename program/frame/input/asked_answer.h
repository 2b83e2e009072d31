/* Declares how commands name what is asked of a text: words among its tokens, the [MASK] that a word fills, labels.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_unstable.h"
#include "program/frame/options.h"

/* A text and its tokens. */
typedef struct asked_text {
    const deberta_text *given; /* as it was tokenized */
    const deberta_tokens *tokens;
    const deberta_tokenizer *tokenizer;
} asked_text;

/* How many times both segments have a word as a whole word. */
typedef struct asked_count {
    size_t kept; /* all of its tokens are there */
    size_t cut;  /* tokens of it were cut off */
} asked_count;

/* Counts a word and marks the tokens of those that are kept: marked [tokens]. */
deberta_status asked_word_mark(const asked_text *in, const char *word, bool *marked, asked_count *count,
                               deberta_error *err);
/* Returns the sentence on a word that was cut off. */
const char *asked_word_was_cut(const common_options *options, const asked_text *in, const char *word);
/* Returns how many [MASK] the text has; *place is the last of them. */
size_t asked_masks(const asked_text *in, size_t *place);

/* Finds the token that a word is in the place of token `at`, as the tokenizer would have it there: *id, or -1 where it
 * would be *pieces tokens, or one together with the text beside it. A blank before the word may be given or not; `at`
 * is no frame. A word that is longer than [MASK] is not cut. */
deberta_status asked_word_fill(const common_options *options, const asked_text *in, size_t at, const char *word,
                               int32_t *id, size_t *pieces, deberta_error *err);

/* Splits "WORD" or "WORD,OTHER"; a comma at the beginning is a word. other: NULL where there is none. */
void asked_pair_split(const common_options *options, const char *asked, const char **word, const char **other);
/* Finds "LABEL" or "LABEL,OTHER" among the labels, by name, "LABEL_<k>" or number; a name may have commas. *other is
 * SIZE_MAX where there is none. Returns NULL, or the part of `asked` that is no label. */
const char *asked_labels_find(const common_options *options, const deberta_model *model, size_t labels,
                              const char *asked, size_t *label, size_t *other);
