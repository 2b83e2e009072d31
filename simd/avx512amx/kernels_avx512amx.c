/* Integer products on AMX: a tile register holds 16 rows of 64 bytes, and one instruction multiplies a tile of A (16
 * rows x 64 inputs) by a tile of B (16 quads of inputs x 16 outputs) and adds to a tile of C. Both lie in memory as
 * tiles already (core/integer_kernels.h).
 *
 * Four of the eight registers hold sums, so a block of C has four tiles of sums: of one digit 2 x 2, or 1 x 4 for the
 * last 16 rows of an odd number; of two digits and of 15 bits, which have two sums each, 2 x 1 or 1 x 2. Rows of the
 * last tile that are not there are multiplied and never looked at.
 *
 * The epilogue of a block needs about as long as its products, and other units. So it is done in parts between the
 * products of the block that follows.
 *
 * SPDX-License-Identifier: MIT */
#include "core/kernels.h"
#include "simd/avx512/vec_avx512.h"
#include "simd/avx512amx/tiles_avx512amx.h"

#undef VF_NAME
#undef VF_ISA
#define VF_NAME(name) name##_avx512amx
#define VF_ISA        "avx512amx"

#include "simd/tmpl/unroll_tmpl.h"
#include "simd/tmpl/math_tmpl.h"
#include "simd/tmpl/integer_epilogue_tmpl.h"

enum {
    TILE_BYTES = DIGIT_TILE_ROWS * DIGIT_TILE_INPUTS,
    TILE_LINE = DIGIT_TILE_INPUTS, /* bytes of a row of any tile */
    TILE_SUMS = DIGIT_TILE_ROWS * PANEL,
    SUM_TILES = 4,
    PART_ROWS = 4, /* rows of a tile of C whose epilogue is done at a time */
    TILE_PARTS = DIGIT_TILE_ROWS / PART_ROWS,
};

_Static_assert((int)TILE_LINE == (int)TILE_REGISTER_LINE && (int)DIGIT_TILE_ROWS == (int)TILE_REGISTER_ROWS,
               "a tile fills a register");

/* Sums of a tile of C: of 15 bits those of the high and of the low digits. */
#define FORMAT_SUMS(format) ((format) == ONE_DIGIT ? 1 : 2)

/* One or two tiles of rows, from `row` on, by `panels` panels. */
typedef struct tile_block {
    size_t row, row_tiles, panel, panels;
    const int32_t *sums; /* [row tile][panel][sum][16][16], always of SUM_TILES tiles */
    size_t parts_left;   /* of the epilogue; they are done from the last to the first */
} tile_block;

typedef struct tile_walk {
    tile_block before; /* its sums are there, its epilogue is not done */
    integer_fetch fetch;
    int32_t (*sums)[SUM_TILES * TILE_SUMS]; /* of two blocks, which take turns */
    size_t blocks;
} tile_walk;

/* ---------------------------------------------------------------------------------------------------------- epilogue */

VF void finish_rows(const integer_format format, const int rows, const integer_gemm_task *task, size_t row,
                    size_t panel, const int32_t *sums)
{
    float tile[PART_ROWS * PANEL];
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < VECTORS; v++)
    {
        const int32_t *at = sums + i * PANEL + v * VF_LANES;
        vi both[2] = {vi_load(at), FORMAT_SUMS(format) == 2 ? vi_load(at + TILE_SUMS) : vi_set1(0)};
        if (format == FIFTEEN_BITS) both[0] = vi_add(vi_shift_left7(both[0]), both[1]);
        vf_store(tile + (i * VECTORS + v) * VF_LANES,
                 integer_value(format, DIGITS_STORED, task, row + (size_t)i, panel, v, both));
    }
    integer_finish(rows, 1, task, row, panel, tile);
}

/* The last of the parts that are left: some rows of one tile of C, if they are rows and columns of C at all. */
VF void finish_part(const integer_format format, const integer_gemm_task *given, tile_block *block)
{
    const integer_gemm_task task = *given; /* ours alone: what is stored into C cannot change it */
    const size_t part = --block->parts_left, cell = part / TILE_PARTS, inside = part % TILE_PARTS * PART_ROWS;
    const size_t columns = SUM_TILES / (size_t)FORMAT_SUMS(format) / block->row_tiles;
    const size_t row = block->row + cell / columns * DIGIT_TILE_ROWS + inside, column = cell % columns;
    const int32_t *sums = block->sums + cell * (size_t)FORMAT_SUMS(format) * TILE_SUMS + inside * PANEL;
    if (column >= block->panels || row >= task.rows) return;
    if (row + PART_ROWS <= task.rows)
        finish_rows(format, PART_ROWS, &task, row, block->panel + column, sums);
    else
        for (size_t i = 0; row + i < task.rows; i++)
            finish_rows(format, 1, &task, row + i, block->panel + column, sums + i * PANEL);
}

VF void finish_parts(const integer_format format, const integer_gemm_task *task, tile_block *block, size_t parts)
{
    for (; parts > 0 && block->parts_left > 0; parts--) finish_part(format, task, block);
}

/* ---------------------------------------------------------------------------------------------------------- products */

/* Registers 0 to 3 are sums, 4 and 5 tiles of A, 6 and 7 tiles of B. A product takes 16 cycles, its sum some 52:
 * between two products into one register there are others where the block has them. `apart` is the distance of
 * neighbouring tiles of rows, and of neighbouring panels (of two digits: planes of B). */
VF void multiply_u8(const tile_block *block, const uint8_t *a, const int8_t *b, size_t apart)
{
    _tile_loadd(4, a, TILE_LINE);
    _tile_loadd(6, b, TILE_LINE);
    _tile_dpbusd(0, 4, 6);
    if (block->row_tiles == 2) {
        _tile_loadd(5, a + apart, TILE_LINE);
        _tile_dpbusd(2, 5, 6);
        if (block->panels == 1) return;
        _tile_loadd(7, b + apart, TILE_LINE);
        _tile_dpbusd(1, 4, 7);
        _tile_dpbusd(3, 5, 7);
        return;
    }
    if (block->panels == 1) return;
    _tile_loadd(7, b + apart, TILE_LINE);
    _tile_dpbusd(1, 4, 7);
    if (block->panels == 2) return;
    _tile_loadd(6, b + 2 * apart, TILE_LINE);
    _tile_dpbusd(2, 4, 6);
    if (block->panels == 3) return;
    _tile_loadd(7, b + 3 * apart, TILE_LINE);
    _tile_dpbusd(3, 4, 7);
}

/* Sums of a row tile and panel: high digits, then mixed products. */
VF void multiply_u8x2(const tile_block *block, const uint8_t *a, const uint8_t *a_low, const int8_t *b, size_t apart)
{
    _tile_loadd(4, a, TILE_LINE);
    _tile_loadd(6, b, TILE_LINE);
    _tile_loadd(7, b + apart, TILE_LINE);
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 4, 7);
    if (block->row_tiles == 2) {
        _tile_loadd(5, a + apart, TILE_LINE);
        _tile_dpbusd(2, 5, 6);
        _tile_dpbusd(3, 5, 7);
        _tile_loadd(4, a_low, TILE_LINE);
        _tile_dpbusd(1, 4, 6);
        _tile_loadd(5, a_low + apart, TILE_LINE);
        _tile_dpbusd(3, 5, 6);
        return;
    }
    _tile_loadd(5, a_low, TILE_LINE);
    if (block->panels == 2) {
        _tile_loadd(7, b + 2 * apart, TILE_LINE);
        _tile_dpbusd(2, 4, 7);
        _tile_dpbusd(3, 5, 7);
    }
    _tile_dpbusd(1, 5, 6);
    if (block->panels == 1) return;
    _tile_loadd(7, b + 3 * apart, TILE_LINE);
    _tile_dpbusd(3, 4, 7);
}

/* Sums of a row tile and panel: of the high digits, of the low ones. */
VF void multiply_u15(const tile_block *block, const uint8_t *a, const uint8_t *a_low, const int8_t *b, size_t apart)
{
    _tile_loadd(4, a, TILE_LINE);
    _tile_loadd(5, a_low, TILE_LINE);
    _tile_loadd(6, b, TILE_LINE);
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 5, 6);
    if (block->row_tiles == 2) {
        _tile_loadd(4, a + apart, TILE_LINE);
        _tile_loadd(5, a_low + apart, TILE_LINE);
        _tile_dpbusd(2, 4, 6);
        _tile_dpbusd(3, 5, 6);
        return;
    }
    if (block->panels == 1) return;
    _tile_loadd(7, b + apart, TILE_LINE);
    _tile_dpbusd(2, 4, 7);
    _tile_dpbusd(3, 5, 7);
}

/* Makes the sums of a block and, meanwhile, what is left of the one before. */
VF void multiply_block(const integer_format format, const integer_gemm_task *task, tile_walk *walk, tile_block block)
{
    const size_t steps = task->depth / DIGIT_TILE_INPUTS, apart = task->depth * DIGIT_TILE_ROWS;
    const size_t parts = SUM_TILES / (size_t)FORMAT_SUMS(format) * TILE_PARTS,
                 parts_a_step = (parts + steps - 1) / steps;
    const uint8_t *a = task->a + digit_at(task->depth, block.row, 0);
    const int8_t *b = task->b + block.panel * apart * (size_t)FORMAT_DIGITS(format);
    int32_t *sums = walk->sums[walk->blocks++ % 2];
    block.sums = sums;
    block.parts_left = parts;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (size_t k = 0; k < steps; k++, a += TILE_BYTES, b += TILE_BYTES) {
        if (format == ONE_DIGIT)
            multiply_u8(&block, a, b, apart);
        else if (format == FIFTEEN_BITS)
            multiply_u15(&block, a, a + task->a_plane_bytes, b, apart);
        else
            multiply_u8x2(&block, a, a + task->a_plane_bytes, b, apart);
        integer_fetch_step(&walk->fetch);
        finish_parts(format, task, &walk->before, parts_a_step);
    }
    _tile_stored(0, sums, TILE_LINE);
    _tile_stored(1, sums + TILE_SUMS, TILE_LINE);
    _tile_stored(2, sums + 2 * TILE_SUMS, TILE_LINE);
    _tile_stored(3, sums + 3 * TILE_SUMS, TILE_LINE);
    walk->before = block;
}

/* All rows by as many panels as a block of one row tile has. Pairs of row tiles take half of the panels at a time,
 * which stay in L1 for all of them. */
VF void multiply_panels(const integer_format format, const integer_gemm_task *task, tile_walk *walk, size_t panel,
                        size_t panels)
{
    const size_t row_tiles = (task->rows + DIGIT_TILE_ROWS - 1) / DIGIT_TILE_ROWS,
                 half = SUM_TILES / (size_t)FORMAT_SUMS(format) / 2;
    const size_t blocks = row_tiles / 2 * ((panels + half - 1) / half) + row_tiles % 2;
    walk->fetch = integer_fetch_of(format, task, panel, panels, blocks * (task->depth / DIGIT_TILE_INPUTS));
    for (size_t first = 0; first < panels; first += half)
        for (size_t tile = 0; tile + 1 < row_tiles; tile += 2) {
            const size_t here = panels - first < half ? panels - first : half;
            const tile_block block = {
                .row = tile * DIGIT_TILE_ROWS, .row_tiles = 2, .panel = panel + first, .panels = here};
            multiply_block(format, task, walk, block);
        }
    if (row_tiles % 2) {
        const tile_block block = {
            .row = (row_tiles - 1) * DIGIT_TILE_ROWS, .row_tiles = 1, .panel = panel, .panels = panels};
        multiply_block(format, task, walk, block);
    }
}

VF void multiply_all(const integer_format format, const integer_gemm_task *task)
{
    const size_t most = SUM_TILES / (size_t)FORMAT_SUMS(format);
    int32_t sums[2][SUM_TILES * TILE_SUMS] __attribute__((aligned(64)));
    tile_walk walk = {.sums = sums};
    integer_gemm_task_assert(task);
    if (task->rows == 0 || task->depth == 0) return;
    tiles_take();
    for (size_t panel = 0; panel < task->panels; panel += most)
        multiply_panels(format, task, &walk, panel, task->panels - panel < most ? task->panels - panel : most);
    tiles_give_back();
    finish_parts(format, task, &walk.before, walk.before.parts_left);
}

static void VF_NAME(gemm_u8)(const integer_gemm_task *task) { multiply_all(ONE_DIGIT, task); }
static void VF_NAME(gemm_u8x2)(const integer_gemm_task *task) { multiply_all(TWO_DIGITS, task); }
static void VF_NAME(gemm_u15)(const integer_gemm_task *task) { multiply_all(FIFTEEN_BITS, task); }

#include "simd/tmpl/integer_part_tmpl.h"
