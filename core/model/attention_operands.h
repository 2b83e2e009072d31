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

/* Rows quantized by quantize_task; `depth` is rounded up to whole tiles in all of these. */
typedef struct integer_rows {
    uint8_t *digits;
    size_t plane_bytes; /* bytes of a plane of 15 bits; 0: one digit */
    float *scale;
    int32_t *zero;
} integer_rows;

/* Columns quantized by quantize_panels_task. */
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
    size_t stride; /* floats from panel to panel; for both kinds 0 where one panel serves for all */
    integer_panels integers;
} panel_operand;

static inline size_t operand_depth(size_t depth) { return round_up(depth, DIGIT_TILE_INPUTS); }

/* Take memory for rows (rounded up to whole tiles) and panels. */
integer_rows integer_rows_take(arena *memory, size_t rows, size_t depth, size_t planes);
integer_panels integer_panels_take(arena *memory, size_t panels, size_t depth);
/* Return the operands from a row (which begins a tile), or from a panel on. */
integer_rows integer_rows_from(const integer_rows *rows, size_t row, size_t depth);
integer_panels integer_panels_from(const integer_panels *panels, size_t panel, size_t depth);

void integer_rows_fill(const integer_rows *to, const kernels *table, const float *x, size_t ldx, size_t rows,
                       size_t depth);
/* Quantizes panels. factor: one for each of `depth` inputs, or NULL. */
void integer_panels_fill(const integer_panels *to, const kernels *table, const float *x, size_t x_panel_stride,
                         const float *factor, size_t panels, size_t depth);

/* Returns the step between rows at which an operand may begin: 1 for floats, a tile for digits. */
static inline size_t operand_row_step(const row_operand *rows) { return rows->floats ? 1 : DIGIT_TILE_ROWS; }

/* Computes c = epilogue(rows from `row` on times panels from `panel` on); `to` gives everything except A, B and the
 * depth. row: a multiple of operand_row_step, or to->rows is 1. Without bias, gelu and next. */
void operands_multiply(const kernels *table, size_t depth, const row_operand *rows, size_t row,
                       const panel_operand *panels, size_t panel, const gemm_task *to);
