/* Rows are taken in groups, so that a product covers only the places that a group touches.
 *
 * SPDX-License-Identifier: MIT */
#include "train/engine/position_strips.h"

#include <string.h>

enum { ROWS_AT_ONCE = 32 };

/* Neighbouring rows, and the columns that are not 0 in all of them. Places move on with the rows, so that few rows
 * touch far fewer than all do: of 128 rows and 128 others, 159 of 255. */
typedef struct row_group {
    size_t first, count, column, columns;
} row_group;

/* The group that begins with a row. */
static row_group group_from(const position_strips *s, size_t first)
{
    if (s->has_pieces || !s->learner->session->positions.monotone) return (row_group){0, s->rows, 0, s->places};
    const size_t count = minimum(ROWS_AT_ONCE, s->rows - first);
    const size_t low = (size_t)s->place_of[1 - (ptrdiff_t)(first + count)];
    const size_t high = (size_t)s->place_of[(ptrdiff_t)s->others - 1 - (ptrdiff_t)first];
    return (row_group){first, count, low - s->first, high - low + 1};
}

void position_strips_clear(const position_strips *s)
{
    const size_t ld = s->learner->fold_stride;
    for (size_t row = 0; row < s->rows;) {
        const row_group group = group_from(s, row);
        for (row = group.first; row < group.first + group.count; row++)
            memset(s->strips + row * ld + group.column, 0, group.columns * sizeof(float));
    }
}

static void multiply_group(const position_strips *s, const strip_products *p, const row_group *group)
{
    const learner *l = s->learner;
    const size_t ld = l->fold_stride, dp = l->model->padded_head;
    const float *from = s->strips + group->first * ld + group->column;
    const gemm_task rows = {
        .rows = group->count,
        .depth = group->columns,
        .panels = l->model->head_panels,
        .a = from,
        .lda = ld,
        .b = p->table + group->column * PANEL,
        .b_panel_stride = l->model->relative_rows * PANEL,
        .c = p->d_rows + group->first * p->ld_rows,
        .ldc = p->ld_rows,
        .c_panel_stride = PANEL,
        .accumulate = true,
    };
    const gemm_tn_task table = {
        .columns = group->columns,
        .panels = l->model->head_panels,
        .a = from,
        .lda = ld,
        .b = p->vectors + group->first * dp,
        .ldb = dp,
        .b_panel_stride = PANEL,
        .c = p->d_table + group->column * dp,
        .ldc = dp,
        .c_panel_stride = PANEL,
        .rows = group->count,
        .accumulate = true,
    };
    learner_kernels(l)->gemm_f32(&rows);
    learner_kernels(l)->gemm_tn_f32(&table);
}

void position_strips_multiply(const position_strips *s, const strip_products *products)
{
    for (size_t row = 0; row < s->rows;) {
        const row_group group = group_from(s, row);
        multiply_group(s, products, &group);
        row = group.first + group.count;
    }
}
