/* Defines the members of a result. Private to result_fill.c and result_write.c. SPDX-License-Identifier: MIT */
#pragma once

#include "output/result.h"
#include "output/scope.h"

typedef struct result_cell {
    bool known;
    char *text; /* NULL: the cell is a number */
    int64_t integer;
    double real;
} result_cell;

struct result_table {
    result *owner;
    const char *name, *title;
    const result_column *columns; /* [column_count] */
    size_t column_count;
    result_column *own_columns; /* columns made by result_add_column; NULL: the caller's */
    size_t column_capacity;
    unsigned not_in; /* set of NOT_IN_ bits */
    result_cell *cells;
    size_t cell_count, cell_capacity;
};

typedef struct result_part {
    char *line; /* line of text; NULL: the part is a table */
    result_table *table;
} result_part;

struct result {
    scope memory; /* owner of all parts */
    json_t *json;
    unsigned indent; /* blanks of the JSON's indentation */
    result_part *parts;
    size_t part_count, part_capacity;
    result_table *data;
};
