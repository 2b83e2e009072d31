/* Classifies a file by its first line: an object, an array, column names, or a text. SPDX-License-Identifier: MIT */
#include "core/io/text_lines.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/base/text.h"
#include "core/io/quote.h"
#include "core/io/record_keys.h"

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
        REFUSE(form, "its first line is no whole JSON object, expected one object a line (.jsonl); --input takes one "
                     "batch of ids");
    } else if (json_is_object(object) || behind == end || *behind == '"') {
        NOTE(form, "its first line looks like JSON and is no object with a known key: lines are read as texts");
    }
    json_decref(object);
}

/* ---------------------------------------------------------------------------------------------------------- columns */

/* Does the line name columns? all: each field must be a name; else one is enough. */
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
    else if (at < end && *at == '{')
        find_object(form, at, end, is_json);
    else if (is_json)
        REFUSE(form,
               "its first line is no JSON object, expected one object a line, with the key \"text\"; texts a line "
               "stand in a .txt file");
    else
        find_columns(form, path, line, end, columns);
}
