/* Parses lines of labelled data: label, tab, text, perhaps tab and a second text, or tab and choices; or objects with
 * the keys "label", "text", "pair" or "choices". A first line whose label is "label", in capitals or not, names the
 * columns, which must mean what is read there; it and empty lines are skipped. One that has "label" in another column
 * is an error.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/input/text_stream.h"

typedef struct labelled_text {
    char *label;
    json_t *choices; /* an array of texts; NULL: none were asked for */
    bool skipped;    /* the line is no example */
} labelled_text;

/* Takes a record of the stream apart: its text becomes the text, its pair the second one. What is wrong with the line
 * becomes the record's problem, what is wrong with a header an error. Release in any case. */
deberta_status labelled_text_split(labelled_text *found, text_stream *stream, text_record *record, bool has_choices,
                                   deberta_error *err);
void labelled_text_free(labelled_text *text);

/* The label's number by its name among `count` or, where none has that name, by its number. SIZE_MAX: neither. */
size_t labelled_text_find(const char *const *names, size_t count, const char *label);
/* A number below `count`, or SIZE_MAX. */
size_t labelled_text_number(size_t count, const char *label);
