/* Multiplies only the nonzero parts of strips: a few rows and the places that they touch, or a few places and the rows
 * that touch them.
 *
 * SPDX-License-Identifier: MIT */
#include "train/backward/position_strips.h"

#include <string.h>

/* Numbers of rows and columns at a time, whole tiles of the kernels. Places shift with the rows, so that a few rows
 * touch far fewer places than all rows do: of 128 rows and 128 others, 12 rows touch 139 of 255 places, and 12 places
 * are touched by 75 of 128 rows on average. */
enum { AT_ONCE = STRIPS_AT_ONCE };

/* A range of rows and columns. */
typedef struct strip_part {
    size_t row, rows, column, columns;
} strip_part;

/* --------------------------------------------------------------------------------------------------------------- bands */

static bool has_bands(const position_strips *s) { return s->learner->session->positions.monotone; }

/* Return the first column of a row that is not always 0, and the end: those of the first and last item of the other
 * side. */
static size_t first_column(const position_strips *s, size_t row)
{
    const size_t behind = s->tokens ? s->tokens[row] - s->tokens[0] : row;
    return has_bands(s) ? (size_t)s->place_of[-(ptrdiff_t)behind] - s->first : 0;
}

static size_t end_column(const position_strips *s, size_t row)
{
    const size_t behind = s->tokens ? s->tokens[row] - s->tokens[0] : row;
    return has_bands(s) ? (size_t)s->place_of[(ptrdiff_t)s->reach - (ptrdiff_t)behind] - s->first + 1 : s->places;
}

/* Returns some rows from one on, with their columns; later rows touch lower places. */
static strip_part part_of_rows(const position_strips *s, size_t row)
{
    const size_t rows = minimum(AT_ONCE, s->rows - row), column = first_column(s, row + rows - 1);
    return (strip_part){.row = row, .rows = rows, .column = column, .columns = end_column(s, row) - column};
}

/* Returns some columns from one on, with their rows. No later row touches higher columns, so *row and *end fall from
 * call to call. */
static strip_part part_of_columns(const position_strips *s, size_t column, size_t *row, size_t *end)
{
    const size_t columns = minimum(AT_ONCE, s->places - column);
    while (*end > 0 && end_column(s, *end - 1) <= column) --*end;
    *row = minimum(*row, *end);
    while (*row > 0 && first_column(s, *row - 1) < column + columns) --*row;
    return (strip_part){.row = *row, .rows = *end - *row, .column = column, .columns = columns};
}

/* Clears the columns of each row that either product reads. */
void position_strips_clear(const position_strips *s)
{
    const size_t ld = s->ld;
    for (size_t row = 0; row < s->rows;) {
        const strip_part part = part_of_rows(s, row);
        const size_t first = part.column / AT_ONCE * AT_ONCE;
        const size_t end = minimum(round_up(part.column + part.columns, AT_ONCE), s->places);
        for (row = part.row; row < part.row + part.rows; row++)
            memset(s->strips + row * ld + first, 0, (end - first) * sizeof(float));
    }
}

/* Query i reads key j at place j - i + rows - 1 of the strip. */
bool position_strips_skew(position_strips *s, float *scores, size_t ld, size_t keys)
{
    if (!s->learner->session->positions.unit_steps || s->places != s->rows + keys - 1) return false;
    s->strips = scores;
    s->ld = ld + 1;
    s->shift = s->rows - 1;
    memset(scores - (AT_ONCE - 1), 0, (AT_ONCE - 1) * sizeof *scores);
    for (size_t row = 0; row < s->rows; row++) {
        float *between = scores + row * ld + keys, *next = scores + (row + 1) * ld - (AT_ONCE - 1);
        for (size_t e = 0; e < AT_ONCE - 1; e++) between[e] = next[e] = 0;
    }
    return true;
}

static const float *strip_at(const position_strips *s, const strip_part *part)
{
    return s->strips + ((ptrdiff_t)(part->row * s->ld + part->column) - (ptrdiff_t)s->shift);
}

/* ------------------------------------------------------------------------------------------------------------ products */

static void multiply_rows(const position_strips *s, const strip_products *p, const strip_part *part)
{
    const learner *l = s->learner;
    const gemm_task task = {
        .rows = part->rows,
        .depth = part->columns,
        .panels = l->model->head_panels,
        .a = strip_at(s, part),
        .lda = s->ld,
        .b = p->table + part->column * PANEL,
        .b_panel_stride = l->model->relative_rows * PANEL,
        .c = p->d_rows + part->row * p->ld_rows,
        .ldc = p->ld_rows,
        .c_panel_stride = PANEL,
        .accumulate = true,
    };
    learner_kernels(l)->gemm_f32(&task);
}

static void multiply_columns(const position_strips *s, const strip_products *p, const strip_part *part)
{
    const learner *l = s->learner;
    const size_t dp = l->model->padded_head;
    const gemm_tn_task task = {
        .columns = part->columns,
        .panels = l->model->head_panels,
        .a = strip_at(s, part),
        .lda = s->ld,
        .b = p->vectors + part->row * dp,
        .ldb = dp,
        .b_panel_stride = PANEL,
        .c = p->d_table + part->column * dp,
        .ldc = dp,
        .c_panel_stride = PANEL,
        .rows = part->rows,
        .accumulate = true,
    };
    learner_kernels(l)->gemm_tn_f32(&task);
}

void position_strips_multiply(const position_strips *s, const strip_products *products)
{
    for (size_t row = 0; row < s->rows; row += AT_ONCE) {
        const strip_part part = part_of_rows(s, row);
        multiply_rows(s, products, &part);
    }
    for (size_t column = 0, row = s->rows, end = s->rows; column < s->places; column += AT_ONCE) {
        const strip_part part = part_of_columns(s, column, &row, &end);
        if (part.rows > 0) multiply_columns(s, products, &part);
    }
}
