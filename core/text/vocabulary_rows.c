/* Scans a tokenizer.json for its vocabulary, and leaves every form that it does not know to jansson.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/vocabulary_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/numbers.h"
#include "core/base/text.h"
#include "core/io/mapped_file.h"
#include "core/text/json_value.h"

enum { MOST_ROW_BYTES = 1 << 16, MOST_DIGITS = 19 /* most digits of a number below 2^64 */ };

__extension__ typedef unsigned __int128 wide;

typedef struct scanner {
    const char *text;
    size_t at, end;
} scanner;

/* Returns the next byte, or NUL at the end, which is valid nowhere. */
static char ahead(const scanner *s) { return s->at < s->end ? s->text[s->at] : '\0'; }

/* The loops over bytes keep the place in a variable of their own, which the compiler holds in a register. */

static void skip_blanks(scanner *s)
{
    size_t at = s->at;
    while (at < s->end && (s->text[at] == ' ' || s->text[at] == '\n' || s->text[at] == '\r' || s->text[at] == '\t'))
        at += s->end - at >= 8 && memcmp(s->text + at, "        ", 8) == 0 ? 8 : 1;
    s->at = at;
}

/* Skips blanks and takes that character. */
static bool take(scanner *s, char wanted)
{
    skip_blanks(s);
    if (ahead(s) != wanted) return false;
    s->at++;
    return true;
}

/* Moves from after a text's opening quote to after its closing one. *plain: it has no escape and no control character.
 */
static bool skip_text(scanner *s, bool *plain)
{
    size_t at = s->at;
    bool escaped = false, control = false;
    for (; at < s->end && s->text[at] != '"'; at++) {
        control |= (unsigned char)s->text[at] < ' ';
        if (s->text[at] != '\\') continue;
        escaped = true;
        at++;
    }
    *plain = !escaped && !control;
    s->at = minimum(at + 1, s->end);
    return at < s->end;
}

/* Appends the digits at the present place to *number; returns how many there were. */
static size_t read_digits(scanner *s, uint64_t *number)
{
    const size_t begin = s->at;
    size_t at = begin;
    uint64_t value = *number;
    for (; at < s->end && s->text[at] >= '0' && s->text[at] <= '9'; at++)
        value = value * 10 + (uint64_t)(s->text[at] - '0');
    s->at = at;
    *number = value;
    return at - begin;
}

/* Returns number / 10^places rounded once, as strtod does: a quotient of 63 bits or more is cut, and its last bit says
 * whether there was a remainder. */
static double divide_by_ten(uint64_t number, size_t places)
{
    if (number == 0) return 0;
    uint64_t divisor = 1;
    for (size_t i = 0; i < places; i++) divisor *= 10;
    const int shift = __builtin_clzll(number);
    const wide dividend = (wide)(number << shift) << 63, quotient = dividend / divisor;
    return ldexp((double)(quotient | (quotient * divisor != dividend)), -63 - shift);
}

/* Reads a number with a point and without an exponent, and the bracket after it. */
static bool read_score(scanner *s, double *score)
{
    uint64_t number = 0;
    skip_blanks(s);
    const bool negative = ahead(s) == '-';
    s->at += negative;
    const bool zero = ahead(s) == '0';
    const size_t digits = read_digits(s, &number);
    if (digits == 0 || (zero && digits > 1) || ahead(s) != '.') return false;
    s->at++;
    const size_t places = read_digits(s, &number);
    if (places == 0 || digits + places > MOST_DIGITS || !take(s, ']')) return false;
    *score = divide_by_ten(number, places);
    if (negative) *score = -*score;
    return true;
}

static bool add(piece_model *rows, const char *text, size_t bytes, double score)
{
    deberta_error unsaid;
    return piece_model_add(rows, text, bytes, score, PIECE_NORMAL, &unsaid) == DEBERTA_OK;
}

/* Reads a row with an escaped character or another number. Its text ends before s->at. */
static bool read_row_by_jansson(scanner *s, size_t begin, piece_model *rows)
{
    const char *close = memchr(s->text + s->at, ']', s->end - s->at);
    const size_t bytes = close ? (size_t)(close + 1 - s->text) - begin : SIZE_MAX;
    if (bytes > MOST_ROW_BYTES) return false;
    s->at = begin + bytes;
    json_t *row = json_loadb(s->text + begin, bytes, 0, NULL);
    const json_t *name = json_array_get(row, 0), *score = json_array_get(row, 1);
    const bool known = json_array_size(row) == 2 && json_is_string(name) && json_is_number(score) &&
                       add(rows, json_string_value(name), json_string_length(name), json_number_value(score));
    json_decref(row);
    return known;
}

static bool read_row(scanner *s, piece_model *rows)
{
    bool plain;
    double score;
    skip_blanks(s);
    const size_t begin = s->at;
    if (!take(s, '[') || !take(s, '"')) return false;
    const char *text = s->text + s->at;
    if (!skip_text(s, &plain)) return false;
    const size_t end = s->at, bytes = (size_t)(s->text + end - 1 - text);
    if (plain && bytes <= MOST_ROW_BYTES && take(s, ',') && read_score(s, &score))
        return utf8_is_valid(text, bytes) && add(rows, text, bytes, score);
    s->at = end;
    return read_row_by_jansson(s, begin, rows);
}

/* Moves from after the opening bracket to after the closing one. */
static bool read_rows(scanner *s, piece_model *rows)
{
    do
        if (!read_row(s, rows)) return false;
    while (take(s, ','));
    return take(s, ']');
}

/* Moves from after a text's opening quote to after the text. Where that is the key `name` of a value that begins with
 * `opening`, it moves on to after that character. */
static bool take_key(scanner *s, const char *name, char opening, bool *is_key)
{
    bool plain;
    const char *text = s->text + s->at;
    if (!skip_text(s, &plain)) return false;
    const size_t bytes = (size_t)(s->text + s->at - 1 - text);
    *is_key = bytes == strlen(name) && memcmp(text, name, bytes) == 0 && take(s, ':') && take(s, opening);
    return true;
}

/* Moves to after the bracket that opens model.vocab. It only counts brackets, because jansson reads what is outside. */
static bool find_vocabulary(scanner *s)
{
    size_t depth = 0;
    bool in_model = false, found = false;
    while (s->at < s->end && !found) {
        const char c = s->text[s->at++];
        if (c == '[' || c == '{') depth++;
        if ((c == ']' || c == '}') && depth-- == 0) return false;
        if (c != '"') continue;
        bool *is_key = depth == 1 ? &in_model : &found;
        if (!take_key(s, depth == 1 ? "model" : depth == 2 && in_model ? "vocab" : "", depth == 1 ? '{' : '[', is_key))
            return false;
        depth += depth == 1 && in_model;
    }
    return found;
}

/* Parses the text without the part between `begin` and s->at, a bracket. */
static bool parse_rest(json_t **root, const scanner *s, size_t begin, size_t row_count)
{
    const size_t end = s->at - 1, bytes = begin + s->end - end;
    char *rest = malloc(bytes);
    deberta_error unsaid;
    if (!rest) return false;
    memcpy(rest, s->text, begin);
    memcpy(rest + begin, s->text + end, s->end - end);
    const bool parsed = json_value_parse_without(root, rest, bytes, row_count, &unsaid) == DEBERTA_OK;
    free(rest);
    return parsed;
}

static bool read_text(json_t **root, piece_model *rows, const mapped_file *file)
{
    scanner s = {.text = (const char *)file->bytes, .end = file->size_bytes};
    if (s.end > VOCABULARY_FILE_MOST_BYTES || !find_vocabulary(&s)) return false;
    const size_t begin = s.at;
    return read_rows(&s, rows) && parse_rest(root, &s, begin, rows->count);
}

bool vocabulary_rows_read(json_t **root, piece_model *rows, const char *path)
{
    mapped_file file;
    deberta_error unsaid;
    *root = NULL;
    if (mapped_file_open(&file, path, &unsaid) != DEBERTA_OK) return false;
    const bool read = read_text(root, rows, &file);
    if (mapped_file_end(&file, DEBERTA_OK, &unsaid) == DEBERTA_OK && read) return true;
    json_decref(*root);
    *root = NULL;
    piece_model_free(rows);
    return false;
}
