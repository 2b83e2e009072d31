/* UTF-8: one character at a time, and what stands in for broken bytes.
 *
 * Broken encoding follows Unicode's "maximal subpart" practice, like Python and browsers: the longest beginning of a
 * valid character counts as one unit and is replaced by one U+FFFD; any other stray byte is a unit of its own.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UTF8_MAX_BYTES = 4 };
#define UTF8_INVALID     UINT32_MAX
#define UTF8_REPLACEMENT "\xEF\xBF\xBD"

/* Length of the character (or broken unit) at the front of text; bytes >= 1. *character may be UTF8_INVALID. */
size_t utf8_decode(const char *text, size_t bytes, uint32_t *character);
/* Writes a code point below 0x110000 and returns its length. */
size_t utf8_encode(char out[UTF8_MAX_BYTES], uint32_t character);

static inline bool utf8_is_continuation(char c) { return ((unsigned char)c & 0xC0) == 0x80; }

/* Length of the valid beginning; equal to `bytes` when all is valid. *ascii (may be NULL): is that beginning all ASCII?
 */
size_t utf8_valid_prefix(const char *text, size_t bytes, bool *ascii);
/* No overlong forms, no surrogates, nothing above U+10FFFF. */
bool utf8_is_valid(const void *text, size_t bytes);

/* C0, DEL and C1 (U+0080 to U+009F): they may act on a terminal. */
bool utf8_is_control(uint32_t character);

/* What Rust's char::is_whitespace and the reference's `\s` hold (SPEC 11.1): without U+001C-001F, which Python adds. */
bool utf8_is_space(uint32_t character);

/* ASCII's punctuation and symbols; quotes, dashes, brackets and marks of Latin-1, General Punctuation and CJK, of full
 * width too. Not all of Unicode's category P. */
bool utf8_is_punctuation(uint32_t character);

/* As much of the text as the room holds with a NUL after it, cut between characters. room_bytes >= 1. */
void utf8_copy(char *room, size_t room_bytes, const char *text);

/* Counts characters (broken units as one) up to ever larger byte positions of a text. */
typedef struct utf8_cursor {
    const char *text;
    size_t bytes;
    size_t byte, character; /* the character that begins at this byte has this index */
} utf8_cursor;

/* Moves to the character that holds `byte` (or to the end). byte must not lie before the cursor. */
void utf8_cursor_seek(utf8_cursor *cursor, size_t byte);
