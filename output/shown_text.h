/* Pieces of text into JSON and onto a terminal.
 *
 * Texts come from anywhere: broken UTF-8 becomes U+FFFD, and what is printed holds no control characters.
 *
 * SPDX-License-Identifier: MIT */
#ifndef OUTPUT_SHOWN_TEXT_H
#define OUTPUT_SHOWN_TEXT_H

#include <jansson.h>
#include <stdio.h>

#include "include/deberta.h"
#include "output/json_text.h"

json_t *json_span(deberta_span span);     /* [begin, end] */
deberta_span span_of(const json_t *item); /* back from its "bytes" */

void print_clean(FILE *out, const char *text, size_t bytes);
/* "  0.913  name", a line for each object in the array: its "probability" and the text under that key. */
void print_probabilities(FILE *out, const json_t *items, const char *key);
/* The characters that print_clean writes. */
size_t clean_width(const char *text, size_t bytes);
/* The text around a place, which stands between guillemets; the ends are left out where the text is long. */
void print_marked(FILE *out, const char *text, size_t bytes, deberta_span place);
/* A line with the item's piece of the text and the characters it covers. */
void print_place(FILE *out, const char *text, const json_t *item);
/* The whole text, with guillemets around the "bytes" of every item in an array of objects that holds "bytes", in any
 * order. */
void print_all_marked(FILE *out, const char *text, size_t bytes, const json_t *items);

#endif
