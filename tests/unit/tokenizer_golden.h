/* Opening golden tokenizers, and comparing a token list with a line of a golden.jsonl.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tests/unit/io_helpers.h"

#include <jansson.h>

#include "core/text/tokenizer.h"

enum { TEST_PATH_BYTES = 4096 };

__attribute__((format(printf, 2, 3))) static inline const char *format_path(char path[TEST_PATH_BYTES],
                                                                            const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int bytes = vsnprintf(path, TEST_PATH_BYTES, format, values);
    va_end(values);
    assert_true(bytes > 0 && bytes < TEST_PATH_BYTES);
    return path;
}

static inline const char *golden_path(char path[TEST_PATH_BYTES], const char *name)
{
    char folder[512];
    return format_path(path, "%s/tokenizers/%s", golden_folder(folder), name);
}

static inline deberta_tokenizer *open_folder(const char *folder)
{
    deberta_error error = {0};
    deberta_tokenizer *t = NULL;
    if (deberta_tokenizer_open(&t, folder, &error) != DEBERTA_OK) fail_msg("%s: %s", folder, error.message);
    return t;
}

static inline deberta_tokenizer *open_golden(const char *name)
{
    char path[TEST_PATH_BYTES];
    return open_folder(golden_path(path, name));
}

/* Calls `visit` for every line of a golden.jsonl; returns how many there were. */
static inline size_t for_each_golden(const char *name, void (*visit)(json_t *row, size_t line, void *context),
                                     void *context)
{
    char path[TEST_PATH_BYTES], file_name[TEST_PATH_BYTES], *line = NULL;
    size_t capacity = 0, lines = 0;
    FILE *file = fopen(golden_path(path, format_path(file_name, "%s/golden.jsonl", name)), "r");
    if (!file) fail_msg("%s cannot be read; set DEBERTA_GOLDEN to the folder with the golden files", path);
    while (getline(&line, &capacity, file) > 0) {
        json_error_t error;
        json_t *row = json_loads(line, JSON_ALLOW_NUL, &error);
        if (!row) fail_msg("%s: line %zu: %s", path, lines + 1, error.text);
        visit(row, ++lines, context);
        json_decref(row);
    }
    free(line);
    fclose(file);
    return lines;
}

static inline bool ids_are(const json_t *expected, const token_list *list)
{
    bool same = json_array_size(expected) == list->count;
    for (size_t i = 0; same && i < list->count; i++)
        same = json_integer_value(json_array_get(expected, i)) == list->ids[i];
    return same;
}

static inline bool types_are(const json_t *expected, const token_list *list)
{
    bool same = json_array_size(expected) == list->count;
    for (size_t i = 0; same && i < list->count; i++)
        same = json_integer_value(json_array_get(expected, i)) == list->type_ids[i];
    return same;
}

static inline bool texts_are(const json_t *expected, const token_list *list)
{
    bool same = json_array_size(expected) == list->count;
    for (size_t i = 0; same && i < list->count; i++) {
        size_t bytes;
        const char *text = token_list_text(list, i, &bytes);
        const json_t *token = json_array_get(expected, i);
        same = json_string_length(token) == bytes && memcmp(json_string_value(token), text, bytes) == 0;
    }
    return same;
}

/* null: a token of the frame. Absent: the reference counts places in another way. */
static inline bool spans_are(const json_t *expected, const text_span *spans, const token_list *list)
{
    if (!expected) return true;
    bool same = json_array_size(expected) == list->count;
    for (size_t i = 0; same && i < list->count; i++) {
        const json_t *span = json_array_get(expected, i);
        if (json_is_null(span))
            same = list->roles[i] == TOKEN_FRAME && spans[i].begin == 0 && spans[i].end == 0;
        else
            same = list->roles[i] != TOKEN_FRAME &&
                   (size_t)json_integer_value(json_array_get(span, 0)) == spans[i].begin &&
                   (size_t)json_integer_value(json_array_get(span, 1)) == spans[i].end;
    }
    return same;
}

/* What differs, or NULL. */
static inline const char *first_difference(const json_t *row, const token_list *list)
{
    if (!ids_are(json_object_get(row, "ids"), list)) return "ids";
    if (!types_are(json_object_get(row, "type_ids"), list)) return "type_ids";
    if (!texts_are(json_object_get(row, "tokens"), list)) return "tokens";
    if (!spans_are(json_object_get(row, "offsets"), list->char_spans, list)) return "offsets";
    if (!spans_are(json_object_get(row, "byte_offsets"), list->byte_spans, list)) return "byte_offsets";
    return NULL;
}

static inline void encode_row(const deberta_tokenizer *t, const json_t *row, const tokenizer_options *options,
                              token_list *list)
{
    const json_t *text = json_object_get(row, "text"), *pair = json_object_get(row, "pair");
    deberta_error error = {0};
    if (tokenizer_encode(t, json_string_value(text), json_string_length(text), json_string_value(pair),
                         json_string_length(pair), options, list, &error) != DEBERTA_OK)
        fail_msg("%s", error.message);
}
