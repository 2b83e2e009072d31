/* Provides the Unicode properties for normalising to composed characters (NFC, NFKC) and for splitting at punctuation.
 * It uses the versions of the Unicode Character Database in the library `tokenizers`: 9.0, and 8.0 for punctuation.
 * Later characters count as ordinary ones.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/text/traced_text.h"

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

/* Lower case, character by character as Python's str.lower() does it, which is what transformers calls: U+0130 becomes
 * two characters; a final sigma is not special. The tables are our own (core/base/letters.h), so that the host's locale
 * does not matter. */

/* text: valid UTF-8, below 2^31 bytes. */
deberta_status lower_case_run(traced_text *out, const char *text, size_t bytes, deberta_error *err);

/* Unicode's normalisation forms C and KC, character by character: what composes is composed, marks come in their one
 * order. Form KC writes characters that only look otherwise as those that they stand for.
 *
 * Characters collect in a run until one comes that the run before it cannot change. */

typedef struct nfc_character {
    uint32_t code, origin, place; /* place: in its run */
    uint8_t class;
} nfc_character;

/* Zero-initialised at first; reusable after nfc_end. */
typedef struct nfc_run {
    nfc_character *items;
    size_t count, capacity;
    bool compatible; /* form KC; to be set before the first character */
} nfc_run;

/* origin: where in the source the character came from; ascending. The origin of a composed character is that of its
 * first part; of marks that changed places, the least that keeps origins ascending. */
deberta_status nfc_put(nfc_run *run, traced_text *out, uint32_t character, size_t origin, deberta_error *err);
/* What is left. The end of `out` is the caller's to set. */
deberta_status nfc_end(nfc_run *run, traced_text *out, deberta_error *err);
void nfc_free(nfc_run *run);
