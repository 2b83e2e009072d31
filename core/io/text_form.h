/* Decides from a file's name and its first nonblank line whether each line is a text or an object.
 *
 *     name                      objects where                                    else
 *     .jsonl, .ndjson, .jl      always
 *     .json                     the first line is a whole object                 anything else is refused
 *     any other, or none        the first line is a whole object with a key      lines; of an object without such a
 *                               of record_keys.h: a note says so                 key a note says so
 *
 * An array of objects is refused under any name; so is a table whose first line names its columns, where columns are
 * not read.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/base/status.h"

enum { TEXT_FORM_SENTENCE_BYTES = 512, TEXT_LINE_MOST_BYTES = 64 << 20 };

typedef struct text_form {
    bool objects;
    bool open; /* the line is blank and decides nothing: call again with the next one */
    char note[TEXT_FORM_SENTENCE_BYTES], refusal[TEXT_FORM_SENTENCE_BYTES]; /* to follow "FILE: "; "" for none */
} text_form;

/* Whether the suffix alone decides the form. */
bool text_form_is_named(const char *path);
/* Finds the form. line: the first one that is not blank, without a byte order mark and a line break. columns: the
 * reader splits lines at tabs. */
void text_form_find(text_form *form, const char *path, const char *line, size_t bytes, bool columns);
