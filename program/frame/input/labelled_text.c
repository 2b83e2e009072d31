/* Splits a line or an object into its label, its text and the columns that follow. SPDX-License-Identifier: MIT */
#include "program/frame/input/labelled_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/numbers.h"
#include "core/base/status.h"
#include "core/io/quote.h"
#include "core/io/record_keys.h"
#include "output/scope.h"

/* Labels are C strings, so two labels that differ only after a NUL would be taken as one. */
#define NUL_IN_LABEL "the label holds a NUL character"

void labelled_text_free(labelled_text *text)
{
    free(text->label);
    json_decref(text->choices);
    *text = (labelled_text){0};
}

/* ---------------------------------------------------------------------------------------------------------- objects */

static deberta_status take_choices(labelled_text *found, text_record *record)
{
    const json_t *choices = json_object_get(record->object, "choices"), *item;
    size_t k;
    if (!json_is_array(choices)) return text_record_spoil(record, "the object has no array \"choices\"");
    json_array_foreach(choices, k, item) if (!json_is_string(item) ||
                                             !json_string_length(
                                                 item)) return text_record_spoil(record, "choice %zu is not a text", k);
    found->choices = json_copy((json_t *)choices);
    if (!(found->choices)) memory_short();
    return DEBERTA_OK;
}

/* Prints a number that is no whole one with as few digits as give it back. */
static char *shortest_text(const json_t *number)
{
    enum { MOST_DIGITS = 17 };
    char *text = NULL;
    for (size_t digits = 1; digits <= MOST_DIGITS; digits++) {
        free(text);
        text = json_dumps(number, JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
        json_t *again = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
        const bool same = again && json_number_value(again) == json_number_value(number);
        json_decref(again);
        if (same || !text) return text;
    }
    return text;
}

/* Returns the text of a number, with the fewest digits that mean it, as people write it in a table. 1.0 becomes 1,
 * since in JSON a number is whole however it is spelt. */
static char *number_text(const json_t *number)
{
    const double value = json_number_value(number);
    if (!json_is_real(number) || value != floor(value) || fabs(value) > 1e15) return shortest_text(number);
    json_t *whole = json_integer((json_int_t)value);
    char *text = whole ? json_dumps(whole, JSON_ENCODE_ANY) : NULL;
    json_decref(whole);
    return text;
}

char *labelled_text_of(const json_t *label)
{
    if (!json_is_string(label) && !json_is_number(label)) return NULL;
    char *text = json_is_string(label) ? strdup(json_string_value(label)) : number_text(label);
    if (!text) memory_short();
    return text;
}

static deberta_status take_object(labelled_text *found, text_record *record, bool has_choices)
{
    const json_t *label = json_object_get(record->object, "label");
    found->label = labelled_text_of(label);
    if (!found->label && json_is_array(label))
        return text_record_spoil(record, "the value of \"label\" is a list: a text has one label, and several right "
                                         "labels of a text are not trained or measured");
    if (!found->label) {
        char its_keys[KEY_SENTENCE_BYTES];
        record_keys_describe(record->object, its_keys);
        return text_record_spoil(record, "the object has no key \"label\" with a text or a number%s", its_keys);
    }
    if (json_is_string(label) && memchr(json_string_value(label), 0, json_string_length(label)))
        return text_record_spoil(record, NUL_IN_LABEL);
    return has_choices ? take_choices(found, record) : DEBERTA_OK;
}

/* ------------------------------------------------------------------------------------------------------------ lines */

/* Takes the fields after the text: a second text, or all choices. */
static deberta_status take_fields(labelled_text *found, text_record *record, const char *at, const char *end,
                                  bool has_choices)
{
    if (!has_choices && memchr(at, '\t', (size_t)(end - at)))
        return text_record_spoil(record, "expected a label, a text and perhaps a second text, found more fields");
    if (!has_choices) {
        record->pair_bytes = (size_t)(end - at);
        record->pair = memory_take(record->pair_bytes + 1, 1);
        memcpy(record->pair, at, record->pair_bytes + 1);
        return DEBERTA_OK;
    }
    while (at <= end) {
        const char *tab = memchr(at, '\t', (size_t)(end - at)), *stop = tab ? tab : end;
        if (stop == at) return text_record_spoil(record, "choice %zu is empty", json_array_size(found->choices));
        json_t *choice = json_stringn(at, (size_t)(stop - at));
        if (!choice) return text_record_spoil(record, "a choice is not UTF-8");
        json_array_append_new(found->choices, choice);
        at = stop + 1;
    }
    return DEBERTA_OK;
}

static bool is_name(const char *field, size_t bytes, const char *const *names)
{
    for (; *names; names++)
        if (bytes == strlen(*names) && strncasecmp(field, *names, bytes) == 0) return true;
    return false;
}

static bool is_label(const char *field, size_t bytes)
{
    static const char *const names[] = {"label", "labels", NULL};
    return is_name(field, bytes, names);
}

/* Returns true for other names that tables give to their labels. A class may have such a name as well. */
static bool may_be_label(const char *field, size_t bytes)
{
    static const char *const names[] = {"category", "class",      "classification", "gold",  "gold_label",
                                        "intent",   "label_text", "rating",         "score", "sentiment",
                                        "stars",    "tag",        "target",         "topic", NULL};
    return is_name(field, bytes, names);
}

/* Returns true for names that tables give to their texts, which are no texts themselves. */
static bool is_text_name(const char *field, size_t bytes)
{
    static const char *const names[] = {"body",     "comment", "content",   "document", "headline",
                                        "question", "review",  "reviews",   "sentence", "sentences",
                                        "title",    "tweet",   "utterance", NULL};
    const char *meant = record_key_meant(field, bytes);
    return (meant && strcmp(meant, "text") == 0) || is_name(field, bytes, names);
}

/* Refuses a first line that is a header by all appearances, since its words would become a class: a name of labels and
 * columns of one word, or a name of texts where a text is expected. */
static deberta_status check_first(const text_stream *stream, const text_record *record, size_t label_bytes,
                                  deberta_error *err)
{
    const char *text = record->text + label_bytes + 1;
    const bool named = may_be_label(record->text, label_bytes) && !strpbrk(text, " .,!?");
    const bool number = *record->text >= '0' && *record->text <= '9';
    if (!named && (number || !is_text_name(text, strcspn(text, "\t")))) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                 "%s: line 1, '%s' and '%s', looks like a header, and it would be read as an example of a class: begin "
                 "it with 'label', or leave it out",
                 stream->path, QUOTE_N(record->text, label_bytes), QUOTE_N(text, strcspn(text, "\t")));
}

/* Refuses a header with the columns in another order, which would make all following lines wrong. */
static deberta_status check_order(const text_record *record, const char *tab, deberta_error *err)
{
    char place[256];
    bool found = false;
    for (const char *field = tab; field && !found; field = strchr(field + 1, '\t'))
        found = is_label(field + 1, strcspn(field + 1, "\t"));
    if (!found || (*record->text >= '0' && *record->text <= '9')) return DEBERTA_OK;
    text_record_place(record, place);
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: the header begins with '%.*s', expected 'label', then the text", place,
                 (int)minimum((size_t)(tab - record->text), 80), record->text);
}

/* Returns true if the name is that of a column of choices: choice0, ending1, option_a, answer2, A. */
static bool is_choice(const char *name, size_t bytes)
{
    static const char *const beginnings[] = {"choice", "ending", "option", "answer", "alternative", "candidate"};
    for (size_t k = 0; k < sizeof beginnings / sizeof *beginnings; k++) {
        const size_t length = strlen(beginnings[k]);
        if (bytes >= length && strncasecmp(name, beginnings[k], length) == 0) return true;
    }
    return bytes == 1;
}

/* Checks that a column's place agrees with its name. Column 1 is the text, column 2 the second text or, like the
 * columns after it, a choice. */
static deberta_status check_column(const text_stream *stream, size_t column, const char *name, size_t bytes,
                                   bool has_choices, deberta_error *err)
{
    const char *meant = record_key_meant(name, bytes), *expected = column == 1   ? "text"
                                                                   : has_choices ? "choice"
                                                                                 : "pair";
    const bool is_known = column > 1 && has_choices ? is_choice(name, bytes) : meant && strcmp(meant, expected) == 0;
    if (is_known) return DEBERTA_OK;
    if (column > 2 && !has_choices)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                     "%s: the header has a column '%s' after the second text, expected label, text and perhaps pair: "
                     "leave it out",
                     stream->path, QUOTE_N(name, bytes));
    if (meant || (column == 2 && !has_choices))
        DEBERTA_FAIL(
            err, DEBERTA_E_FORMAT,
            "%s: the header calls column %zu '%s', and it would be read as \"%s\": give it that name, or leave "
            "the column out",
            stream->path, column + 1, QUOTE_N(name, bytes), expected);
    say_note(&stream->options->common, "note: %s: the column '%s' is read as \"%s\"", stream->path,
             QUOTE_N(name, bytes), expected);
    return DEBERTA_OK;
}

static deberta_status check_header(text_stream *stream, const text_record *record, const char *tab, bool has_choices,
                                   deberta_error *err)
{
    const char *end = record->text + record->text_bytes, *stop;
    stream->has_header = true;
    for (size_t column = 1; tab && tab < end; column++, tab = stop) {
        stop = memchr(tab + 1, '\t', (size_t)(end - tab - 1));
        stream->pair_named = column == 2 && !has_choices;
        DEBERTA_TRY(check_column(stream, column, tab + 1, (size_t)((stop ? stop : end) - tab - 1), has_choices, err));
    }
    return DEBERTA_OK;
}

/* Returns true if a spreadsheet program has put the field in quotation marks: in the first line, or with a doubled
 * mark inside. Tables such as GLUE's have none, though some of their lines begin and end with one. */
static bool is_quoted(const char *field, size_t bytes, bool is_first)
{
    if (bytes < 2 || field[0] != '"' || field[bytes - 1] != '"') return false;
    return is_first || (bytes > 3 && memmem(field + 1, bytes - 2, "\"\"", 2));
}

/* Notes once for each file that quotation marks are read as parts of the texts. */
static void note_quotes(text_stream *stream, const text_record *record, const char *tab)
{
    const char *end = record->text + record->text_bytes, *stop;
    for (; tab && !stream->quotes_said; tab = stop) {
        stop = memchr(tab + 1, '\t', (size_t)(end - tab - 1));
        stream->quotes_said = is_quoted(tab + 1, (size_t)((stop ? stop : end) - tab - 1), !stream->columns_known);
        if (stream->quotes_said)
            say_note(&stream->options->common,
                     "note: %s, line %zu: a text stands in quotation marks, and they are read as parts of it: write "
                     "the table without them, or objects (.jsonl)",
                     stream->path, record->line);
    }
    stream->columns_known = true;
}

static deberta_status labelled_text_take_line(labelled_text *found, text_stream *stream, text_record *record,
                                              bool has_choices, deberta_error *err)
{
    char *line = record->text, *end = line + record->text_bytes, *tab = memchr(line, '\t', record->text_bytes);
    const size_t label_bytes = tab ? (size_t)(tab - line) : record->text_bytes;
    found->skipped = line == end || (record->line == 1 && is_label(line, label_bytes));
    if (found->skipped) return line == end ? DEBERTA_OK : check_header(stream, record, tab, has_choices, err);
    if (record->line == 1 && label_bytes == 7 && *line == '"' && is_label(line + 1, 5))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                     "%s: the header's names stand in quotation marks, which would be read as parts of the texts: "
                     "write the table without them",
                     stream->path);
    if (!tab) return text_record_spoil(record, "expected a label, a tab and a text, found no tab");
    if (is_label(line, label_bytes) && is_text_name(tab + 1, strcspn(tab + 1, "\t")))
        return text_record_spoil(record, "a header within the table, as where two files were joined: leave it out");
    if (record->line == 1) DEBERTA_TRY(check_first(stream, record, label_bytes, err));
    if (record->line == 1) DEBERTA_TRY(check_order(record, tab, err));
    if (memchr(line, 0, label_bytes)) return text_record_spoil(record, NUL_IN_LABEL);
    note_quotes(stream, record, tab);
    found->label = strndup(line, label_bytes);
    if (has_choices) found->choices = json_array();
    if (!found->label || (has_choices && !found->choices)) memory_short();
    char *text = tab + 1, *second = memchr(text, '\t', (size_t)(end - text));
    const size_t bytes = (size_t)((second ? second : end) - text);
    if (second) DEBERTA_TRY(take_fields(found, record, second + 1, end, has_choices));
    if (!second && stream->pair_named)
        text_record_spoil(record, "the header names a pair, and the line has none: a tab and the second text");
    if (second && stream->has_header && !stream->pair_named && !has_choices)
        text_record_spoil(record,
                          "the header names no third column, and the line has one: name it \"pair\", or leave it "
                          "out");
    if (!has_choices) text_stream_count(stream, record);
    memmove(line, text, bytes);
    line[bytes] = 0;
    record->text_bytes = bytes;
    return DEBERTA_OK;
}

deberta_status labelled_text_split(labelled_text *found, text_stream *stream, text_record *record, bool has_choices,
                                   deberta_error *err)
{
    *found = (labelled_text){0};
    if (record->problem) return DEBERTA_OK;
    DEBERTA_TRY(record->object ? take_object(found, record, has_choices)
                               : labelled_text_take_line(found, stream, record, has_choices, err));
    if (record->problem || found->skipped) return DEBERTA_OK;
    if (record->text_bytes == 0) return text_record_spoil(record, "the text is empty");
    if (has_choices && json_array_size(found->choices) < 2)
        return text_record_spoil(record, "expected a label, a text and two or more choices, found %zu",
                                 json_array_size(found->choices));
    return DEBERTA_OK;
}
