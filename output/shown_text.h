/* Puts pieces of text into JSON and onto a terminal.
 *
 * Texts come from anywhere: broken UTF-8 becomes U+FFFD, and what is printed holds no control characters.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "include/deberta_unstable.h"
#include "output/json_text.h"

json_t *json_span(deberta_span span); /* [begin, end] */

void print_clean(FILE *out, const char *text, size_t bytes);
/* The characters that print_clean writes. */
size_t clean_width(const char *text, size_t bytes);
/* "  0.913  name" without a line break. */
void print_probability(FILE *out, double probability, const char *name);
/* Prints the text around a place, which it puts between guillemets; the ends of a long text are left out. */
void print_marked(FILE *out, const char *text, size_t bytes, deberta_span place);
/* A line with the piece of the text at a place and the characters it covers. */
void print_place(FILE *out, const char *text, const deberta_place *place);
/* The whole text, with guillemets around spans [count] in any order, which are sorted. */
void print_all_marked(FILE *out, const char *text, size_t bytes, deberta_span *spans, size_t count);
