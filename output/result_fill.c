/* Rows, cells and sentences are added to a typed result here. SPDX-License-Identifier: MIT */
#include "output/result_inside.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "core/base/grow.h"

result *result_new(const char *schema)
{
    result *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->json = json_object();
    r->indent = 2;
    if (schema && json_object_set_new(r->json, "schema", json_string(schema)) != 0) r->failed = true;
    return r;
}

static void free_table(result_table *table)
{
    for (size_t c = 0; c < table->cell_count; c++) free(table->cells[c].text);
    for (size_t c = 0; table->own_columns && c < table->column_count; c++)
        free((char *)(uintptr_t)table->own_columns[c].name);
    free(table->own_columns);
    free(table->cells);
    free(table);
}

void result_free(result **place)
{
    result *r = *place;
    if (!r) return;
    for (size_t k = 0; k < r->part_count; k++) {
        result_table *table = r->parts[k].table;
        if (table) free_table(table);
        free(r->parts[k].line);
    }
    free(r->parts);
    json_decref(r->json);
    free(r);
    *place = NULL;
}

json_t *result_json(result *r) { return r ? r->json : NULL; }

void result_set(result *r, const char *name, json_t *value)
{
    if (json_object_set_new(result_json(r), name, value) != 0 && r) r->failed = true;
}

void result_set_indent(result *r, unsigned blanks)
{
    if (r) r->indent = blanks;
}

static result_part *add_part(result *r)
{
    result_part *parts = r ? grown(r->parts, &r->part_capacity, r->part_count + 1, sizeof *parts) : NULL;
    if (!parts) {
        if (r) r->failed = true;
        return NULL;
    }
    r->parts = parts;
    parts[r->part_count] = (result_part){0};
    return &parts[r->part_count++];
}

void result_say(result *r, const char *format, ...)
{
    result_part *part = add_part(r);
    if (!part) return;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&part->line, format, arguments) < 0) {
        part->line = NULL;
        r->failed = true;
    }
    va_end(arguments);
}

void result_say_more(result *r, const char *format, ...)
{
    char *more = NULL, *line = NULL;
    result_part *last = r && r->part_count ? &r->parts[r->part_count - 1] : NULL;
    if (!last || !last->line) return;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&more, format, arguments) < 0) more = NULL;
    va_end(arguments);
    if (!more || asprintf(&line, "%s%s", last->line, more) < 0) {
        r->failed = true;
    } else {
        free(last->line);
        last->line = line;
    }
    free(more);
}

result_table *result_add_table(result *r, const char *name, const char *title, const result_column *columns)
{
    result_part *part = add_part(r);
    result_table *table = part ? calloc(1, sizeof *table) : NULL;
    if (!table) {
        if (r) r->failed = true;
        return NULL;
    }
    *table = (result_table){.owner = r, .name = name, .title = title, .columns = columns};
    while (columns && columns[table->column_count].name) table->column_count++;
    part->table = table;
    return table;
}

void result_add_column(result_table *table, column_type type, const char *format, const char *name, ...)
{
    if (!table) return;
    result_column *columns =
        grown(table->own_columns, &table->column_capacity, table->column_count + 1, sizeof *columns);
    char *own_name = NULL;
    va_list arguments;
    va_start(arguments, name);
    if (!columns || vasprintf(&own_name, name, arguments) < 0) {
        table->owner->failed = true;
        own_name = NULL;
    }
    va_end(arguments);
    if (columns) table->columns = table->own_columns = columns;
    if (own_name) columns[table->column_count++] = (result_column){.name = own_name, .type = type, .format = format};
}

void result_set_shape(result_table *table, result_shape shape)
{
    if (table) table->shape = shape;
}

void result_leave_out(result_table *table, unsigned not_in)
{
    if (table) table->not_in = not_in;
}

void result_set_data(result *r, result_table *table, bool hidden)
{
    if (!r || !table) return;
    r->data = table;
    if (hidden) result_leave_out(table, NOT_IN_TABLES);
}

size_t result_table_rows(const result_table *table)
{
    return table && table->column_count ? table->cell_count / table->column_count : 0;
}

/* ----------------------------------------------------------------------------------------------------------- cells */

static void add_cell(result_table *table, result_cell cell)
{
    result_cell *cells =
        table ? grown(table->cells, &table->cell_capacity, table->cell_count + 1, sizeof *cells) : NULL;
    if (!cells) {
        if (table) table->owner->failed = true;
        free(cell.text);
        return;
    }
    table->cells = cells;
    cells[table->cell_count++] = cell;
}

void cell_text(result_table *table, const char *format, ...)
{
    result_cell cell = {.known = true};
    va_list arguments;
    va_start(arguments, format);
    const int length = vasprintf(&cell.text, format, arguments);
    va_end(arguments);
    if (length < 0) {
        cell = (result_cell){0};
        if (table) table->owner->failed = true;
    }
    add_cell(table, cell);
}

void cell_integer(result_table *table, int64_t value)
{
    add_cell(table, (result_cell){.known = true, .integer = value, .real = (double)value});
}

void cell_real(result_table *table, double value)
{
    const bool known = value - value == 0;
    add_cell(table, (result_cell){.known = known, .integer = known ? (int64_t)value : 0, .real = value});
}

void cell_flag(result_table *table, bool value) { cell_integer(table, value); }

void cell_none(result_table *table) { add_cell(table, (result_cell){0}); }

void cell_positive(result_table *table, double value) { cell_real(table, value > 0 ? value : NAN); }
