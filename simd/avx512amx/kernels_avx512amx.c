/* Computes integer products on AMX: a tile register holds 16 rows of 64 bytes, and one instruction multiplies a tile of
 * A (16 rows x 64 inputs) by a tile of B (16 quads of inputs x 16 outputs) and adds to a tile of C. Both lie in memory
 * as tiles already (core/integer_kernels.h).
 *
 * Four of the eight registers hold sums, so a block of C has four tiles of sums: of one digit 2 x 2, or 1 x 4 for the
 * last 16 rows of an odd number; of two digits and of 15 bits, which have two sums each, 2 x 1 or 1 x 2. Missing rows
 * of the last tile are multiplied, and their results ignored.
 *
 * The epilogue of a block runs between the products of the next block. It shares with products of tiles only one of the
 * two ports of 512-bit arithmetic, so gelu, forty such instructions, overlaps in part.
 *
 * 128 rows of 768 inputs by 768 outputs run at 67 % of the rate of the same products and their loads alone; two digits
 * run at 71 % (one core of an Emerald Rapids server, November 2026).
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
};
_Static_assert((int)TILE_LINE == (int)TILE_REGISTER_LINE && (int)DIGIT_TILE_ROWS == (int)TILE_REGISTER_ROWS,
               "a tile fills a register");

/* Number of sums of a tile of C; for 15 bits they are those of the high and of the low digits. */
#define FORMAT_SUMS(format) ((format) == ONE_DIGIT ? 1 : 2)

/* A block of C: one or two tiles of rows, from `row` on, by `panels` panels. Its sums are tiles one after the other,
 * [row tile][panel][sum]; each of two row tiles has SUM_TILES / 2. */
typedef struct tile_block {
    size_t row, row_tiles, panel, panels;
} tile_block;

/* The remaining epilogue of a block, which runs strip by strip: a strip is a row tile by one or two panels. Pointers
 * are those of the strip's next row. */
typedef struct tile_epilogue {
    const integer_gemm_task *task;
    tile_block block;
    const int32_t *block_sums;
    size_t row, panel;            /* place in the block where the strip begins */
    size_t rows, panels;          /* remaining rows of the strip, and its width; rows 0: nothing is left */
    const int32_t *sums, *a_zero; /* [row][16]; the sums of two panels or digits are a tile apart */
    const float *a_scale;
    float *c;
    const float *start; /* values to which the products are added: C, the bias or zeros */
} tile_epilogue;

/* ---------------------------------------------------------------------------------------------------------- epilogue */

enum {
    STRIP_PANELS = 2,
    FINISHED_ROWS = 4, /* smallest number of a strip's rows per call, which costs as much as one or two rows */
};

/* Returns the number of strip rows of a block. */
VF size_t strip_rows_of(const integer_gemm_task *task, const tile_block *block)
{
    const size_t most = block->row_tiles * DIGIT_TILE_ROWS, left = task->rows - block->row;
    return (left < most ? left : most) * ((block->panels + STRIP_PANELS - 1) / STRIP_PANELS);
}

static const float zeros[STRIP_PANELS * PANEL];

/* Begins the strip at row and panel, or at the next panels after the last row; past the last panel, rows stays 0. */
VF void begin_strip(const integer_format format, tile_epilogue *at)
{
    const integer_gemm_task *task = at->task;
    if (at->row >= at->block.row_tiles * DIGIT_TILE_ROWS || at->block.row + at->row >= task->rows) {
        at->row = 0;
        at->panel += STRIP_PANELS;
    }
    if (at->panel >= at->block.panels) return; /* rows is 0 here. */
    const size_t row = at->block.row + at->row, panel = at->block.panel + at->panel, left = task->rows - row;
    at->rows = left < DIGIT_TILE_ROWS ? left : DIGIT_TILE_ROWS;
    at->panels = at->block.panels - at->panel < STRIP_PANELS ? 1 : STRIP_PANELS;
    at->sums = at->block_sums + at->row / DIGIT_TILE_ROWS * (SUM_TILES / 2 * TILE_SUMS) +
               at->panel * (size_t)FORMAT_SUMS(format) * TILE_SUMS;
    at->a_zero = task->a_zero + row;
    at->a_scale = task->a_scale + row;
    at->c = task->c + row * task->ldc + panel * task->c_panel_stride;
    at->start = task->accumulate ? at->c : task->bias ? task->bias + panel * PANEL : zeros;
}

VF void begin_epilogue(const integer_format format, tile_epilogue *at, const integer_gemm_task *task,
                       const tile_block *block, const int32_t *sums)
{
    *at = (tile_epilogue){.task = task, .block = *block, .block_sums = sums};
    begin_strip(format, at);
}

/* Computes x, before the scales, of the row at `sums`. */
VF void row_values(const integer_format format, const int panels, vf *x, const int32_t *sums, const int32_t *a_zero,
                   const int32_t *b_sum)
{
    UNROLL for (int p = 0; p < panels; p++)
    {
        const int32_t *at = sums + p * FORMAT_SUMS(format) * TILE_SUMS;
        vi both[2] = {vi_load(at), FORMAT_SUMS(format) == 2 ? vi_load(at + TILE_SUMS) : vi_set1(0)};
        if (format == FIFTEEN_BITS) both[0] = vi_add(vi_shift_left7(both[0]), both[1]);
        x[p] = integer_value_of(format, DIGITS_STORED, a_zero, b_sum + p * PANEL * FORMAT_DIGITS(format), both);
    }
}

/* Finishes `count` rows of the strip, in the order of core/integer_kernels.h: with or without a bias and gelu. */
VF void finish_plain(const integer_format format, const int panels, const bool gelu, tile_epilogue *at, size_t count)
{
    const integer_gemm_task *task = at->task;
    const size_t lane = (at->block.panel + at->panel) * PANEL, c_stride = task->c_panel_stride, ldc = task->ldc;
    int32_t b_sum[2 * STRIP_PANELS * PANEL];
    vf b_scale[STRIP_PANELS], start[STRIP_PANELS];
    UNROLL for (int p = 0; p < panels; p++)
    {
        b_scale[p] = vf_load(task->b_scale + lane + p * PANEL);
        start[p] = vf_load(at->start + p * PANEL);
    }
    for (int k = 0; k < panels * FORMAT_DIGITS(format); k++)
        vi_store(b_sum + k * PANEL, vi_load(task->b_sum + lane * (size_t)FORMAT_DIGITS(format) + k * PANEL));
    const int32_t *sums = at->sums, *a_zero = at->a_zero;
    const float *a_scale = at->a_scale;
    float *c = at->c;
    for (size_t i = 0; i < count; i++) {
        vf x[STRIP_PANELS];
        row_values(format, panels, x, sums + i * PANEL, a_zero + i, b_sum);
        UNROLL for (int p = 0; p < panels; p++) x[p] =
            vf_fma(x[p], vf_mul(vf_broadcast(a_scale + i), b_scale[p]), start[p]);
        if (gelu) UNROLL for (int p = 0; p < panels; p++) x[p] = vf_gelu(x[p]);
        UNROLL for (int p = 0; p < panels; p++) vf_store(c + (size_t)p * c_stride, x[p]);
        c += ldc;
    }
    at->c = c;
}

/* Finishes rows of the strip with every step that a task can request. */
VF void finish_any(const integer_format format, const int panels, tile_epilogue *at, size_t count)
{
    const integer_gemm_task task = *at->task;
    const size_t row = (size_t)(at->a_scale - task.a_scale), panel = at->block.panel + at->panel, lane = panel * PANEL;
    const size_t start_ld = task.accumulate ? task.ldc : 0,
                 start_stride = task.accumulate ? task.c_panel_stride : PANEL;
    const float *b_scale = task.b_scale + lane, *start = at->start;
    const int32_t *b_sum = task.b_sum + lane * (size_t)FORMAT_DIGITS(format);
    const float *residual =
        task.residual ? task.residual + row * task.ld_residual + panel * task.residual_panel_stride : NULL;
    float *c = at->c;
    for (size_t i = 0; i < count; i++) {
        vf x[STRIP_PANELS], from[STRIP_PANELS];
        row_values(format, panels, x, at->sums + i * PANEL, at->a_zero + i, b_sum);
        UNROLL for (int p = 0; p < panels; p++) from[p] = vf_load(start + (size_t)p * start_stride);
        if (task.c_scale)
            UNROLL for (int p = 0; p < panels; p++) from[p] = vf_mul(from[p], vf_broadcast(task.c_scale + row + i));
        UNROLL for (int p = 0; p < panels; p++) x[p] =
            vf_fma(x[p], vf_mul(vf_broadcast(at->a_scale + i), vf_load(b_scale + p * PANEL)), from[p]);
        if (task.gelu) UNROLL for (int p = 0; p < panels; p++) x[p] = vf_gelu(x[p]);
        if (task.outer_column)
            UNROLL for (int p = 0; p < panels; p++) x[p] =
                vf_add(x[p], vf_add(vf_broadcast(task.outer_column + (row + i) * task.outer_ld),
                                    vf_load(task.outer_row + lane + p * PANEL)));
        if (residual) {
            UNROLL for (int p = 0; p < panels; p++) x[p] =
                vf_add(x[p], vf_load(residual + (size_t)p * task.residual_panel_stride));
            residual += task.ld_residual;
        }
        if (task.row_scale)
            UNROLL for (int p = 0; p < panels; p++) x[p] = vf_mul(x[p], vf_broadcast(task.row_scale + row + i));
        UNROLL for (int p = 0; p < panels; p++) vf_store(c + (size_t)p * task.c_panel_stride, x[p]);
        c += task.ldc;
        start += start_ld;
    }
    at->c = c;
    at->start = start;
}

typedef enum epilogue_kind { EPILOGUE_PLAIN, EPILOGUE_GELU, EPILOGUE_ANY } epilogue_kind;

/* Finishes the next `rows` rows, of as many strips as they span. */
VF void finish_strips(const integer_format format, const epilogue_kind kind, tile_epilogue *left, size_t rows)
{
    while (rows > 0 && left->rows > 0) {
        const size_t count = rows < left->rows ? rows : left->rows;
        if (kind == EPILOGUE_ANY && left->panels == 1)
            finish_any(format, 1, left, count);
        else if (kind == EPILOGUE_ANY)
            finish_any(format, 2, left, count);
        else if (left->panels == 1)
            finish_plain(format, 1, kind == EPILOGUE_GELU, left, count);
        else
            finish_plain(format, 2, kind == EPILOGUE_GELU, left, count);
        rows -= count;
        left->rows -= count;
        left->sums += count * PANEL;
        left->a_zero += count;
        left->a_scale += count;
        if (left->rows > 0) return;
        left->row += DIGIT_TILE_ROWS;
        begin_strip(format, left);
    }
}

/* These are separate functions, so that their variables do not compete with those of the products for registers. */
typedef void finish_function(tile_epilogue *left, size_t rows);
#define FINISH(name, format, kind)                                                                                     \
    static __attribute__((noinline)) void name(tile_epilogue *left, size_t rows)                                       \
    {                                                                                                                  \
        finish_strips(format, kind, left, rows);                                                                       \
    }
FINISH(finish_u8, ONE_DIGIT, EPILOGUE_PLAIN)
FINISH(finish_u8_gelu, ONE_DIGIT, EPILOGUE_GELU)
FINISH(finish_u8_any, ONE_DIGIT, EPILOGUE_ANY)
FINISH(finish_u8x2, TWO_DIGITS, EPILOGUE_PLAIN)
FINISH(finish_u8x2_gelu, TWO_DIGITS, EPILOGUE_GELU)
FINISH(finish_u8x2_any, TWO_DIGITS, EPILOGUE_ANY)
FINISH(finish_u15, FIFTEEN_BITS, EPILOGUE_PLAIN)
FINISH(finish_u15_any, FIFTEEN_BITS, EPILOGUE_ANY)

static finish_function *finish_of(integer_format format, const integer_gemm_task *task)
{
    static finish_function *const all[][3] = {
        [ONE_DIGIT] = {finish_u8, finish_u8_gelu, finish_u8_any},
        [TWO_DIGITS] = {finish_u8x2, finish_u8x2_gelu, finish_u8x2_any},
        [FIFTEEN_BITS] = {finish_u15, finish_u15_any, finish_u15_any},
    };
    const bool any = task->accumulate || task->outer_column || task->residual || task->row_scale;
    return all[format][any ? EPILOGUE_ANY : task->gelu ? EPILOGUE_GELU : EPILOGUE_PLAIN];
}

/* ---------------------------------------------------------------------------------------------------------- products */

typedef struct tile_walk {
    tile_epilogue before; /* epilogue of the block whose sums are in the registers when the next one begins */
    size_t strip_rows;    /* number of strip rows of that block */
    finish_function *finish;
    integer_fetch fetch;
    int32_t *sums; /* [SUM_TILES] tiles */
} tile_walk;

/* Registers 0 to 3 are sums, 4 and 5 tiles of A, 6 and 7 tiles of B. A product takes 16 cycles, its sum some 52: other
 * products run between two into the same register, where the block has them. `apart` is the distance of neighbouring
 * tiles of rows, and of neighbouring panels (of two digits: planes of B).
 *
 * Between the blocks: the sums of the one before leave each register just before the first product of the next one
 * needs it. Four stores in a row would hold up products for as long as they take.
 *
 * What is read once in a while (A where there are several pairs of row tiles, else B) is loaded past L1: B of two
 * panels and A of two row tiles, sums and C together are more than it holds, and then all of them would come from L2.
 */
#define BEGIN(sum)                                                                                                     \
    if (first) {                                                                                                       \
        _tile_stored(sum, before + TILE_SUMS * (sum), TILE_LINE);                                                      \
        _tile_zero(sum);                                                                                               \
    }
#define LOAD(to, from, past_l1)                                                                                        \
    if (past_l1)                                                                                                       \
        _tile_stream_loadd(to, from, TILE_LINE);                                                                       \
    else                                                                                                               \
        _tile_loadd(to, from, TILE_LINE)
#define LOAD_A(to, from) LOAD(to, from, !keeps_a)
#define LOAD_B(to, from) LOAD(to, from, keeps_a)

typedef struct tile_operands {
    const uint8_t *a, *a_low;
    const int8_t *b;
    size_t apart;
} tile_operands;

VF void multiply_u8(const bool first, const bool keeps_a, const tile_block *block, const tile_operands *of,
                    int32_t *before)
{
    LOAD_A(4, of->a);
    LOAD_B(6, of->b);
    BEGIN(0)
    _tile_dpbusd(0, 4, 6);
    if (block->row_tiles == 2) {
        LOAD_A(5, of->a + of->apart);
        BEGIN(2)
        _tile_dpbusd(2, 5, 6);
        BEGIN(1)
        BEGIN(3)
        if (block->panels == 1) return;
        LOAD_B(7, of->b + of->apart);
        _tile_dpbusd(1, 4, 7);
        _tile_dpbusd(3, 5, 7);
        return;
    }
    BEGIN(1)
    BEGIN(2)
    BEGIN(3)
    if (block->panels == 1) return;
    LOAD_B(7, of->b + of->apart);
    _tile_dpbusd(1, 4, 7);
    if (block->panels == 2) return;
    LOAD_B(6, of->b + 2 * of->apart);
    _tile_dpbusd(2, 4, 6);
    if (block->panels == 3) return;
    LOAD_B(7, of->b + 3 * of->apart);
    _tile_dpbusd(3, 4, 7);
}

/* Computes the sums of a row tile and panel: high digits, then mixed products. */
VF void multiply_u8x2(const bool first, const bool keeps_a, const tile_block *block, const tile_operands *of,
                      int32_t *before)
{
    LOAD_A(4, of->a);
    LOAD_B(7, of->b + of->apart);
    BEGIN(1)
    _tile_dpbusd(1, 4, 7);
    LOAD_B(6, of->b);
    BEGIN(0)
    _tile_dpbusd(0, 4, 6);
    if (block->row_tiles == 2) {
        LOAD_A(5, of->a + of->apart);
        BEGIN(3)
        _tile_dpbusd(3, 5, 7);
        BEGIN(2)
        _tile_dpbusd(2, 5, 6);
        LOAD_A(4, of->a_low);
        _tile_dpbusd(1, 4, 6);
        LOAD_A(5, of->a_low + of->apart);
        _tile_dpbusd(3, 5, 6);
        return;
    }
    LOAD_A(5, of->a_low);
    BEGIN(2)
    BEGIN(3)
    if (block->panels == 2) {
        LOAD_B(7, of->b + 2 * of->apart);
        _tile_dpbusd(2, 4, 7);
        _tile_dpbusd(3, 5, 7);
    }
    _tile_dpbusd(1, 5, 6);
    if (block->panels == 1) return;
    LOAD_B(7, of->b + 3 * of->apart);
    _tile_dpbusd(3, 4, 7);
}

/* Computes the sums of a row tile and panel: of the high digits, then of the low ones. */
VF void multiply_u15(const bool first, const bool keeps_a, const tile_block *block, const tile_operands *of,
                     int32_t *before)
{
    LOAD_A(4, of->a);
    LOAD_B(6, of->b);
    BEGIN(0)
    _tile_dpbusd(0, 4, 6);
    LOAD_A(5, of->a_low);
    BEGIN(1)
    _tile_dpbusd(1, 5, 6);
    BEGIN(2)
    BEGIN(3)
    if (block->row_tiles == 2) {
        LOAD_A(4, of->a + of->apart);
        _tile_dpbusd(2, 4, 6);
        LOAD_A(5, of->a_low + of->apart);
        _tile_dpbusd(3, 5, 6);
        return;
    }
    if (block->panels == 1) return;
    LOAD_B(7, of->b + of->apart);
    _tile_dpbusd(2, 4, 7);
    _tile_dpbusd(3, 5, 7);
}

VF void multiply_step(const integer_format format, const bool first, const bool keeps_a, const tile_block *block,
                      const tile_operands *of, int32_t *before)
{
    if (format == ONE_DIGIT)
        multiply_u8(first, keeps_a, block, of, before);
    else if (format == FIFTEEN_BITS)
        multiply_u15(first, keeps_a, block, of, before);
    else
        multiply_u8x2(first, keeps_a, block, of, before);
}

/* Computes the sums of a block and, meanwhile, the epilogue of the one before. */
VF void multiply_block(const integer_format format, const bool keeps_a, const integer_gemm_task *task, tile_walk *walk,
                       tile_block block)
{
    const size_t steps = task->depth / DIGIT_TILE_INPUTS, strip_rows = walk->strip_rows;
    const uint8_t *a = task->a + digit_at(task->depth, block.row, 0);
    tile_operands of = {.a = a, .a_low = a + task->a_plane_bytes, .apart = task->depth * DIGIT_TILE_ROWS};
    of.b = task->b + block.panel * of.apart * (size_t)FORMAT_DIGITS(format);
    size_t done = 0;
    multiply_step(format, true, keeps_a, &block, &of, walk->sums);
    integer_fetch_step(&walk->fetch);
    for (size_t k = 1; k < steps; k++) {
        of.a += TILE_BYTES;
        of.a_low += TILE_BYTES;
        of.b += TILE_BYTES;
        multiply_step(format, false, keeps_a, &block, &of, walk->sums);
        integer_fetch_step(&walk->fetch);
        const size_t due = strip_rows * k / steps;
        if (due - done < FINISHED_ROWS) continue;
        walk->finish(&walk->before, due - done);
        done = due;
    }
    walk->finish(&walk->before, strip_rows - done);
    begin_epilogue(format, &walk->before, task, &block, walk->sums);
    walk->strip_rows = strip_rows_of(task, &block);
}

/* Multiplies all rows by as many panels as a block of one row tile has. Pairs of row tiles take half of the panels at a
 * time, which stay in L1 for all of them. */
VF void multiply_panels(const integer_format format, const integer_gemm_task *task, tile_walk *walk, size_t panel,
                        size_t panels)
{
    const size_t row_tiles = (task->rows + DIGIT_TILE_ROWS - 1) / DIGIT_TILE_ROWS,
                 half = SUM_TILES / (size_t)FORMAT_SUMS(format) / 2, pairs = row_tiles / 2;
    const size_t blocks = pairs * ((panels + half - 1) / half) + row_tiles % 2;
    walk->fetch = integer_fetch_of(format, task, panel, panels, blocks * (task->depth / DIGIT_TILE_INPUTS));
    for (size_t block = 0; block < blocks; block++) {
        const size_t first = pairs ? block / pairs * half : 0, left = panels - first;
        tile_block at = {.row = block % (pairs + !pairs) * 2 * DIGIT_TILE_ROWS,
                         .row_tiles = 2,
                         .panel = panel + first,
                         .panels = left < half ? left : half};
        if (row_tiles % 2 && block + 1 == blocks)
            at = (tile_block){
                .row = (row_tiles - 1) * DIGIT_TILE_ROWS, .row_tiles = 1, .panel = panel, .panels = panels};
        if (pairs > 1)
            multiply_block(format, false, task, walk, at);
        else
            multiply_block(format, true, task, walk, at);
    }
}

VF void multiply_all(const integer_format format, const integer_gemm_task *given)
{
    const integer_gemm_task task = *given; /* a local copy, so that writing C cannot change it */
    const size_t most = SUM_TILES / (size_t)FORMAT_SUMS(format);
    int32_t sums[SUM_TILES * TILE_SUMS] __attribute__((aligned(64)));
    tile_walk walk = {.sums = sums, .finish = finish_of(format, given)};
    integer_gemm_task_assert(&task);
    if (task.rows == 0 || task.depth == 0) return;
    tiles_take();
    for (size_t panel = 0; panel < task.panels; panel += most)
        multiply_panels(format, &task, &walk, panel, task.panels - panel < most ? task.panels - panel : most);
    _tile_stored(0, sums, TILE_LINE);
    _tile_stored(1, sums + TILE_SUMS, TILE_LINE);
    _tile_stored(2, sums + 2 * TILE_SUMS, TILE_LINE);
    _tile_stored(3, sums + 3 * TILE_SUMS, TILE_LINE);
    tiles_give_back();
    walk.finish(&walk.before, SIZE_MAX);
}

static void VF_NAME(gemm_u8)(const integer_gemm_task *task) { multiply_all(ONE_DIGIT, task); }
static void VF_NAME(gemm_u8x2)(const integer_gemm_task *task) { multiply_all(TWO_DIGITS, task); }
static void VF_NAME(gemm_u15)(const integer_gemm_task *task) { multiply_all(FIFTEEN_BITS, task); }

#include "simd/tmpl/integer_part_tmpl.h"
