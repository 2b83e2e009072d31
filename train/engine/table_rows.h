/* Gradients of rows that were looked up: for every row of a table the sum over the tokens that read it, in the order of
 * their parts, a chain of additions in each part, the parts in the tree of core/kernels.h.
 *
 * SPDX-License-Identifier: MIT */
#ifndef TRAIN_TABLE_ROWS_H
#define TRAIN_TABLE_ROWS_H

#include "train/engine/step_state.h"

enum { NO_ROW = -1 };

/* Where the gradient of a table is summed up. */
typedef struct table_sum {
    float *sum; /* [rows of the table][width] */
    size_t width;
} table_sum;

/* Adds to table->sum. rows: [count][ld], in parts by bounds; ids: which row of the table each belongs to, or
 * NO_ROW. Overwrites `order` of the memory. */
void table_rows_add(const step_state *step, const table_sum *table, const int32_t *ids, const float *rows, size_t ld,
                    size_t count, const size_t *bounds);

#endif
