/* Prints a table of short texts with aligned columns, as Markdown, CSV or a LaTeX tabular (booktabs).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "output/scope.h"

typedef enum result_format { RESULT_TEXT, RESULT_MARKDOWN, RESULT_CSV, RESULT_JSON, RESULT_LATEX } result_format;

typedef struct text_table {
    char **cells; /* cells row by row; the first row holds the titles */
    size_t columns, count, capacity;
    scope memory;
} text_table;

/* Adds a cell, from left to right, row by row; the first `columns` of them are the titles. A table begins as
 * {.columns = N}. */
void text_table_add(text_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints in every format but JSON. Numbers, and cells that look like numbers, are aligned right. */
void text_table_print(const text_table *table, FILE *out, result_format format);
void text_table_free(text_table *table);
/* Prints one cell of a CSV file that is too long for a table: by RFC 4180, with quotes around a comma, a quote or a
 * line end. */
void print_csv_cell(const char *cell, FILE *out);
