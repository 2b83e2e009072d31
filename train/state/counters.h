/* Stateless random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011) of a key and a counter, which identify the
 * purpose of the number. So no number depends on threads, on shards or on where a run was interrupted
 * (docs/training.md).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { COUNTER_WORDS = 4 };

/* Purposes of numbers: the highest bits of the last word of the counter. */
typedef enum counter_site {
    SITE_MASKING = 16,
    SITE_DRAWING = 17,
    SITE_PERTURBING = 18,
    SITE_SHUFFLING = 19,
    SITE_WEIGHTS = 20
} counter_site;

enum { COUNTER_SITE_SHIFT = 26 };

typedef struct counter_key {
    uint32_t seed, step; /* step, or epoch */
} counter_key;

void philox4x32(const uint32_t counter[COUNTER_WORDS], counter_key key, uint32_t words[COUNTER_WORDS]);

/* A sequence of numbers of one place and site. */
typedef struct counter_draws {
    counter_key key;
    uint32_t place; /* such as the number of a sequence in the step */
    counter_site site;
    uint64_t drawn;
    uint32_t words[COUNTER_WORDS];
} counter_draws;

/* Draws from [0, 1): a word times 2^-32. */
double counter_fraction(counter_draws *draws);
/* Draws from 0 ... count - 1, for counts up to 2^32. */
size_t counter_below(counter_draws *draws, size_t count);

/* Returns the normal number of a word: the inverse of the distribution at (word + 1/2) 2^-32, by AS 241 (Wichura 1988)
 * in double; cut at +-4. */
double counter_normal(uint32_t word);

/* Returns a number in [0, 1], of 64 bits, with which a generator draws the token at a labelled place of a sequence. */
double counter_drawing(counter_key key, uint32_t place, uint32_t sequence);

/* Makes a permutation of 0 ... count - 1 (count below 2^32) by Fisher and Yates, from this key (seed, epoch). */
void counter_shuffle(size_t *order, size_t count, counter_key key);
