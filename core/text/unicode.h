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

/* largest number of parts of a fully decomposed character */
enum { UNICODE_MAX_PARTS = 4, UNICODE_MAX_COMPATIBLE_PARTS = 18 };

/* Writes the canonical decomposition; returns the number of parts, 1 (the character itself) for most. */
size_t unicode_decompose(uint32_t parts[UNICODE_MAX_PARTS], uint32_t character);
/* Writes the compatibility decomposition, which is the canonical one where there is no other: a ligature becomes its
 * letters. */
size_t unicode_decompose_compatible(uint32_t parts[UNICODE_MAX_COMPATIBLE_PARTS], uint32_t character);
/* Returns the composition of two characters, or 0. */
uint32_t unicode_compose(uint32_t first, uint32_t second);
/* Returns the combining class. 0: the character starts a new sequence; characters of other classes are sorted in
 * ascending order. */
uint8_t unicode_combining_class(uint32_t character);
/* Returns whether the character may change places with the one before it, or compose with it. Only false is certain. */
bool unicode_may_follow(uint32_t character);

/* Returns whether the character is punctuation or a symbol of ASCII, or in category P. */
bool unicode_is_punctuation(uint32_t character);

/* Lower-casing works character by character like Python's str.lower(), which transformers calls: U+0130 becomes two
 * characters; a final sigma is not special. The tables are the project's own (core/base/text.c), so that the host's
 * locale does not matter. */

/* Lower-cases a text of valid UTF-8, below 2^31 bytes. */
deberta_status lower_case_run(traced_text *out, const char *text, size_t bytes, deberta_error *err);

/* Normalisation to Unicode's forms C and KC works character by character: it composes, and sorts marks canonically.
 * Form KC replaces compatibility characters by the characters that they represent.
 *
 * Characters collect in a run until one comes that the preceding run cannot change. */

typedef struct nfc_character {
    uint32_t code, origin, place; /* place: index in its run */
    uint8_t class;
} nfc_character;

/* Must be zero-initialised; reusable after nfc_end. */
typedef struct nfc_run {
    nfc_character *items;
    size_t count, capacity;
    bool compatible; /* whether to use form KC; set it before the first character */
} nfc_run;

/* Adds a character. origin: its place in the source; ascending. The origin of a composed character is that of its first
 * part; marks that changed places get the least origins that keep the order ascending. */
deberta_status nfc_put(nfc_run *run, traced_text *out, uint32_t character, size_t origin, deberta_error *err);
/* Writes the remaining characters. The caller sets the end of `out`. */
deberta_status nfc_end(nfc_run *run, traced_text *out, deberta_error *err);
void nfc_free(nfc_run *run);
