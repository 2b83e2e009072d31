/* Places the marks of an axis or a colour bar, and formats the numbers of figures.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { TICKS_MAX = 64, TICK_TEXT_BYTES = 32 };

typedef struct tick_set {
    double at[TICKS_MAX];
    size_t count;
    double step; /* linear ticks are multiples of it; 0 for others */
} tick_set;

/* Returns multiples of 1, 2 or 5 times a power of ten inside [low, high]: at least two, at most `most` (>= 2).
 * low < high, both finite. */
tick_set ticks_linear(double low, double high, size_t most);
/* Returns such multiples between two ends that have numbers of their own: there may be one or none. */
tick_set ticks_between(double low, double high, size_t most);
/* Returns ticks at whole numbers: the step is never below 1, so there may be one or none in a short range. */
tick_set ticks_whole(double low, double high, size_t most);
/* Returns 1, 2, 5 times powers of `base` (2 or 10), or only the powers, inside [low, high], 0 < low < high, thinned
 * to at most `most`. */
tick_set ticks_log(double low, double high, double base, size_t most);

/* Writes a short text of a value: the decimals that the step needs (step > 0) or three significant digits (step 0).
 * The minus is U+2212; 1.5e-7 becomes "1.5e" U+2212 "7". Independent of the locale. */
void tick_text(double value, double step, char text[TICK_TEXT_BYTES]);
/* Writes a value with so many decimals, or significant digits, for a sentence: with U+2212, and no sign for a zero. */
void tick_number(double value, int digits, bool decimals, char text[TICK_TEXT_BYTES]);
