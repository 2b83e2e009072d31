/* Measures how much of a head's attention goes to one fixed place, whatever token is there.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/* Means over the queries of a matrix of probabilities; left, right and word over the queries that have such a key. NaN
 * where there is none. */
typedef struct attention_habits {
    double left, right, itself; /* probability of the key before the query, of the key after it, of the query's own */
    double first, last;         /* probability of the first and of the last key */
    double word; /* probability of the strongest ordinary key other than the query, over ordinary queries */
} attention_habits;

/* Computes the means. probabilities: [tokens][tokens], query first. special: [tokens], not 0 for tokens that frame a
 * text; NULL: none. */
attention_habits attention_habits_measure(const float *probabilities, size_t tokens, const unsigned char *special);
