/* Handles bytes of texts and names of files: UTF-8, byte order marks, paths, streams, detection of binary data,
 * letters, and lists of sentences.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/base/status.h"
#include "include/deberta.h"

/* UTF-8 is processed one character at a time, with a replacement for broken bytes.
 *
 * Broken encoding follows Unicode's "maximal subpart" practice, like Python and browsers: the longest beginning of a
 * valid character counts as one unit and is replaced by one U+FFFD; any other stray byte is a separate unit. */

enum { UTF8_MAX_BYTES = 4 };
#define UTF8_INVALID     UINT32_MAX
#define UTF8_REPLACEMENT "\xEF\xBF\xBD"

/* Returns the length of the character (or broken unit) at the front of text; bytes >= 1. *character may be
 * UTF8_INVALID. */
size_t utf8_decode(const char *text, size_t bytes, uint32_t *character);
/* Writes a code point below 0x110000 and returns its length. */
size_t utf8_encode(char out[UTF8_MAX_BYTES], uint32_t character);

static inline bool utf8_is_continuation(char c) { return ((unsigned char)c & 0xC0) == 0x80; }

/* Returns the length of the valid beginning; equal to `bytes` when all is valid. *ascii (may be NULL): whether that
 * beginning is all ASCII. */
size_t utf8_valid_prefix(const char *text, size_t bytes, bool *ascii);
/* Returns whether the text is valid UTF-8, without overlong forms, surrogates or values above U+10FFFF. */
bool utf8_is_valid(const void *text, size_t bytes);

/* Returns whether a character is in C0, DEL or C1 (U+0080 to U+009F), which may control a terminal. */
bool utf8_is_control(uint32_t character);

/* Returns whether Rust's char::is_whitespace and the reference's `\s` match the character (SPEC 11.1). Unlike Python,
 * this excludes U+001C-001F. */
bool utf8_is_space(uint32_t character);

/* Returns whether a character is punctuation or a symbol of ASCII, or a quote, dash, bracket or mark of Latin-1,
 * General Punctuation and CJK, full width included. This is not all of Unicode's category P. */
bool utf8_is_punctuation(uint32_t character);

/* Copies as much of the text as the room holds with a NUL after it, cut between characters. room_bytes >= 1. */
void utf8_copy(char *room, size_t room_bytes, const char *text);

/* Counts characters (broken units as one) up to increasing byte positions of a text. */
typedef struct utf8_cursor {
    const char *text;
    size_t bytes;
    size_t byte, character; /* a byte position, and the index of the character that begins there */
} utf8_cursor;

/* Moves to the character that contains `byte` (or to the end). byte must not lie before the cursor. */
void utf8_cursor_seek(utf8_cursor *cursor, size_t byte);

/* The byte order mark is the three bytes EF BB BF that some editors put before UTF-8: no part of a text, nor of
 * JSON. */

/* Returns the number of bytes to skip at the beginning of a file: 3 or 0. */
static inline size_t byte_order_mark(const char *text, size_t bytes)
{
    return bytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
}

/* Names of files: suffixes and joining. */

/* Returns whether the path ends in the suffix (".json"). The case of ASCII letters does not count: X.CSV equals x.csv.
 * False for NULL. */
bool path_has_suffix(const char *path, const char *suffix);
/* Returns folder/name (just name for an empty folder) in new memory, NULL without memory. */
char *path_join(const char *folder, const char *name);

/* These functions flush streams, read lines, and close streams, because the plain calls can miss errors.
 *
 * A write that fails in the middle drops its bytes and leaves a mark at the stream (ferror); the next fflush or fclose
 * may succeed. So stream_flush and stream_close check the mark. tools/gates/lint.py rejects other fflush and fclose. */

/* Flushes the stream. False if anything that was ever written to it is lost; errno is that of this attempt; after an
 * earlier failure, its errno if still set, or EIO. The mark stays, so a later call still reports the loss. */
bool stream_flush(FILE *stream);
/* Flushes as stream_flush and closes the stream in any case. For a stream that is read: false if reading failed. */
bool stream_close(FILE *stream) __attribute__((warn_unused_result));
/* Closes a stream whose errors no longer matter: it was read as far as needed, or an error is reported already. Accepts
 * NULL. */
void stream_discard(FILE *stream);

/* Reads one line with its newline, which the last may lack, and a NUL after it, into growing memory: *length is 0 at
 * the end. Unlike getline, refuses a line of more than most_bytes, because a file of zeros has no newline. place: the
 * file's name and the line's number, from 1, for errors. */
typedef struct stream_place {
    const char *name;
    size_t line;
} stream_place;
deberta_status stream_read_line(FILE *stream, char **line, size_t *capacity, size_t most_bytes, size_t *length,
                                stream_place place, deberta_error *err);

/* The reasons why a file holds no texts, by its first bytes. Without this check every line of a compressed file would
 * be called bad without the reason, and weights, archives and UTF-16 would be read line by line. */

enum { NO_TEXTS_BYTES = 64 /* number of leading bytes that the check reads */ };

/* Message for a corpus line that contains a NUL; it follows the place. No piece of a vocabulary can contain one, so the
 * corpus is at fault. */
#define NUL_IN_CORPUS "holds a NUL byte, and no text of a corpus has one: take it out first (tr -d '\\0')"

/* Returns the reason, worded to follow the file's name, or NULL if there is none. No text in UTF-8 begins as compressed
 * files do. A NUL is an ordinary character, but no text begins with many. */
static inline const char *no_texts_reason(const void *bytes, size_t count)
{
    static const struct {
        const char *mark, *reason;
    } known[] = {/* "?" matches any byte. */
                 {"\x1F\x8B", "is compressed (gzip), and texts are expected: unpack it first"},
                 {"\x28\xB5\x2F\xFD", "is compressed (zstd), and texts are expected: unpack it first"},
                 {"\xFD\x37zXZ", "is compressed (xz), and texts are expected: unpack it first"},
                 {"BZh?1AY&SY", "is compressed (bzip2), and texts are expected: unpack it first"},
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
        const char *mark = known[k].mark;
        size_t same = 0;
        while (mark[same] && same < count && (mark[same] == '?' || mark[same] == ((const char *)bytes)[same])) same++;
        if (!mark[same]) return known[k].reason;
    }
    for (size_t k = 0; k < count && k < NO_TEXTS_BYTES; k++) zeros += ((const char *)bytes)[k] == 0;
    return zeros >= MANY_ZEROS ? "is no text in UTF-8: it begins with NUL bytes" : NULL;
}

/* Properties of characters that do not depend on the host's locale: lower case, and word ends without white
 * space. */

/* Maps a character to its lower case in Unicode 14.0, one for one: the first character where it has two (U+0130). */
uint32_t letter_lower_case(uint32_t character);

/* Returns whether a word ends between two tokens of a text that no white space separates. Where either side is of a
 * script without spaces between words (Chinese, Japanese, Thai, Lao, Khmer, ...), each token is a word, except tokens
 * that begin inside a character or with a mark that belongs to the character before. Letters and digits of other
 * scripts, and punctuation among them, stay together. Unicode's annex 29 defines it so for such scripts; masks and
 * figures use the same words. Spans are bytes of the text; `span` is the token after `before`. */
bool word_ends_between(const char *text, size_t bytes, deberta_span before, deberta_span span);

/* Notes: sentences for the caller about input that the library ignores. The library prints nothing, so it stores them.
 */

typedef struct kept_notes {
    char **sentences;
    size_t count, capacity;
} kept_notes;

/* Appends one sentence: the input found, its place, its effect here, and the remedy. A sentence that the list holds
 * already is not repeated. */
deberta_status notes_add(kept_notes *list, deberta_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns sentence `index`, or NULL after the last. */
const char *notes_at(const kept_notes *list, size_t index);
void notes_free(kept_notes *list);
