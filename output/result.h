/* Holds the findings of a command once, as typed tables, fields and sentences, and writes them as text, Markdown, CSV,
 * LaTeX and JSON. Commands only fill; this code decides how numbers are rounded, quoted and aligned.
 *
 *     result *r = result_new("deberta-example/1");
 *     result_say(r, "error by layer of %s", name);                          // text and Markdown
 *     json_object_set_new(result_json(r), "model", json_clean_text(name));  // JSON
 *     static const result_column columns[] = {{"layer", NULL, COLUMN_INTEGER, NULL, 0},
 *                                             {"worst", "worst ULP", COLUMN_REAL, "%.3g", 0}, {NULL}};
 *     result_table *t = result_add_table(r, "by_layer", NULL, columns);     // all formats
 *     for (...) cell_integer(t, l), cell_real(t, worst[l]);
 *     result_write(r, out, RESULT_MARKDOWN);
 *
 * Text and Markdown show sentences and tables in the order in which they were added, CSV the table that
 * result_set_data names (or the only one), LaTeX the tables. JSON has real numbers at full precision, whatever a
 * column's format shows.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "output/text_table.h"

typedef enum column_type {
    COLUMN_TEXT,
    COLUMN_INTEGER,
    COLUMN_REAL,
    COLUMN_FLAG /* yes, no; true and false in JSON */
} column_type;

/* Formats that leave a column or a table out. */
enum {
    NOT_IN_TEXT = 1 << RESULT_TEXT,
    NOT_IN_CSV = 1 << RESULT_CSV,
    NOT_IN_JSON = 1 << RESULT_JSON,
    NOT_IN_LATEX = 1 << RESULT_LATEX,
    NOT_IN_TABLES = 1 << RESULT_TEXT | 1 << RESULT_MARKDOWN | 1 << RESULT_LATEX,
    CSV_SAYS_TITLE = 1 << 8 /* of a column: CSV uses its title instead of its name */
};

typedef struct result_column {
    const char *name;  /* in JSON and CSV; NULL ends a list */
    const char *title; /* title above the column; NULL: the name */
    column_type type;
    /* printf format of one number of COLUMN_REAL ("%.3f") or COLUMN_INTEGER ("%+" PRId64); NULL: "%g", "%" PRId64 */
    const char *format;
    unsigned not_in; /* set of NOT_IN_* and CSV_SAYS_TITLE */
} result_column;

typedef struct result result;
typedef struct result_table result_table;

/* Makes a result. schema: the JSON member "schema", or NULL. */
result *result_new(const char *schema);
void result_free(result **r);

/* Returns the JSON object, for members that are not tables. The result owns it. */
json_t *result_json(result *r);
/* Sets one member of the JSON; takes the value. */
void result_set(result *r, const char *name, json_t *value);
/* Sets the blanks by which JSON is indented; 2 by default, less for long lists of numbers. */
void result_set_indent(result *r, unsigned blanks);
/* Add a line of text (without its line break), and continue the last line. */
void result_say(result *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void result_say_more(result *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds a table; in JSON an array of its rows, [{"layer": 0, "worst": 1.5}, ...]. name: of the JSON member, or of one
 * in an object that is already set: "per_token.positions"; NULL: not in JSON. title: a line above it, or NULL.
 * columns must outlive the result; NULL: result_add_column makes them. */
result_table *result_add_table(result *r, const char *name, const char *title, const result_column *columns);
/* Adds one more column to a table that was added with NULL for columns, before its first cell; the name is copied. */
void result_add_column(result_table *table, column_type type, const char *format, const char *name, ...)
    __attribute__((format(printf, 4, 5)));
void result_leave_out(result_table *table, unsigned not_in); /* not_in: set of NOT_IN_ bits */
/* Sets the table that CSV shows; hidden: text, Markdown and LaTeX leave it out. */
void result_set_data(result *r, result_table *table, bool hidden);

/* Add cells from left to right, row by row. A cell of another type than its column's is converted as C does. With
 * NULL as the table, cells, columns and settings are ignored. */
void cell_text(result_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cell_integer(result_table *table, int64_t value);
void cell_real(result_table *table, double value); /* a number that is not finite: an empty cell, null in JSON */
void cell_flag(result_table *table, bool value);
void cell_none(result_table *table);                   /* unknown: an empty cell, null in JSON */
void cell_positive(result_table *table, double value); /* a value that is unknown if it is 0 */
size_t result_table_rows(const result_table *table);

/* Writes the result in one format; closing the file reports write errors. */
void result_write(const result *r, FILE *out, result_format format);
