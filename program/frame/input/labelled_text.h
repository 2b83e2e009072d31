/* Parses lines of labelled data: label, tab, text, and optionally a tab and a second text, or tabs and choices; or
 * objects with the keys "label", "text", "pair" or "choices". A first line whose label is "label", in any case, is a
 * header: its names must agree with the columns, and it is skipped, as empty lines are. A first line with "label" in
 * another column is an error.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/input/text_stream.h"

typedef struct labelled_text {
    char *label;
    json_t *choices; /* array of texts; NULL: no choices were asked for */
    bool skipped;    /* true: the line is no example */
} labelled_text;

/* Splits a record of the stream: its text becomes the text, its pair the second one. A fault of the line becomes the
 * record's problem, a fault of the header an error. Release the result in any case. */
deberta_status labelled_text_split(labelled_text *found, text_stream *stream, text_record *record, bool has_choices,
                                   deberta_error *err);
/* Returns a label of an object as a table would write it, to be freed; NULL if it is neither a text nor a number. */
char *labelled_text_of(const json_t *label);
void labelled_text_free(labelled_text *text);
