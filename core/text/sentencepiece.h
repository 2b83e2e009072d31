/* Tokenizes v2, v3 and mDeBERTa: SentencePiece vocabularies inside DeBERTa's wrapper (SPEC 11.2, 11.3).
 *
 * A text is lower-cased and split at punctuation if the folder's configuration says so, normalised
 * (core/text/normalizer), and cut into pieces. Models are unigram (core/text/unigram, all published ones) or
 * SentencePiece's kind of BPE (core/text/piece_bpe).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/text/normalizer.h"
#include "core/text/piece_bpe.h"
#include "core/text/regex.h"
#include "core/text/token_list.h"
#include "core/text/unigram.h"

typedef struct sentencepiece sentencepiece;

typedef struct sentencepiece_options {
    bool lower_case;           /* core/text/lower_case */
    bool split_by_punctuation; /* whether ASCII 33-47, 58-64, 91-96, 123-126 and Unicode's category P are separate words
                                */
} sentencepiece_options;

/* Takes ownership of the model (it is empty afterwards, also on failure). The model must have been checked. */
deberta_status sentencepiece_create(sentencepiece **pieces, piece_model *model, const sentencepiece_options *options,
                                    const char *where, deberta_error *err);
void sentencepiece_free(sentencepiece **pieces);

const piece_model *sentencepiece_model(const sentencepiece *pieces);

/* Reusable; must be zero-initialised. */
typedef struct sentencepiece_workspace {
    traced_text lower, normal;
    normalizer_workspace normalizer;
    regex_match *match;
    unigram_workspace unigram;
    piece_bpe_workspace bpe;
    piece_cuts cuts;
} sentencepiece_workspace;

void sentencepiece_workspace_free(sentencepiece_workspace *workspace);

/* Appends the tokens of a text (valid UTF-8, below 2^31 bytes, no special tokens in it); spans count from its
 * beginning. */
deberta_status sentencepiece_encode(const sentencepiece *pieces, sentencepiece_workspace *workspace, const char *text,
                                    size_t bytes, token_list *list, deberta_error *err);
