/* A CSV file of losses is read and turned: its columns, which are models, become arrays.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/loss_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/byte_order_mark.h"
#include "core/io/mapped_file.h"

static size_t count_cells(const char *line)
{
    size_t count = 1;
    for (; *line; line++) count += *line == ',';
    return count;
}

static deberta_status read_names(loss_table *table, char *line, deberta_error *err)
{
    table->columns = count_cells(line);
    table->names = calloc(table->columns, sizeof *table->names);
    if (!table->names) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for %zu columns", table->columns);
    for (size_t k = 0; k < table->columns; k++)
        if (!(table->names[k] = strdup(strsep(&line, ","))))
            DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for %zu columns", table->columns);
    return DEBERTA_OK;
}

/* Rows of the file become columns: `stride` texts lie between two of them. */
static deberta_status read_losses(loss_table *table, char *line, size_t stride, const char *path, size_t line_number,
                                  deberta_error *err)
{
    if (count_cells(line) != table->columns)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: line %zu: expected %zu losses, found %zu", QUOTE(path), line_number,
                     table->columns, count_cells(line));
    for (size_t k = 0; k < table->columns; k++) {
        const char *cell = strsep(&line, ",");
        char *end;
        const double loss = strtod(cell, &end);
        if (end == cell || *end || !isfinite(loss))
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: line %zu: expected a number, found '%s'", QUOTE(path), line_number,
                         QUOTE(cell));
        table->losses[k * stride + table->texts] = loss;
    }
    table->texts++;
    return DEBERTA_OK;
}

static deberta_status read_lines(loss_table *table, char *text, const char *path, deberta_error *err)
{
    size_t lines = 1, number = 0;
    for (const char *c = text; *c; c++) lines += *c == '\n';
    for (char *line; (line = strsep(&text, "\n"));) {
        number++;
        if (!*line || *line == '#') continue;
        if (table->names) {
            DEBERTA_TRY(read_losses(table, line, lines, path, number, err));
            continue;
        }
        DEBERTA_TRY(read_names(table, line, err));
        size_t cells;
        if (size_multiply(lines, table->columns, &cells)) table->losses = calloc(cells, sizeof *table->losses);
        if (!table->losses) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for the losses of %s", QUOTE(path));
    }
    if (!table->texts) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: expected a table of losses, found no row", QUOTE(path));
    for (size_t k = 1; k < table->columns; k++)
        memmove(table->losses + k * table->texts, table->losses + k * lines, table->texts * sizeof *table->losses);
    return DEBERTA_OK;
}

/* The file as a string. A NUL would end it before its time, and the texts after it would be missing in silence. */
static deberta_status read_text(char **text, const mapped_file *file, const char *path, deberta_error *err)
{
    const uint8_t *nul = memchr(file->bytes, 0, file->size_bytes);
    size_t line = 1;
    for (const uint8_t *c = file->bytes; nul && c < nul; c++) line += *c == '\n';
    if (nul)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: line %zu: expected a number, found a NUL byte", QUOTE(path), line);
    *text = strndup((const char *)file->bytes, file->size_bytes);
    if (!*text) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for %s", QUOTE(path));
    return DEBERTA_OK;
}

deberta_status loss_table_read(loss_table *table, const char *path, deberta_error *err)
{
    *table = (loss_table){0};
    mapped_file file;
    char *text = NULL;
    DEBERTA_TRY(mapped_file_open(&file, path, err));
    deberta_status status = read_text(&text, &file, path, err);
    mapped_file_close(&file);
    if (status == DEBERTA_OK) status = read_lines(table, text + byte_order_mark(text, strlen(text)), path, err);
    free(text);
    if (status != DEBERTA_OK) loss_table_free(table);
    return status;
}

void loss_table_free(loss_table *table)
{
    for (size_t k = 0; table->names && k < table->columns; k++) free(table->names[k]);
    free(table->names);
    free(table->losses);
    *table = (loss_table){0};
}

static bool begins_with(const char *name, const char *cell, size_t length)
{
    return strlen(cell) == length && strncmp(name, cell, length) == 0;
}

/* The cell of a column, made on the first one. NULL without memory. */
static loss_cell *cell_of(loss_cells *cells, const loss_table *table, const char *name)
{
    const size_t length = strcspn(name, "#");
    for (size_t k = 0; k < cells->count; k++)
        if (begins_with(name, cells->cells[k].name, length)) return &cells->cells[k];
    loss_cell *cell = &cells->cells[cells->count];
    cell->name = strndup(name, length);
    cell->losses = calloc(table->texts, sizeof *cell->losses);
    cells->count++;
    return cell->name && cell->losses ? cell : NULL;
}

static void add_seed(loss_cell *cell, const double *losses, size_t texts)
{
    double mean = 0;
    for (size_t k = 0; k < texts; k++) {
        cell->losses[k] += (losses[k] - cell->losses[k]) / (double)(cell->seeds + 1);
        mean += losses[k] / (double)texts;
    }
    if (!cell->seeds || mean < cell->lowest) cell->lowest = mean;
    if (!cell->seeds || mean > cell->highest) cell->highest = mean;
    cell->seeds++;
}

deberta_status loss_cells_make(loss_cells *cells, const loss_table *table, deberta_error *err)
{
    *cells = (loss_cells){.cells = calloc(table->columns, sizeof *cells->cells)};
    for (size_t k = 0; k < table->columns; k++) {
        loss_cell *cell = cells->cells ? cell_of(cells, table, table->names[k]) : NULL;
        if (cell) {
            add_seed(cell, table->losses + k * table->texts, table->texts);
            continue;
        }
        loss_cells_free(cells);
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for %zu columns of losses", table->columns);
    }
    return DEBERTA_OK;
}

void loss_cells_free(loss_cells *cells)
{
    for (size_t k = 0; k < cells->count; k++) {
        free(cells->cells[k].name);
        free(cells->cells[k].losses);
    }
    free(cells->cells);
    *cells = (loss_cells){0};
}

const loss_cell *loss_cells_find(const loss_cells *cells, const char *name)
{
    for (size_t k = 0; k < cells->count; k++)
        if (strcmp(cells->cells[k].name, name) == 0) return &cells->cells[k];
    return NULL;
}
