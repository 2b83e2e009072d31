/* Multiplies the operands of attention, as floats or as integers. SPDX-License-Identifier: MIT */
#include "core/model/attention_operands.h"

#include <string.h>

/* ----------------------------------------------------------------------------------------------------------- memory */

static void *attention_operands_take(arena *memory, size_t rows, size_t columns, size_t bytes)
{
    size_t count = 0;
    if (!size_multiply(rows, columns, &count)) memory->overflow = true;
    return arena_take(memory, count, bytes);
}

integer_rows integer_rows_take(arena *memory, size_t rows, size_t depth, size_t planes)
{
    size_t capacity = round_up(rows, DIGIT_TILE_ROWS), row_bytes = operand_depth(depth);
    integer_rows found = {.digits = attention_operands_take(memory, capacity, row_bytes * planes, 1)};
    found.scale = attention_operands_take(memory, capacity, 1, sizeof *found.scale);
    if (planes == 1)
        found.zero = attention_operands_take(memory, capacity, 1, sizeof *found.zero);
    else
        found.plane_bytes = capacity * row_bytes;
    return found;
}

integer_panels integer_panels_take(arena *memory, size_t panels, size_t depth)
{
    integer_panels found = {.digits = attention_operands_take(memory, panels * PANEL, operand_depth(depth), 1)};
    found.scale = attention_operands_take(memory, panels, PANEL, sizeof *found.scale);
    found.sum = attention_operands_take(memory, panels, PANEL, sizeof *found.sum);
    return found;
}

integer_rows integer_rows_from(const integer_rows *rows, size_t row, size_t depth)
{
    return (integer_rows){
        .digits = rows->digits + digit_at(operand_depth(depth), row, 0),
        .plane_bytes = rows->plane_bytes,
        .scale = rows->scale + row,
        .zero = rows->zero ? rows->zero + row : NULL,
    };
}

integer_panels integer_panels_from(const integer_panels *panels, size_t panel, size_t depth)
{
    return (integer_panels){
        .digits = panels->digits + panel * operand_depth(depth) * PANEL,
        .scale = panels->scale + panel * PANEL,
        .sum = panels->sum + panel * PANEL,
    };
}

/* ---------------------------------------------------------------------------------------------------------- filling */

void integer_rows_fill(const integer_rows *to, const kernels *table, const float *x, size_t ldx, size_t rows,
                       size_t depth)
{
    quantize_task task = {
        .rows = rows,
        .depth = depth,
        .x = x,
        .ldx = ldx,
        .digits = to->digits,
        .plane_bytes = to->plane_bytes,
        .scale = to->scale,
        .zero = to->zero,
    };
    if (to->plane_bytes)
        table->quantize_u15(&task);
    else
        table->quantize_u8(&task);
}

void integer_panels_fill(const integer_panels *to, const kernels *table, const float *x, size_t x_panel_stride,
                         const float *factor, size_t panels, size_t depth)
{
    quantize_panels_task task = {
        .panels = panels,
        .depth = depth,
        .x = x,
        .x_panel_stride = x_panel_stride,
        .factor = factor,
        .digits = to->digits,
        .scale = to->scale,
        .sum = to->sum,
    };
    table->quantize_panels_s8(&task);
}

/* --------------------------------------------------------------------------------------------------------- products */

/* Copies a single row to the front of a tile, where the kernels expect it. */
static void copy_row(uint8_t *tile, const integer_rows *from, size_t depth)
{
    for (size_t k = 0; k < depth; k += DIGIT_TILE_INPUTS)
        memcpy(tile + k * DIGIT_TILE_ROWS, from->digits + k * DIGIT_TILE_ROWS, DIGIT_TILE_INPUTS);
}

static void multiply_integers(const kernels *table, size_t depth, const integer_rows *rows,
                              const integer_panels *panels, const gemm_task *to)
{
    integer_gemm_task task = {
        .rows = to->rows,
        .depth = depth,
        .panels = to->panels,
        .a = rows->digits,
        .a_plane_bytes = rows->plane_bytes,
        .a_scale = rows->scale,
        .a_zero = rows->zero,
        .b = panels->digits,
        .b_scale = panels->scale,
        .b_sum = panels->sum,
        .c = to->c,
        .ldc = to->ldc,
        .c_panel_stride = to->c_panel_stride,
        .c_scale = to->c_scale,
        .outer_column = to->outer_column,
        .outer_ld = to->outer_ld,
        .outer_row = to->outer_row,
        .residual = to->residual,
        .ld_residual = to->ld_residual,
        .residual_panel_stride = to->residual_panel_stride,
        .row_scale = to->row_scale,
        .accumulate = to->accumulate,
    };
    if (rows->plane_bytes)
        table->gemm_u15(&task);
    else
        table->gemm_u8(&task);
}

/* Returns the task of one panel of `to`, its panel p. */
static gemm_task panel_of(const gemm_task *to, size_t p)
{
    gemm_task one = *to;
    one.panels = 1;
    one.c += p * to->c_panel_stride;
    if (to->outer_row) one.outer_row += p * PANEL;
    if (to->residual) one.residual += p * to->residual_panel_stride;
    return one;
}

void operands_multiply(const kernels *table, size_t depth, const row_operand *rows, size_t row,
                       const panel_operand *panels, size_t panel, const gemm_task *to)
{
    if (rows->floats) {
        gemm_task task = *to;
        task.depth = depth;
        task.a = rows->floats + row * rows->ld;
        task.lda = rows->ld;
        task.b = panels->floats + panel * panels->stride;
        task.b_panel_stride = panels->stride;
        table->gemm_f32(&task);
        return;
    }
    uint8_t tile[DIGIT_TILE_ROWS * MAX_INTEGER_DEPTH];
    integer_rows left = integer_rows_from(&rows->integers, row, depth);
    if (row % DIGIT_TILE_ROWS) {
        copy_row(tile, &left, operand_depth(depth));
        left.digits = tile;
    }
    if (panels->stride) {
        integer_panels right = integer_panels_from(&panels->integers, panel, depth);
        multiply_integers(table, operand_depth(depth), &left, &right, to);
        return;
    }
    for (size_t p = 0; p < to->panels; p++) {
        gemm_task one = panel_of(to, p);
        multiply_integers(table, operand_depth(depth), &left, &panels->integers, &one);
    }
}
