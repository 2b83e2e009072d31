/* Packs weights into panels of 16 outputs, in the kernels' reading order. SPDX-License-Identifier: MIT */
#include "core/model/pack.h"

size_t row_stride(size_t columns)
{
    size_t stride = round_up(columns, PANEL);
    return stride % 512 == 0 ? stride + PANEL : stride;
}

size_t packed_block_depth(size_t depth)
{
    size_t blocks = ceiling_divide(depth, PACKED_MAX_BLOCK);
    return blocks <= 1 ? depth : round_up(ceiling_divide(depth, blocks), 8);
}

void packed_matrix_carve(packed_matrix *matrix, arena *memory, size_t outputs, size_t depth)
{
    size_t panel_floats = 0;
    if (!size_multiply(depth, PANEL, &panel_floats)) memory->overflow = true;
    *matrix = (packed_matrix){
        .outputs = outputs,
        .depth = depth,
        .panel_count = ceiling_divide(outputs, PANEL),
        .block_depth = packed_block_depth(depth),
    };
    size_t floats = 0;
    if (!size_multiply(panel_floats, matrix->panel_count, &floats)) memory->overflow = true;
    matrix->panels = arena_take(memory, floats, sizeof *matrix->panels);
    matrix->bias = arena_take(memory, matrix->panel_count * PANEL, sizeof *matrix->bias);
}

void packed_matrix_store(const packed_matrix *matrix, const kernels *table, size_t panel, const float *rows,
                         size_t ld_rows)
{
    for (size_t start = 0; start < matrix->depth; start += matrix->block_depth) {
        size_t depth = minimum(matrix->block_depth, matrix->depth - start);
        table->pack_panels_f32(packed_matrix_panel(matrix, start, panel), depth * PANEL, rows + start, ld_rows, PANEL,
                               depth);
    }
}
