/* v2, v3 and mDeBERTa: SentencePiece vocabularies with DeBERTa's wrapper around them (SPEC 11.2, 11.3).
 *
 * A text is lower-cased and split at punctuation if the folder's configuration says so, normalised
 * (core/text/normalizer), and cut into pieces by libsentencepiece. Models are unigram (all published ones) or
 * SentencePiece's kind of BPE.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CORE_TEXT_UNIGRAM_H
#define CORE_TEXT_UNIGRAM_H

#include "core/text/normalizer.h"
#include "core/text/regex.h"
#include "core/text/sentencepiece_shim.h"
#include "core/text/token_list.h"

typedef struct unigram unigram;

typedef struct unigram_options {
    /* Character by character as Python's str.lower() does it, which is what transformers calls: U+0130 becomes two
     * characters; a final sigma is not special. */
    bool lower_case;
    bool split_by_punctuation; /* ASCII 33-47, 58-64, 91-96, 123-126 and Unicode's category P stand alone */
} unigram_options;

/* Takes the model over (it is empty afterwards, also on failure). It must have been checked. */
deberta_status unigram_create(unigram **unigram, piece_model *model, const unigram_options *options, const char *where,
                              deberta_error *err);
void unigram_free(unigram **unigram);

const piece_model *unigram_model(const unigram *unigram);

/* A stretch of the text that is handed to the library shorter than it is. */
typedef struct shortened_run {
    size_t at, removed; /* the byte behind its first character in the short text; bytes left out there */
} shortened_run;

/* Reusable; zero-initialised at first. */
typedef struct unigram_workspace {
    traced_text lower, normal;
    regex_match *match;
    sentencepiece_pieces *pieces;
    char *short_text;
    size_t short_capacity;
    shortened_run *runs;
    size_t run_count, run_capacity;
} unigram_workspace;

void unigram_workspace_free(unigram_workspace *workspace);

/* Appends the tokens of a text (valid UTF-8, below 2^31 bytes, no special tokens in it); spans count from its
 * beginning. */
deberta_status unigram_encode(const unigram *unigram, unigram_workspace *workspace, const char *text, size_t bytes,
                              token_list *list, deberta_error *err);

#endif
