/* Iterates over the lines of a text file in memory, for training. Objects, one a line, yield the lines of their "text",
 * as a file of these lines would.
 *
 * A text without line breaks is a line. A text with line breaks is a separate document: an empty line comes before and
 * after it. Line breaks at its end do not count.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/base/status.h"
#include "core/io/mapped_file.h"
#include "core/io/record_keys.h"

/* A file's name and its first nonblank line decide whether each line is a text or an object.
 *
 *     name                      objects where                                    else
 *     .jsonl, .ndjson, .jl      always
 *     .json                     the first line is a whole object                 anything else is refused
 *     any other, or none        the first line is a whole object with a key      lines; of an object without such a
 *                               of record_keys.h: a note says so                 key a note says so
 *
 * An array of objects is refused under any name; so is a table whose first line names its columns, where columns are
 * not read. */

enum { TEXT_FORM_SENTENCE_BYTES = 512, TEXT_LINE_MOST_BYTES = 64 << 20 };

typedef struct text_form {
    bool objects;
    bool open; /* whether the line is blank, decides nothing, and the caller must try the next one */
    char note[TEXT_FORM_SENTENCE_BYTES], refusal[TEXT_FORM_SENTENCE_BYTES]; /* note to follow "FILE: "; "" for none */
    bool document; /* refused, since it is a JSON document of several lines */
} text_form;

/* Returns whether the suffix alone decides the form. */
bool text_form_is_named(const char *path);
/* Finds the form. line: the first one that is not blank, without byte order mark and line break. columns: the reader
 * splits lines at tabs. */
void text_form_find(text_form *form, const char *path, const char *line, size_t bytes, bool columns);

/* Returns whether a line holds nothing but blanks. Between objects it is no line. */
bool text_line_is_blank(const char *line, size_t bytes);

/* Receives notes on unused input, one sentence at a time. call: NULL, no listener. */
typedef struct note_listener {
    void (*call)(void *context, const char *sentence);
    void *context;
} note_listener;

typedef struct text_lines {
    mapped_file file;
    text_form form;
    const char *at, *end; /* the rest of the file */
    size_t number;        /* number of the current line, from 1 */
    json_t *object;       /* the object of the current text, or NULL */
    const char *text, *text_end;
    bool begins, closes; /* whether an empty line comes before the text, or after it */
    unused_keys unused;
} text_lines;

/* Opens a file; refuses one that holds no texts. On failure nothing needs to be closed. */
deberta_status text_lines_open(text_lines *lines, const char *path, deberta_error *err);
/* Returns the next line without its line break, valid until the next call; NULL after the last. */
deberta_status text_lines_next(text_lines *lines, const char **line, size_t *bytes, deberta_error *err);
/* Closes the file after reading that ended with `status`, and returns the status; reports unused keys to the
 * listener. */
deberta_status text_lines_end(text_lines *lines, deberta_status status, note_listener listener, deberta_error *err);
