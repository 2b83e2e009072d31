/* What normalising to composed characters (NFC, NFKC) and splitting at punctuation need of the Unicode Character
 * Database, in the versions that the library `tokenizers` has: 9.0, and 8.0 for punctuation. Later characters are
 * ordinary ones.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most parts of a character that is taken apart as far as it goes. */
enum { UNICODE_MAX_PARTS = 4, UNICODE_MAX_COMPATIBLE_PARTS = 18 };

/* The canonical decomposition; returns how many parts, 1 (the character itself) for most. */
size_t unicode_decompose(uint32_t parts[UNICODE_MAX_PARTS], uint32_t character);
/* The compatibility decomposition, which is the canonical one where there is no other: a ligature becomes its letters.
 */
size_t unicode_decompose_compatible(uint32_t parts[UNICODE_MAX_COMPATIBLE_PARTS], uint32_t character);
/* What two characters compose to, or 0. */
uint32_t unicode_compose(uint32_t first, uint32_t second);
/* 0: the character begins something new; others may stand in any order, which is made ascending. */
uint8_t unicode_combining_class(uint32_t character);
/* May it change place with the character before it, or compose with it? "No" is certain. */
bool unicode_may_follow(uint32_t character);

/* ASCII's punctuation and symbols, and the category P. */
bool unicode_is_punctuation(uint32_t character);
