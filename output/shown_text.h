/* Puts pieces of text into JSON and onto a terminal.
 *
 * Texts come from anywhere, so broken UTF-8 becomes U+FFFD, and printed text holds no control characters.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "include/deberta_unstable.h"
#include "output/json_text.h"

json_t *json_span(deberta_span span); /* Returns [begin, end]. */

void print_clean(FILE *out, const char *text, size_t bytes);
/* Returns the number of characters that print_clean writes. */
size_t clean_width(const char *text, size_t bytes);
/* Prints "  0.913  name" without a line break. */
void print_probability(FILE *out, double probability, const char *name);
/* Prints the text around a span, which is put between guillemets; the ends of a long text are left out. */
void print_marked(FILE *out, const char *text, size_t bytes, deberta_span place);
/* Prints a line with the piece of the text at a place and the characters it covers. */
void print_place(FILE *out, const char *text, const deberta_place *place);
/* Prints the whole text with guillemets around spans [count] in any order; the spans are sorted. */
void print_all_marked(FILE *out, const char *text, size_t bytes, deberta_span *spans, size_t count);
