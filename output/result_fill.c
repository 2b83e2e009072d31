/* Adds rows, cells and sentences to a typed result, in memory of its scope. SPDX-License-Identifier: MIT */
#include "output/result_inside.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "output/json_text.h"

result *result_new(const char *schema)
{
    result *r = memory_take(1, sizeof *r);
    r->json = json_object();
    r->indent = 2;
    if (schema) result_set(r, "schema", json_string(schema));
    return r;
}

void result_free(result **place)
{
    result *r = *place;
    if (!r) return;
    scope_free(&r->memory);
    json_decref(r->json);
    free(r);
    *place = NULL;
}

json_t *result_json(result *r) { return r->json; }

void result_set(result *r, const char *name, json_t *value) { json_put(r->json, name, value); }

void result_set_indent(result *r, unsigned blanks) { r->indent = blanks; }

static result_part *add_part(result *r)
{
    r->parts = scope_grown(&r->memory, r->parts, &r->part_capacity, r->part_count, sizeof *r->parts);
    r->parts[r->part_count] = (result_part){0};
    return &r->parts[r->part_count++];
}

void result_say(result *r, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_part(r)->line = scope_print(&r->memory, format, arguments);
    va_end(arguments);
}

void result_say_more(result *r, const char *format, ...)
{
    result_part *last = r->part_count ? &r->parts[r->part_count - 1] : NULL;
    if (!last || !last->line) return;
    va_list arguments;
    va_start(arguments, format);
    const char *more = scope_print(&r->memory, format, arguments);
    va_end(arguments);
    last->line = scope_text(&r->memory, "%s%s", last->line, more);
}

result_table *result_add_table(result *r, const char *name, const char *title, const result_column *columns)
{
    result_table *table = scope_take(&r->memory, 1, sizeof *table);
    *table = (result_table){.owner = r, .name = name, .title = title, .columns = columns};
    while (columns && columns[table->column_count].name) table->column_count++;
    add_part(r)->table = table;
    return table;
}

void result_add_column(result_table *table, column_type type, const char *format, const char *name, ...)
{
    if (!table) return;
    scope *memory = &table->owner->memory;
    va_list arguments;
    table->columns = table->own_columns = scope_grown(memory, table->own_columns, &table->column_capacity,
                                                      table->column_count, sizeof *table->own_columns);
    va_start(arguments, name);
    table->own_columns[table->column_count++] =
        (result_column){.name = scope_print(memory, name, arguments), .type = type, .format = format};
    va_end(arguments);
}

void result_leave_out(result_table *table, unsigned not_in)
{
    if (table) table->not_in = not_in;
}

void result_set_data(result *r, result_table *table, bool hidden)
{
    if (table) r->data = table;
    if (hidden) result_leave_out(table, NOT_IN_TABLES);
}

size_t result_table_rows(const result_table *table)
{
    return table && table->column_count ? table->cell_count / table->column_count : 0;
}

/* ----------------------------------------------------------------------------------------------------------- cells */

static void add_cell(result_table *table, result_cell cell)
{
    if (!table) return;
    table->cells = scope_grown(&table->owner->memory, table->cells, &table->cell_capacity, table->cell_count,
                               sizeof *table->cells);
    table->cells[table->cell_count++] = cell;
}

void cell_text(result_table *table, const char *format, ...)
{
    if (!table) return;
    va_list arguments;
    va_start(arguments, format);
    add_cell(table, (result_cell){.known = true, .text = scope_print(&table->owner->memory, format, arguments)});
    va_end(arguments);
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
