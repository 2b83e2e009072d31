/* Implements UTF-8, names of files, streams, lists of sentences, and the look-up of letters.
 *
 * SPDX-License-Identifier: MIT */
#include "core/base/text.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

/* UTF-8: one character at a time, and the replacement of broken bytes. */

size_t utf8_decode(const char *text, size_t bytes, uint32_t *character)
{
    const unsigned char *at = (const unsigned char *)text;
    unsigned char lead = at[0];
    if (lead < 0x80) {
        *character = lead;
        return 1;
    }
    *character = UTF8_INVALID;
    if (lead < 0xC2 || lead > 0xF4) return 1;

    /* The second byte has a narrower range after four of the lead bytes, which excludes overlong forms, surrogates and
     * values above U+10FFFF. */
    unsigned low = 0x80, high = 0xBF;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;

    size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    uint32_t value = lead & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (i >= bytes || at[i] < low || at[i] > high) return i;
        value = value << 6 | (at[i] & 0x3F);
        low = 0x80, high = 0xBF;
    }
    *character = value;
    return length;
}

size_t utf8_encode(char out[UTF8_MAX_BYTES], uint32_t character)
{
    assert(character < 0x110000);
    if (character < 0x80) {
        out[0] = (char)character;
        return 1;
    }
    size_t length = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (character & 0x3F));
        character >>= 6;
    }
    out[0] = (char)((0xF00 >> length) | character);
    return length;
}

size_t utf8_valid_prefix(const char *text, size_t bytes, bool *ascii)
{
    size_t at = 0;
    bool only_ascii = true;
    while (at < bytes) {
        uint64_t eight;
        if (bytes - at >= sizeof eight) {
            memcpy(&eight, text + at, sizeof eight);
            if (!(eight & 0x8080808080808080u)) {
                at += sizeof eight;
                continue;
            }
        }
        uint32_t character;
        size_t length = utf8_decode(text + at, bytes - at, &character);
        if (character == UTF8_INVALID) break;
        if (character >= 0x80) only_ascii = false;
        at += length;
    }
    if (ascii) *ascii = only_ascii;
    return at;
}

bool utf8_is_valid(const void *text, size_t bytes) { return utf8_valid_prefix(text, bytes, NULL) == bytes; }

bool utf8_is_control(uint32_t c) { return c < 0x20 || (c >= 0x7F && c < 0xA0); }

bool utf8_is_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool utf8_is_punctuation(uint32_t c)
{
    if (c >= 0xFF01 && c <= 0xFF5E) c -= 0xFF01 - '!'; /* full-width forms of ASCII */
    if (c < 0x80)
        return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
    return c == 0xA1 || c == 0xA7 || c == 0xAB || c == 0xB6 || c == 0xB7 || c == 0xBB || c == 0xBF ||
           (c >= 0x2010 && c <= 0x2027) || (c >= 0x2030 && c <= 0x205E) || (c >= 0x3001 && c <= 0x3003) ||
           (c >= 0x3008 && c <= 0x3011) || (c >= 0x3014 && c <= 0x301F) || (c >= 0xFF5F && c <= 0xFF65);
}

void utf8_copy(char *room, size_t room_bytes, const char *text)
{
    size_t bytes = strlen(text);
    if (bytes >= room_bytes) {
        bytes = room_bytes - 1;
        while (bytes > 0 && utf8_is_continuation(text[bytes])) bytes--;
    }
    memcpy(room, text, bytes);
    room[bytes] = 0;
}

void utf8_cursor_seek(utf8_cursor *cursor, size_t byte)
{
    assert(byte >= cursor->byte && byte <= cursor->bytes);
    while (cursor->byte < byte) {
        uint32_t character;
        size_t length = utf8_decode(cursor->text + cursor->byte, cursor->bytes - cursor->byte, &character);
        if (cursor->byte + length > byte) return;
        cursor->byte += length;
        cursor->character++;
    }
}

/* Suffixes are compared without regard to case; names are joined with a slash. */

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

bool path_has_suffix(const char *path, const char *suffix)
{
    const size_t path_bytes = path ? strlen(path) : 0, suffix_bytes = strlen(suffix);
    if (path_bytes < suffix_bytes) return false;
    const char *end = path + path_bytes - suffix_bytes;
    for (size_t k = 0; k < suffix_bytes; k++)
        if (lower(end[k]) != lower(suffix[k])) return false;
    return true;
}

char *path_join(const char *folder, const char *name)
{
    size_t folder_bytes = strlen(folder), name_bytes = strlen(name);
    bool slash = folder_bytes > 0 && folder[folder_bytes - 1] != '/'; /* no folder: the current one, not the root */
    char *path = malloc(folder_bytes + name_bytes + 2);
    if (!path) return NULL;
    memcpy(path, folder, folder_bytes);
    if (slash) path[folder_bytes++] = '/';
    memcpy(path + folder_bytes, name, name_bytes + 1);
    return path;
}

/* This section flushes, closes and reads streams; it heeds the error mark of an earlier failure. */

/* Returns whether the stream has no error mark. Else errno keeps the reason of the failure if it is one of writing, and
 * becomes EIO otherwise. */
static bool is_unmarked(FILE *stream)
{
    if (!ferror(stream)) return true;
    if (errno != ENOSPC && errno != EDQUOT && errno != EFBIG && errno != EPIPE) errno = EIO;
    return false;
}

bool stream_flush(FILE *stream) { return fflush(stream) == 0 && is_unmarked(stream); }

bool stream_close(FILE *stream)
{
    const bool fine = is_unmarked(stream);
    const bool closed = fclose(stream) == 0; /* fclose sets errno even after an earlier failure. */
    return closed && fine;
}

void stream_discard(FILE *stream)
{
    if (stream) (void)fclose(stream);
}

deberta_status stream_read_line(FILE *stream, char **line, size_t *capacity, size_t most_bytes, size_t *length,
                                stream_place place, deberta_error *err)
{
    size_t count = 0;
    *length = 0;
    for (int byte = 0; byte != '\n' && (byte = getc_unlocked(stream)) != EOF;) {
        if (count + 1 >= *capacity) {
            char *larger = grown(*line, capacity, count + 2, 1);
            if (!larger) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s, line %zu: no memory for it", place.name, place.line);
            *line = larger;
        }
        if (count == most_bytes)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s, line %zu: expected at most %zu bytes, found more", place.name,
                         place.line, most_bytes);
        (*line)[count++] = (char)byte;
    }
    if (ferror(stream)) DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: cannot be read: %s", place.name, strerror(errno));
    if (count) (*line)[count] = '\0';
    *length = count;
    return DEBERTA_OK;
}

/* Notes: sentences for the caller, none twice. */

deberta_status notes_add(kept_notes *list, deberta_error *err, const char *format, ...)
{
    va_list arguments;
    char *sentence = NULL;
    va_start(arguments, format);
    const int length = vasprintf(&sentence, format, arguments);
    va_end(arguments);
    if (length < 0) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a note");
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->sentences[i], sentence) == 0) {
            free(sentence);
            return DEBERTA_OK;
        }
    char **larger = grown(list->sentences, &list->capacity, list->count + 1, sizeof *larger);
    if (!larger) {
        free(sentence);
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a note");
    }
    list->sentences = larger;
    larger[list->count++] = sentence;
    return DEBERTA_OK;
}

const char *notes_at(const kept_notes *list, size_t index)
{
    return index < list->count ? list->sentences[index] : NULL;
}

void notes_free(kept_notes *list)
{
    for (size_t i = 0; i < list->count; i++) free(list->sentences[i]);
    free(list->sentences);
    *list = (kept_notes){0};
}

/* Letters: lower case, and where words end in scripts without spaces. */

/* Rows of both kinds begin with the last character of their range; tables ascend by it. */
typedef struct lower_run {
    uint32_t last, first, step, to;
} lower_run;

typedef struct character_range {
    uint32_t last, first;
} character_range;

#include "core/base/letter_tables.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* Returns the first row of a table that does not end before the character; NULL if all do. */
static const void *find_row(const void *table, size_t count, size_t stride, uint32_t character)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        uint32_t last;
        memcpy(&last, (const char *)table + middle * stride, sizeof last);
        if (last < character)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count ? (const char *)table + low * stride : NULL;
}

uint32_t letter_lower_case(uint32_t character)
{
    if (character < 0x80) return character >= 'A' && character <= 'Z' ? character + ('a' - 'A') : character;
    const lower_run *run = find_row(lower_runs, COUNT(lower_runs), sizeof *lower_runs, character);
    const bool known = run && run->first <= character && (character - run->first) % run->step == 0;
    return known ? run->to + (character - run->first) : character;
}

static bool is_within(const character_range *ranges, size_t count, uint32_t character)
{
    const character_range *range = find_row(ranges, count, sizeof *ranges, character);
    return range && range->first <= character;
}

static bool is_unspaced(uint32_t character) { return is_within(unspaced_ranges, COUNT(unspaced_ranges), character); }

bool word_ends_between(const char *text, size_t bytes, deberta_span before, deberta_span span)
{
    const size_t at = span.begin;
    if (at == 0 || at >= bytes || at == before.begin || utf8_is_continuation(text[at])) return false;
    size_t last = at - 1;
    while (last > 0 && utf8_is_continuation(text[last])) last--;
    uint32_t left = 0, right = 0;
    utf8_decode(text + last, at - last, &left);
    utf8_decode(text + at, bytes - at, &right);
    if (utf8_is_space(left) || utf8_is_space(right) || is_within(mark_ranges, COUNT(mark_ranges), right)) return false;
    return is_unspaced(left) || is_unspaced(right);
}
