/* Handles bytes of texts and names of files: UTF-8, byte order marks, paths, streams, and detection of binary data.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/base/status.h"

/* UTF-8: one character at a time, and what stands in for broken bytes.
 *
 * Broken encoding follows Unicode's "maximal subpart" practice, like Python and browsers: the longest beginning of a
 * valid character counts as one unit and is replaced by one U+FFFD; any other stray byte is a unit of its own. */

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

/* The three bytes EF BB BF that some editors put before UTF-8: no part of a text, nor of JSON. */

/* How many bytes of the beginning of a file to skip: 3 or 0. */
static inline size_t byte_order_mark(const char *text, size_t bytes)
{
    return bytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
}

/* Names of files: what they end in and how they are put together. */

/* Does the path end in the suffix (".json")? The case of ASCII letters does not count: X.CSV is what x.csv is. False
 * for NULL. */
bool path_has_suffix(const char *path, const char *suffix);
/* folder/name (just name for an empty folder) in new memory, NULL without memory. */
char *path_join(const char *folder, const char *name);

/* How streams are flushed, read by lines, and ended: in one place, because each is easily asked too little.
 *
 * A write that fails in the middle drops its bytes and leaves a mark at the stream (ferror); the next fflush or fclose
 * may succeed. So both ask for the mark. tools/lint.py wants no other fflush or fclose. */

/* Hands over what the stream holds. False if anything that was ever written to it is lost; errno is that of this try;
 * if an earlier one failed, what it still is, or EIO. Who does not ask loses nothing: the mark stays. */
bool stream_flush(FILE *stream);
/* The same, and ends the stream either way. Of a stream that is read: false if reading failed. */
bool stream_close(FILE *stream) __attribute__((warn_unused_result));
/* Ends a stream of which nobody asks more: it was read as far as wanted, or an error is told already. Accepts NULL. */
void stream_discard(FILE *stream);

/* One line with its newline, which the last may lack, and a NUL behind it, in memory that grows: *length is 0 at the
 * end. Unlike getline, refuses a line of more than most_bytes: a file of zeros has no newline. place: the file's name
 * and the line's number, from 1, for errors. */
typedef struct stream_place {
    const char *name;
    size_t line;
} stream_place;
deberta_status stream_read_line(FILE *stream, char **line, size_t *capacity, size_t most_bytes, size_t *length,
                                stream_place place, deberta_error *err);

/* Why a file holds no texts, by its first bytes: of compressed texts every line would be called bad, and none of the
 * messages would say why; of weights, archives and UTF-16 every line would be read. */

enum { NO_TEXTS_BYTES = 64 /* of the beginning tell enough */ };

/* What is said of a line of a corpus that holds a NUL, to follow the place: no piece of a vocabulary can be written
 * with one, and whoever made the corpus did not mean it. */
#define NUL_IN_CORPUS "holds a NUL byte, and no text of a corpus has one: take it out first (tr -d '\\0')"

/* What is wrong, to follow the name of the file; NULL: nothing is. No text in UTF-8 begins as compressed ones do. A NUL
 * is a character like others, but no text begins with many. */
static inline const char *no_texts_reason(const void *bytes, size_t count)
{
    static const struct {
        const char *mark, *reason;
    } known[] = {{"\x1F\x8B", "is compressed (gzip), and texts are expected: unpack it first"},
                 {"\x28\xB5\x2F\xFD", "is compressed (zstd), and texts are expected: unpack it first"},
                 {"\xFD\x37zXZ", "is compressed (xz), and texts are expected: unpack it first"},
                 {"BZh9", "is compressed (bzip2), and texts are expected: unpack it first"},
                 {"PK\x03\x04", "is a zip archive, and texts are expected: unpack it first"},
                 {"PAR1", "is a Parquet file, which is not read: write its texts as lines, or as objects (.jsonl)"},
                 {"ARROW1", "is an Arrow file, which is not read: write its texts as lines, or as objects (.jsonl)"},
                 {"\xFF\xFF\xFF\xFF", "is an Arrow stream, which is not read: write its texts as lines, or as objects "
                                      "(.jsonl)"},
                 {"SQLite format 3", "is a data base (SQLite), which is not read: write its texts as lines"},
                 {"\xFF\xFE", "is in UTF-16, expected UTF-8: iconv -f UTF-16 -t UTF-8 turns it over"},
                 {"\xFE\xFF", "is in UTF-16, expected UTF-8: iconv -f UTF-16 -t UTF-8 turns it over"}};
    enum { MANY_ZEROS = 4 };
    size_t zeros = 0;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        const size_t length = strlen(known[k].mark);
        if (count >= length && memcmp(bytes, known[k].mark, length) == 0) return known[k].reason;
    }
    for (size_t k = 0; k < count && k < NO_TEXTS_BYTES; k++) zeros += ((const char *)bytes)[k] == 0;
    return zeros >= MANY_ZEROS ? "is no text in UTF-8: it begins with NUL bytes" : NULL;
}
