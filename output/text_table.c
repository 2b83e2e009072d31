/* Collects cells row by row; printing aligns columns or escapes for Markdown, CSV and LaTeX.
 *
 * SPDX-License-Identifier: MIT */
#include "output/text_table.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "output/latex_text.h"
#include "output/shown_text.h"

void text_table_add(text_table *table, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    table->cells = scope_grown(&table->memory, table->cells, &table->capacity, table->count, sizeof *table->cells);
    table->cells[table->count++] = scope_print(&table->memory, format, arguments);
    va_end(arguments);
}

static const char *cell_at(const text_table *table, size_t row, size_t column)
{
    size_t index = row * table->columns + column;
    return index < table->count ? table->cells[index] : "";
}

static size_t row_count(const text_table *table) { return (table->count + table->columns - 1) / table->columns; }

static bool looks_like_number(const char *text) { return strchr("+-.0123456789", *text) != NULL; }

/* Decides by the first row below the titles; an empty cell counts as a number. */
static bool is_right_aligned(const text_table *table, size_t column)
{
    return row_count(table) < 2 || looks_like_number(cell_at(table, 1, column));
}

/* Counts characters as print_clean writes them, not bytes. */
static size_t text_table_width_of(const char *text) { return clean_width(text, strlen(text)); }

static size_t column_width(const text_table *table, size_t column)
{
    size_t widest = 0;
    for (size_t row = 0; row < row_count(table); row++) {
        size_t width = text_table_width_of(cell_at(table, row, column));
        if (width > widest) widest = width;
    }
    return widest;
}

static void print_spaces(FILE *out, size_t count)
{
    while (count-- > 0) fputc(' ', out);
}

static void print_plain(const text_table *table, FILE *out)
{
    for (size_t row = 0; row < row_count(table); row++) {
        for (size_t column = 0; column < table->columns; column++) {
            const char *cell = cell_at(table, row, column);
            size_t padding = column_width(table, column) - text_table_width_of(cell);
            bool right = is_right_aligned(table, column), last = column + 1 == table->columns;
            if (column > 0) fputs("  ", out);
            if (right) print_spaces(out, padding);
            print_clean(out, cell, strlen(cell)); /* no line break, no command to a terminal */
            if (!right && !last) print_spaces(out, padding);
        }
        fputc('\n', out);
    }
}

static void print_markdown(const text_table *table, FILE *out)
{
    for (size_t row = 0; row < row_count(table); row++) {
        for (size_t column = 0; column < table->columns; column++) {
            fputs("| ", out);
            for (const char *c = cell_at(table, row, column); *c; c++) {
                if (*c == '|' || *c == '\\') fputc('\\', out);
                fputc(*c == '\n' || *c == '\r' ? ' ' : *c, out); /* a row is one line */
            }
            fputc(' ', out);
        }
        fputs("|\n", out);
        if (row > 0) continue;
        for (size_t column = 0; column < table->columns; column++)
            fputs(is_right_aligned(table, column) ? "|--:" : "|---", out);
        fputs("|\n", out);
    }
}

void print_csv_cell(const char *cell, FILE *out)
{
    if (!cell[strcspn(cell, ",\"\r\n")]) {
        fputs(cell, out);
        return;
    }
    fputc('"', out);
    for (; *cell; cell++) {
        if (*cell == '"') fputc('"', out);
        fputc(*cell, out);
    }
    fputc('"', out);
}

static void print_csv(const text_table *table, FILE *out)
{
    for (size_t row = 0; row < row_count(table); row++) {
        for (size_t column = 0; column < table->columns; column++) {
            if (column > 0) fputc(',', out);
            print_csv_cell(cell_at(table, row, column), out);
        }
        fputc('\n', out);
    }
}

/* Returns true if the first character that LaTeX prints is a star or a bracket: control characters become blanks. */
static bool begins_like_argument(const char *cell)
{
    while (*cell && (unsigned char)*cell <= ' ') cell++;
    return *cell == '*' || *cell == '[';
}

static void print_latex(const text_table *table, FILE *out)
{
    fputs("% \\usepackage{booktabs}\n\\begin{tabular}{", out);
    for (size_t column = 0; column < table->columns; column++) fputc(is_right_aligned(table, column) ? 'r' : 'l', out);
    fputs("}\n\\toprule\n", out);
    for (size_t row = 0; row < row_count(table); row++) {
        for (size_t column = 0; column < table->columns; column++) {
            const char *cell = cell_at(table, row, column);
            if (column > 0) fputs(" & ", out);
            /* \\ and \midrule before it would take a star or a bracket for an argument of theirs */
            if (column == 0 && begins_like_argument(cell)) fputs("{}", out);
            latex_text_print(cell, out);
        }
        fputs(row == 0 ? " \\\\\n\\midrule\n" : " \\\\\n", out);
    }
    fputs("\\bottomrule\n\\end{tabular}\n", out);
}

void text_table_print(const text_table *table, FILE *out, result_format format)
{
    switch (format) {
    case RESULT_JSON:
    case RESULT_TEXT: print_plain(table, out); break;
    case RESULT_MARKDOWN: print_markdown(table, out); break;
    case RESULT_CSV: print_csv(table, out); break;
    case RESULT_LATEX: print_latex(table, out); break;
    }
}

void text_table_free(text_table *table)
{
    scope_free(&table->memory);
    *table = (text_table){0};
}
