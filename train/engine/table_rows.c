/* Looked-up rows are sorted by id, and each id's rows are summed in the order of the parts.
 *
 * SPDX-License-Identifier: MIT */
#include "train/engine/table_rows.h"

#include <stdlib.h>

#include "core/base/integers.h"

enum { COLUMNS = 64, TASK_ROWS = 256 };

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
    const step_state *step;
    float *to;
    size_t width, column_tasks;
    const uint64_t *order;
    const float *rows;
    size_t ld, kept;
    const size_t *bounds;
} row_loop;

static uint32_t id_at(const row_loop *loop, size_t at) { return (uint32_t)(loop->order[at] >> 32); }

/* Some columns of what is looked up by order[first ... end). */
typedef struct row_sum {
    const row_loop *loop;
    size_t column, columns;
} row_sum;

static void add_chain(const row_sum *of, size_t first, size_t end, float sum[COLUMNS])
{
    for (size_t c = 0; c < of->columns; c++) sum[c] = 0;
    for (size_t at = first; at < end; at++) {
        const float *row = of->loop->rows + (uint32_t)of->loop->order[at] * of->loop->ld + of->column;
        for (size_t c = 0; c < of->columns; c++) sum[c] = sum[c] + row[c];
    }
}

/* The sum over parts [part, part + count), which have all these rows: halves are added, of which both have some. */
static void add_tree(const row_sum *of, size_t first, size_t end, size_t part, size_t count, float sum[COLUMNS])
{
    const row_loop *loop = of->loop;
    while (count > 1) {
        size_t middle = first;
        count /= 2;
        const size_t border = loop->bounds[minimum(part + count, loop->step->group.count)];
        while (middle < end && (uint32_t)loop->order[middle] < border) middle++;
        if (middle == first) part += count;
        if (middle == first || middle == end) continue;
        float other[COLUMNS];
        add_tree(of, first, middle, part, count, sum);
        add_tree(of, middle, end, part + count, count, other);
        for (size_t c = 0; c < of->columns; c++) sum[c] = sum[c] + other[c];
        return;
    }
    add_chain(of, first, end, sum);
}

/* A few columns of the ids that begin among some rows. */
static void id_task(void *context, size_t task, size_t worker)
{
    const row_loop *loop = context;
    const size_t column = task % loop->column_tasks * COLUMNS, begin = task / loop->column_tasks * TASK_ROWS;
    const row_sum some = {loop, column, minimum(COLUMNS, loop->width - column)};
    const size_t stop = minimum(begin + TASK_ROWS, loop->kept);
    const size_t parts = (size_t)1 << tree_levels(loop->step->group.count);
    size_t first = begin;
    (void)worker;
    while (begin > 0 && first < stop && id_at(loop, first) == id_at(loop, begin - 1)) first++;
    for (size_t end; first < stop; first = end) {
        float sum[COLUMNS], *to = loop->to + id_at(loop, first) * loop->width + column;
        for (end = first + 1; end < loop->kept && id_at(loop, end) == id_at(loop, first);) end++;
        add_tree(&some, first, end, 0, parts, sum);
        for (size_t c = 0; c < some.columns; c++) to[c] = to[c] + sum[c];
    }
}

void table_rows_add(const step_state *step, const table_sum *table, const int32_t *ids, const float *rows, size_t ld,
                    size_t count, const size_t *bounds)
{
    step_memory *m = step->memory;
    row_loop loop = {.step = step,
                     .to = table->sum,
                     .width = table->width,
                     .column_tasks = ceiling_divide(table->width, COLUMNS),
                     .order = m->order,
                     .rows = rows,
                     .ld = ld,
                     .bounds = bounds};
    loop.kept = sort_rows(m->order, ids, count);
    parallel_for(step->learner->session->executor, ceiling_divide(loop.kept, TASK_ROWS) * loop.column_tasks, id_task,
                 &loop);
}
