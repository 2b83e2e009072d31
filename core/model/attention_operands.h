/* Operands of attention: rows from the left, panels of 16 columns from the right, as floats or, in precision int8, as
 * quantized integers (core/integer_kernels.h). Both use the same products and destinations; only this file
 * distinguishes them.
 *
 *     left, rows         queries, rows of PQ     u8 with a scale and a zero point a row
 *                        probabilities           15 bits; the largest logit of its chunk has 1
 *     right, columns     keys, rows of PK        s8 with a scale each
 *                        values of a chunk       s8 with a scale a column of the head
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/memory.h"
#include "core/base/numbers.h"
#include "core/kernels.h"

/* Rows as quantize_task makes them; `depth` is rounded up to whole tiles in all of these. */
typedef struct integer_rows {
    uint8_t *digits;
    size_t plane_bytes; /* of 15 bits; 0: one digit */
    float *scale;
    int32_t *zero;
} integer_rows;

/* Columns as quantize_panels_task makes them. */
typedef struct integer_panels {
    int8_t *digits;
    float *scale;
    int32_t *sum;
} integer_panels;

typedef struct row_operand {
    const float *floats; /* NULL: integers */
    size_t ld;
    integer_rows integers;
} row_operand;

typedef struct panel_operand {
    float *floats; /* NULL: integers */
    size_t stride; /* floats from panel to panel; of either kind: 0 where one panel stands for all */
    integer_panels integers;
} panel_operand;

static inline size_t operand_depth(size_t depth) { return round_up(depth, DIGIT_TILE_INPUTS); }

/* Memory for rows (rounded up to whole tiles) and panels. */
integer_rows integer_rows_take(arena *memory, size_t rows, size_t depth, size_t planes);
integer_panels integer_panels_take(arena *memory, size_t panels, size_t depth);
/* Those from a row (which begins a tile), from a panel on. */
integer_rows integer_rows_from(const integer_rows *rows, size_t row, size_t depth);
integer_panels integer_panels_from(const integer_panels *panels, size_t panel, size_t depth);

void integer_rows_fill(const integer_rows *to, const kernels *table, const float *x, size_t ldx, size_t rows,
                       size_t depth);
/* factor: of each of `depth` inputs, or NULL. */
void integer_panels_fill(const integer_panels *to, const kernels *table, const float *x, size_t x_panel_stride,
                         const float *factor, size_t panels, size_t depth);

/* Rows that a row operand may begin with: every one, or one in a tile. */
static inline size_t operand_row_step(const row_operand *rows) { return rows->floats ? 1 : DIGIT_TILE_ROWS; }

/* c = epilogue(rows from `row` on times panels from `panel` on): what `to` says but for A, B and the depth. row: a
 * multiple of operand_row_step, or to->rows is 1. Without bias, gelu and next. */
void operands_multiply(const kernels *table, size_t depth, const row_operand *rows, size_t row,
                       const panel_operand *panels, size_t panel, const gemm_task *to);
