/* Learns the pieces of a unigram model (Kudo 2018) from counted words. It begins with many candidates, estimates their
 * probabilities by expectation and maximisation, and in every round drops those whose loss lowers the likelihood least.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/pieces/piece_words.h"

typedef struct learned_piece {
    size_t begin, bytes; /* in learned_pieces.texts */
    double score;        /* logarithm of its probability */
} learned_piece;

typedef struct learned_pieces {
    char *texts;
    learned_piece *items; /* in descending order of scores */
    size_t count;
    double bits_per_character; /* bits of the words, under the candidates before the last cut */
} learned_pieces;

/* Learns `count` pieces, including every character of the words except the rarest 0.05 %. DEBERTA_E_ARGUMENT: the words
 * do not have so many, or have more characters. */
deberta_status piece_learner_run(learned_pieces *pieces, const text_counts *words, const text_counts *characters,
                                 size_t count, deberta_error *err);
void learned_pieces_free(learned_pieces *pieces);
