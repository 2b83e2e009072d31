/* Stores matrices in the order in which they are multiplied.
 *
 * A weight W [outputs][depth] is cut into panels of 16 outputs and blocks of at most 768 inputs and stored in reading
 * order,
 *
 *     [block][panel][inputs of the block][16]
 *
 * so that a product reads it front to back and the next panel is simply the next bytes: prefetching it raised 16 rows
 * times weights from memory from 70 to 93 % of the peak of a Zen 3 core, in a prototype. Lanes beyond the outputs are
 * zero.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/memory.h"
#include "core/base/numbers.h"
#include "core/kernels.h"

typedef struct packed_matrix {
    float *panels;
    float *bias; /* [panel_count][16], zeros without bias */
    size_t outputs, depth, panel_count, block_depth;

    /* In low precision, integers (quantized.h) replace the float panels: */
    size_t digits;    /* digits of an integer; 0: float32 */
    int8_t *integers; /* [block][panel][digit][input / 4][16][4], blocks rounded up to 64 inputs */
    float *scales;    /* [block][panel_count][16] */
    int32_t *sums;    /* [block][panel_count][digits][16]: see integer_gemm_task */
    float *factors;   /* [depth]: factor of an input before it is quantized */
} packed_matrix;

/* Rounds columns up to whole panels, and adds 16 where rows would lie a multiple of 2 KiB apart: the same columns of
 * neighbouring rows then compete for few cache sets (128 rows of 3072 columns in a prototype on Zen 3: 92 % of peak, 97
 * with the 16). */
size_t row_stride(size_t columns);

enum { PACKED_MAX_BLOCK = 768 };

/* Returns the inputs per block: as few blocks of at most PACKED_MAX_BLOCK as possible, equal up to a multiple of 8. */
size_t packed_block_depth(size_t depth);
/* Sets the sizes, and takes panels and bias from the arena. */
void packed_matrix_carve(packed_matrix *matrix, arena *memory, size_t outputs, size_t depth);
/* Stores 16 outputs: rows [16][ld_rows] of W, as one panel, in all blocks. Different panels may be stored at the same
 * time. */
void packed_matrix_store(const packed_matrix *matrix, const kernels *table, size_t panel, const float *rows,
                         size_t ld_rows);

/* Returns the first float of a panel in the block whose first input is block_start. */
static inline float *packed_matrix_panel(const packed_matrix *matrix, size_t block_start, size_t panel)
{
    size_t block_depth = minimum(matrix->block_depth, matrix->depth - block_start);
    return matrix->panels + (block_start * matrix->panel_count + panel * block_depth) * PANEL;
}

/* Returns the end of the last panel of the last block. */
static inline const float *packed_matrix_end(const packed_matrix *matrix)
{
    return matrix->panels + matrix->depth * matrix->panel_count * PANEL;
}
