/* Reads lines from a mapped file, or from the texts of its objects, and decides which of both a file holds.
 *
 * SPDX-License-Identifier: MIT */
#include "core/io/text_lines.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/base/text.h"
#include "core/io/json_file.h"
#include "core/io/quote.h"
#include "core/io/record_keys.h"

/* The limit equals the longest line of the other readers. */
static const json_limits object_limits = {
    .bytes = TEXT_LINE_MOST_BYTES, .depth = 64, .values = 4 << 20, .long_texts = true};

static const char *line_end(const char *at, const char *end)
{
    const char *found = memchr(at, '\n', (size_t)(end - at));
    return found ? found : end;
}

static size_t without_return(const char *line, size_t bytes)
{
    return bytes && line[bytes - 1] == '\r' ? bytes - 1 : bytes;
}

static void find_form(text_lines *lines, const char *path)
{
    const char *line = lines->at, *stop;
    do {
        stop = line_end(line, lines->end);
        text_form_find(&lines->form, path, line, without_return(line, (size_t)(stop - line)), false);
        line = stop + 1;
    } while (lines->form.open && stop < lines->end);
}

deberta_status text_lines_open(text_lines *lines, const char *path, deberta_error *err)
{
    *lines = (text_lines){0};
    if (strcmp(path, "-") == 0)
        DEBERTA_FAIL(err, DEBERTA_E_FILE,
                     "'-' is no file: what is learned from is read more than once, which standard input cannot be");
    DEBERTA_TRY(mapped_file_open(&lines->file, path, err));
    lines->at = (const char *)lines->file.bytes;
    lines->end = lines->at + lines->file.size_bytes;
    const char *why = no_texts_reason(lines->at, lines->file.size_bytes);
    lines->at += byte_order_mark(lines->at, lines->file.size_bytes);
    deberta_status status = DEBERTA_OK;
    if (why)
        status = status_fail(err, DEBERTA_E_FORMAT, "%s %s", lines->file.name.text, why);
    else
        find_form(lines, path);
    if (*lines->form.refusal)
        status = status_fail(err, DEBERTA_E_FORMAT, "%s: %s", lines->file.name.text, lines->form.refusal);
    return status == DEBERTA_OK ? DEBERTA_OK : mapped_file_end(&lines->file, status, err);
}

/* Takes the text of an object, which is one line or a document. */
static deberta_status open_object(text_lines *lines, const char *line, size_t bytes, deberta_error *err)
{
    static const char *const used[] = {"text", NULL};
    char where[QUOTE_BYTES + 32], problem[KEY_SENTENCE_BYTES];
    snprintf(where, sizeof where, "%s, line %zu", lines->file.name.text, lines->number);
    json_decref(lines->object);
    lines->object = NULL;
    DEBERTA_TRY(json_file_parse(&lines->object, line, bytes, &object_limits, where, err));
    const json_t *text = json_object_get(lines->object, "text");
    if (!text) {
        record_keys_describe(lines->object, problem);
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: the object has no key \"text\"%s", where, problem);
    }
    if (!json_is_string(text)) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: the value of \"text\" is not a text", where);
    if (!record_keys_check(lines->object, used, &lines->unused, problem))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %s", where, problem);
    lines->text = json_string_value(text);
    lines->text_end = lines->text + json_string_length(text);
    while (lines->text_end > lines->text && (lines->text_end[-1] == '\n' || lines->text_end[-1] == '\r'))
        lines->text_end--;
    lines->begins = lines->closes = line_end(lines->text, lines->text_end) < lines->text_end;
    return DEBERTA_OK;
}

/* Returns a line of the current text; NULL after its last. */
static const char *next_of_text(text_lines *lines, size_t *bytes)
{
    const char *line = lines->text;
    *bytes = 0;
    if (lines->begins || (!line && lines->closes)) {
        if (lines->begins)
            lines->begins = false;
        else
            lines->closes = false;
        return "";
    }
    if (!line) return NULL;
    const char *stop = line_end(line, lines->text_end);
    *bytes = (size_t)(stop - line);
    lines->text = stop < lines->text_end ? stop + 1 : NULL;
    return line;
}

deberta_status text_lines_next(text_lines *lines, const char **line, size_t *bytes, deberta_error *err)
{
    for (;;) {
        *line = next_of_text(lines, bytes);
        if (!*line && lines->at < lines->end) {
            const char *begin = lines->at, *stop = line_end(begin, lines->end);
            lines->at = stop + 1;
            lines->number++;
            *bytes = (size_t)(stop - begin);
            if (lines->form.objects) {
                if (text_line_is_blank(begin, *bytes)) continue;
                DEBERTA_TRY(open_object(lines, begin, *bytes, err));
                continue;
            }
            *line = begin;
        }
        if (!*line) return DEBERTA_OK;
        *bytes = without_return(*line, *bytes);
        if (memchr(*line, 0, *bytes))
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s, line %zu: %s", lines->file.name.text, lines->number,
                         NUL_IN_CORPUS);
        return DEBERTA_OK;
    }
}

deberta_status text_lines_end(text_lines *lines, deberta_status status, note_listener listener, deberta_error *err)
{
    char unused[KEY_SENTENCE_BYTES], sentence[KEY_SENTENCE_BYTES + QUOTE_BYTES];
    unused_keys_describe(&lines->unused, unused);
    const char *const notes[] = {lines->form.note, unused};
    for (size_t k = 0; listener.call && status == DEBERTA_OK && k < sizeof notes / sizeof *notes; k++) {
        snprintf(sentence, sizeof sentence, "%s: %s", lines->file.name.text, notes[k]);
        if (*notes[k]) listener.call(listener.context, sentence);
    }
    json_decref(lines->object);
    lines->object = NULL;
    return mapped_file_end(&lines->file, status, err);
}

/* ----------------------------------------------------------------------------------------------- the form of a file */

bool text_form_is_named(const char *path)
{
    return path_has_suffix(path, ".jsonl") || path_has_suffix(path, ".ndjson") || path_has_suffix(path, ".jl");
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && is_blank(*at)) at++;
    return at;
}

#define REFUSE(form, ...) (void)snprintf((form)->refusal, TEXT_FORM_SENTENCE_BYTES, __VA_ARGS__)
#define NOTE(form, ...)   (void)snprintf((form)->note, TEXT_FORM_SENTENCE_BYTES, __VA_ARGS__)

/* A text may begin with "[1]" or "[CLS]", but not with the beginning of a list of objects. */
static bool is_array(const char *at, const char *end, bool is_json)
{
    if (at == end || *at != '[') return false;
    at = skip_blanks(at + 1, end);
    return is_json || at == end || *at == '{';
}

/* ---------------------------------------------------------------------------------------------------------- objects */

static bool has_known_key(const json_t *object)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value) if (record_key_is_known(name, strlen(name))) return true;
    return false;
}

static void find_object(text_form *form, const char *at, const char *end, bool is_json)
{
    const size_t bytes = (size_t)(end - at);
    json_t *object = bytes <= TEXT_LINE_MOST_BYTES ? json_loadb(at, bytes, JSON_ALLOW_NUL, NULL) : NULL;
    const char *behind = skip_blanks(at + 1, end);
    if (json_is_object(object) && (is_json || has_known_key(object))) {
        form->objects = true;
        if (!is_json)
            NOTE(form, "its first line is a JSON object: lines are read as objects, as those of a .jsonl file are");
    } else if (is_json) {
        REFUSE(form, "its first line is no whole JSON object, expected one object a line (.jsonl)");
        form->document = true;
    } else if (json_is_object(object) || behind == end || *behind == '"') {
        NOTE(form, "its first line looks like JSON and is no object with a known key: lines are read as texts");
    }
    json_decref(object);
}

/* ---------------------------------------------------------------------------------------------------------- columns */

/* Returns whether the line names columns. all: each field must be a name; else one is enough. */
static bool names_columns(const char *at, const char *end, char separator, size_t least, bool all)
{
    size_t fields = 0, known = 0;
    for (;; fields++) {
        const char *stop = memchr(at, separator, (size_t)(end - at));
        if (!stop) stop = end;
        const char *first = at, *last = stop;
        if (last - first >= 2 && *first == '"' && last[-1] == '"') first++, last--;
        known += record_key_is_known(first, (size_t)(last - first)) ||
                 (last - first == 8 && memcmp(first, "sentence", 8) == 0);
        if (stop == end) break;
        at = stop + 1;
    }
    return ++fields >= least && (all ? known == fields : known > 0);
}

static void find_columns(text_form *form, const char *path, const char *line, const char *end, bool columns)
{
    const bool csv = path_has_suffix(path, ".csv"), tsv = path_has_suffix(path, ".tsv");
    const char *tab = memchr(line, '\t', (size_t)(end - line));
    const bool by_tab = tab && skip_blanks(line, end) < tab && skip_blanks(tab, end) < end;
    if (columns) {
        if (!by_tab && names_columns(line, end, ',', 2, true))
            REFUSE(form, "its first line names columns that commas separate, expected tabs between them, or objects "
                         "(.jsonl)");
        return;
    }
    const bool header = csv || tsv ? names_columns(line, end, csv && !by_tab ? ',' : '\t', 1, true) ||
                                         names_columns(line, end, csv && !by_tab ? ',' : '\t', 2, false)
                                   : by_tab && names_columns(line, end, '\t', 2, true);
    if (header)
        REFUSE(form,
               "its first line names columns ('%s'), and a line is one text here: give objects (.jsonl), or the "
               "texts alone without that line",
               QUOTE_N(line, (size_t)(end - line)));
    else if (csv || tsv || by_tab)
        NOTE(form,
             "%sa line is one text here, with all its columns; `deberta eval` and `finetune` take labelled lines "
             "apart",
             csv || tsv ? "" : "its first line has a tab: ");
}

bool text_line_is_blank(const char *line, size_t bytes) { return skip_blanks(line, line + bytes) == line + bytes; }

void text_form_find(text_form *form, const char *path, const char *line, size_t bytes, bool columns)
{
    const char *end = line + bytes, *at = skip_blanks(line, end);
    const bool is_json = path_has_suffix(path, ".json");
    *form = (text_form){.objects = text_form_is_named(path), .open = at == end && !is_json};
    if (form->open)
        return;
    else if (is_array(at, end, is_json))
        REFUSE(form, "is one JSON array, expected one object a line (.jsonl): jq -c '.[]' writes them so");
    else if (form->objects)
        return;
    else if (memchr(at, '\r', (size_t)(end - at)))
        REFUSE(form,
               "its first line has carriage returns before its end, and only LF or CR LF ends a line: tr '\\r' '\\n' "
               "makes lines of them, tr '\\r' ' ' one line");
    else if (at < end && *at == '{')
        find_object(form, at, end, is_json);
    else if (is_json)
        REFUSE(form,
               "its first line is no JSON object, expected one object a line, with the key \"text\"; texts a line "
               "stand in a .txt file");
    else
        find_columns(form, path, line, end, columns);
}
