/* Holds the candidates of the piece learner, which begin as characters and substrings of words.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/text.h"
#include "core/text/trie.h"
#include "train/pieces/piece_words.h"

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
    bool *usable;   /* [words]: consists of covered characters */
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

/* Makes the candidates and their first probabilities, and marks the words that consist of covered characters. */
deberta_status piece_candidates_make(piece_learner *learner, deberta_error *err);
