/* Tokenizes with a unigram vocabulary as transformers 5 does, with the steps that it writes into tokenizer.json (SPEC
 * 11.4):
 *
 *   Lowercase (perhaps), Replace white space, NFC, Strip on the right; Punctuation (perhaps), Metaspace; Unigram
 *
 * There is no charsmap, every word begins with U+2581 and is cut by itself, and scores are summed in double.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/text/added_tokens.h"
#include "core/text/unicode.h"
#include "core/text/unigram.h"

typedef struct metaspace metaspace;

typedef struct metaspace_options {
    bool lower_case, split_by_punctuation;
} metaspace_options;

/* Takes ownership of the model (it is empty afterwards, also on failure). The model must have been checked, and be
 * of_tokenizers. */
deberta_status metaspace_create(metaspace **words, piece_model *model, const metaspace_options *options,
                                const char *where, deberta_error *err);
void metaspace_free(metaspace **words);

const piece_model *metaspace_model(const metaspace *words);

/* Adds the tokens that are `normalized`, which are searched in normalised texts by their normalised spelling. */
deberta_status metaspace_add_tokens(metaspace *words, const added_tokens *tokens, const char *where,
                                    deberta_error *err);

/* Reusable; must be zero-initialised. */
typedef struct metaspace_workspace {
    traced_text lower, normal, word;
    nfc_run run;
    unigram_workspace unigram;
    piece_cuts cuts;
} metaspace_workspace;

void metaspace_workspace_free(metaspace_workspace *workspace);

typedef struct metaspace_text {
    const char *text; /* valid UTF-8, below 2^31 bytes; tokens that are not `normalized` are not searched */
    size_t bytes;
    bool first;                 /* whether the range begins the caller's text */
    const added_tokens *tokens; /* tokens of metaspace_add_tokens, for their names; NULL: none is searched */
} metaspace_text;

/* Appends the tokens; spans count from the beginning of the text. */
deberta_status metaspace_encode(const metaspace *words, metaspace_workspace *workspace, const metaspace_text *text,
                                token_list *list, deberta_error *err);
