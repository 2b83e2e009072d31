/* Reads lines from a mapped file, or from the texts of its objects. SPDX-License-Identifier: MIT */
#include "core/io/text_lines.h"

#include <stdio.h>
#include <string.h>

#include "core/base/text.h"
#include "core/io/json_file.h"

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
    if (!text || json_is_null(text)) {
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
