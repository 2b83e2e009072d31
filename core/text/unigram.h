/* Implements SentencePiece's unigram model: the segmentation of a text whose pieces have the largest sum of scores
 * (SPEC 11.2).
 *
 * Sums are those of libsentencepiece 0.1.97 to 0.2.0 to the last bit, so that near ties resolve the same way. For
 * models with of_tokenizers they are those of the library `tokenizers`.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/text/model_proto.h"
#include "core/text/piece_cuts.h"

typedef struct unigram unigram;

/* Creates a cutter. The model must have been checked; it is not needed afterwards. `where` begins messages. */
deberta_status unigram_create(unigram **unigram, const piece_model *model, const char *where, deberta_error *err);
void unigram_free(unigram **unigram);

/* The best path to a byte of the text. */
typedef struct unigram_step {
    double score;   /* sum over all its pieces; SentencePiece's fit into a float */
    uint32_t begin; /* byte at which the last piece begins */
    int32_t id;     /* id of the last piece */
} unigram_step;

/* Reusable; must be zero-initialised. */
typedef struct unigram_workspace {
    unigram_step *steps;
    size_t capacity;
} unigram_workspace;

void unigram_workspace_free(unigram_workspace *workspace);

/* Cuts a text: normalised, valid UTF-8, below 2^31 bytes. */
deberta_status unigram_cut(const unigram *unigram, unigram_workspace *workspace, const char *text, size_t bytes,
                           piece_cuts *cuts, deberta_error *err);
