/* Losses of several models on the same texts: a row a text, a column a model, as tools/train_grid.py writes them.
 *
 * SPDX-License-Identifier: MIT */
#ifndef ANALYSIS_LOSS_TABLE_H
#define ANALYSIS_LOSS_TABLE_H

#include "core/base/status.h"

typedef struct loss_table {
    size_t texts, columns;
    char **names;   /* [columns] */
    double *losses; /* [columns][texts] */
} loss_table;

/* Comma-separated: lines that begin with # are ignored, the first other one names the columns, every further one
 * holds as many finite numbers. DEBERTA_E_FORMAT with the line of what is wrong. */
deberta_status loss_table_read(loss_table *table, const char *path, deberta_error *err);
void loss_table_free(loss_table *table);

/* Columns CELL#1, CELL#2 ... are seeds of one cell: the same settings, other random numbers. */
typedef struct loss_cell {
    char *name; /* up to the #, or all of it */
    size_t seeds;
    double *losses;         /* [texts] mean over the seeds */
    double lowest, highest; /* means over the texts of the best and the worst seed */
} loss_cell;

typedef struct loss_cells {
    size_t count;
    loss_cell *cells; /* in the order of their first column */
} loss_cells;

deberta_status loss_cells_make(loss_cells *cells, const loss_table *table, deberta_error *err);
void loss_cells_free(loss_cells *cells);
const loss_cell *loss_cells_find(const loss_cells *cells, const char *name); /* or NULL */

#endif
