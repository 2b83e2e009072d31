/* Writes typed results, with one writer for each format. SPDX-License-Identifier: MIT */
#include "output/result_inside.h"

#include <inttypes.h>
#include <string.h>

#include "output/json_text.h"
#include "output/text_table.h"

/* ---------------------------------------------------------------------------------------------------------- tables */

static void add_cell(text_table *to, const result_column *column, const result_cell *cell)
{
/* formats come from the tables of this program, not from users */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (!cell->known)
        text_table_add(to, "%s", "");
    else if (cell->text)
        text_table_add(to, "%s", cell->text);
    else if (column->type == COLUMN_FLAG)
        text_table_add(to, "%s", cell->integer ? "yes" : "no");
    else if (column->type == COLUMN_INTEGER)
        text_table_add(to, column->format ? column->format : "%" PRId64, cell->integer);
    else
        text_table_add(to, column->format ? column->format : "%g", cell->real);
#pragma GCC diagnostic pop
}

static void print_table(const result_table *table, FILE *out, result_format format)
{
    size_t shown = 0;
    for (size_t c = 0; c < table->column_count; c++) shown += !(table->columns[c].not_in & 1u << format);
    text_table cells = {.columns = shown};
    for (size_t c = 0; c < table->column_count; c++) {
        const result_column *column = &table->columns[c];
        if (column->not_in & 1u << format) continue;
        text_table_add(&cells, "%s",
                       column->title && (format != RESULT_CSV || column->not_in & CSV_SAYS_TITLE) ? column->title
                                                                                                  : column->name);
    }
    for (size_t k = 0; k < table->cell_count; k++) {
        const result_column *column = &table->columns[k % table->column_count];
        if (!(column->not_in & 1u << format)) add_cell(&cells, column, &table->cells[k]);
    }
    text_table_print(&cells, out, format);
    text_table_free(&cells);
}

/* Prints sentences and tables in order, with an empty line between a table and its neighbours. */
static void print_parts(const result *r, FILE *out, result_format format)
{
    bool after_table = false, first = true;
    for (size_t k = 0; k < r->part_count; k++) {
        const result_part *part = &r->parts[k];
        if (part->table ? part->table->not_in & 1u << format : format == RESULT_LATEX) continue;
        if (!first && (after_table || part->table)) fputc('\n', out);
        if (part->table && part->table->title && format != RESULT_LATEX) fprintf(out, "%s\n\n", part->table->title);
        if (part->table)
            print_table(part->table, out, format);
        else
            fprintf(out, "%s\n", part->line);
        after_table = part->table != NULL;
        first = false;
    }
}

/* ------------------------------------------------------------------------------------------------------------ JSON */

static json_t *json_of_cell(const result_column *column, const result_cell *cell)
{
    if (!cell->known) return json_null();
    if (cell->text) return json_clean_text(cell->text);
    switch (column->type) {
    case COLUMN_FLAG: return json_boolean(cell->integer);
    case COLUMN_REAL: return json_real(cell->real);
    default: return json_integer(cell->integer);
    }
}

static json_t *json_of_row(const result_table *table, size_t row)
{
    json_t *object = json_object();
    for (size_t c = 0; c < table->column_count; c++) {
        const result_column *column = &table->columns[c];
        if (!(column->not_in & NOT_IN_JSON))
            json_object_set_new(object, column->name,
                                json_of_cell(column, &table->cells[row * table->column_count + c]));
    }
    return object;
}

static json_t *json_of_table(const result_table *table)
{
    json_t *rows = json_array();
    for (size_t row = 0; row < result_table_rows(table); row++) json_array_append_new(rows, json_of_row(table, row));
    return rows;
}

/* Sets the member of a table; "per_token.positions" is the member "positions" of the member "per_token". */
static int set_table(json_t *whole, const result_table *table)
{
    const char *point = strchr(table->name, '.');
    char owner_name[64];
    snprintf(owner_name, sizeof owner_name, "%.*s", (int)(point ? point - table->name : 0), table->name);
    json_t *owner = point ? json_object_get(whole, owner_name) : whole;
    return json_object_set_new(owner, point ? point + 1 : table->name, json_of_table(table));
}

static void print_json(const result *r, FILE *out)
{
    json_t *whole = json_deep_copy(r->json);
    bool fits = whole != NULL;
    for (size_t k = 0; k < r->part_count && fits; k++) {
        const result_table *table = r->parts[k].table;
        if (table && table->name) fits = set_table(whole, table) == 0;
    }
    fits = fits && json_dumpf(whole, out, JSON_INDENT(r->indent) | JSON_REAL_PRECISION(9)) == 0;
    if (!fits && !ferror(out)) memory_short();
    json_decref(whole);
    fputc('\n', out);
}

/* Returns the table of result_set_data, or the first. */
static const result_table *data_of(const result *r)
{
    if (r->data) return r->data;
    for (size_t k = 0; k < r->part_count; k++)
        if (r->parts[k].table) return r->parts[k].table;
    return NULL;
}

void result_write(const result *r, FILE *out, result_format format)
{
    const result_table *data = data_of(r);
    if (format == RESULT_JSON)
        print_json(r, out);
    else if (format != RESULT_CSV)
        print_parts(r, out, format);
    else if (data)
        print_table(data, out, format);
}
