/* Learns the pieces of a unigram model (Kudo 2018) from counted words. It begins with many candidates, estimates their
 * probabilities by expectation and maximisation, and in every round drops those whose loss lowers the likelihood least.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/text.h"
#include "core/text/trie.h"
#include "train/pieces/piece_words.h"

typedef struct learned_piece {
    size_t begin, bytes; /* place in learned_pieces.texts */
    double score;        /* logarithm of its probability */
} learned_piece;

typedef struct learned_pieces {
    char *texts;
    learned_piece *items; /* in descending order of scores */
    size_t count;
    double bits_per_character; /* bits of the words, under the candidates before the last cut */
} learned_pieces;

/* Learns `count` pieces, including every character of the words except the rarest 0.05 %. DEBERTA_E_ARGUMENT: the words
 * have fewer pieces, or more characters, than `count`. */
deberta_status piece_learner_run(learned_pieces *pieces, const text_counts *words, const text_counts *characters,
                                 size_t count, deberta_error *err);
void learned_pieces_free(learned_pieces *pieces);

/* The candidates of the piece learner, which begin as characters and substrings of words. */

enum { LONGEST_PIECE = 16 }; /* characters */

typedef struct candidate {
    size_t begin, bytes, length; /* length: characters */
    double expected, probability, score;
    bool required; /* a character */
} candidate;

typedef struct piece_learner {
    const text_counts *words, *characters;
    text_counts seeds; /* texts of the candidates */
    candidate *items;
    size_t count, wanted;
    bool *usable;   /* [words]: whether the word consists of covered characters */
    double *scaled; /* [count]: probability times CHARACTER_SCALE^length */
    trie trie;
    double bits_per_character;
} piece_learner;

static inline const char *candidate_text(const piece_learner *l, const candidate *c)
{
    return l->seeds.texts + c->begin;
}

static inline size_t characters_in(const char *text, size_t bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++) count += !utf8_is_continuation(text[i]);
    return count;
}
