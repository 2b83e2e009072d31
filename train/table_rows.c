/* SPDX-License-Identifier: MIT */
#include "train/table_rows.h"

#include <stdlib.h>

#include "core/base/integers.h"

enum { COLUMNS = 64 };

static int compare_keys(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Keys are id 2^32 + row: sorted, the rows of an id follow each other in order. */
static size_t sort_rows(uint64_t *order, const int32_t *ids, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (ids[i] != NO_ROW) order[kept++] = (uint64_t)(uint32_t)ids[i] << 32 | i;
    qsort(order, kept, sizeof *order, compare_keys);
    return kept;
}

typedef struct row_loop {
    const learner *learner;
    float *to;
    size_t width;
    const uint64_t *order;
    const float *rows;
    size_t ld, kept;
    const size_t *bounds;
} row_loop;

typedef struct row_tree {
    float sums[MAX_ROW_TREE][COLUMNS];
    bool there[MAX_ROW_TREE];
} row_tree;

static void tree_add(row_tree *tree, size_t part, float *sum, bool is_there)
{
    size_t level = 0;
    for (; part >> level & 1; level++) {
        if (!tree->there[level]) continue;
        for (size_t c = 0; c < COLUMNS; c++) sum[c] = is_there ? tree->sums[level][c] + sum[c] : tree->sums[level][c];
        is_there = true;
    }
    for (size_t c = 0; is_there && c < COLUMNS; c++) tree->sums[level][c] = sum[c];
    tree->there[level] = is_there;
}

/* `columns` columns from `column` on of one id, whose rows are order[first ... end). */
static void add_id(const row_loop *loop, size_t first, size_t end, size_t column, size_t columns)
{
    const size_t parts = loop->learner->group.count;
    float *to = loop->to + (size_t)(loop->order[first] >> 32) * loop->width + column;
    row_tree tree = {.there = {false}};
    size_t at = first, top = tree_levels(parts);
    for (size_t part = 0; part < parts; part++) {
        float sum[COLUMNS] = {0};
        const size_t before = at;
        for (; at < end && (uint32_t)loop->order[at] < loop->bounds[part + 1]; at++) {
            const float *row = loop->rows + (uint32_t)loop->order[at] * loop->ld + column;
            for (size_t c = 0; c < columns; c++) sum[c] = sum[c] + row[c];
        }
        tree_add(&tree, part, sum, at > before);
    }
    for (size_t c = 0; tree.there[top] && c < columns; c++) to[c] = to[c] + tree.sums[top][c];
}

/* All ids, a few columns. */
static void column_task(void *context, size_t task, size_t worker)
{
    const row_loop *loop = context;
    const size_t column = task * COLUMNS, columns = minimum(COLUMNS, loop->width - column);
    (void)worker;
    for (size_t first = 0, end; first < loop->kept; first = end) {
        for (end = first + 1; end < loop->kept && loop->order[end] >> 32 == loop->order[first] >> 32;) end++;
        add_id(loop, first, end, column, columns);
    }
}

void table_rows_add(learner *l, const table_sum *table, const int32_t *ids, const float *rows, size_t ld, size_t count,
                    const size_t *bounds)
{
    row_loop loop = {.learner = l,
                     .to = table->sum,
                     .width = table->width,
                     .order = l->order,
                     .rows = rows,
                     .ld = ld,
                     .bounds = bounds};
    loop.kept = sort_rows(l->order, ids, count);
    parallel_for(l->session->executor, ceiling_divide(table->width, COLUMNS), column_task, &loop);
}
