/* Implements gemm_u8, gemm_u8x2 and gemm_u15 for instruction sets that multiply quads of bytes by quads of s8 and add
 * all four to a 32-bit lane. It uses the register tiles of gemm_tmpl.h, with a quad of inputs in place of one.
 * INTEGER_OPERAND selects how A's digits are multiplied: as stored, or 128 less where the instruction takes signed
 * bytes on both sides.
 *
 * For two digits a tile keeps two sums, high and mixed, and computes three products of every pair of quads. For 15 bits
 * it sums all high digits, multiplies the sum by 128, and adds the low ones.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "simd/tmpl/integer_finish_tmpl.h"

enum { QUAD_BYTES = 4, QUADS = DIGIT_TILE_INPUTS / QUAD_BYTES, PANEL_QUAD_BYTES = QUAD_BYTES * PANEL };

/* Copies a quad of A to all lanes. */
VF vi broadcast_quad(const uint8_t *p)
{
    int32_t quad;
    __builtin_memcpy(&quad, p, sizeof quad);
    const vi stored = vi_set1(quad);
    return INTEGER_OPERAND == DIGITS_LESS_128 ? vi_xor(stored, vi_set1((int32_t)0x80808080u)) : stored;
}

/* Computes x[row][vector of outputs][sum] += 64 inputs, at a (its low digits at a + a_plane) and b (at b + b_plane). */
VF void dot_inputs(const int digits, const int rows, const int panels, vi x[INTEGER_MAX_ROWS][INTEGER_MAX_VECTORS][2],
                   const uint8_t *a, size_t a_plane, const int8_t *b, size_t b_plane, size_t b_panel)
{
    UNROLL_DEPTH for (int q = 0; q < QUADS; q++) {
        vi y[INTEGER_MAX_VECTORS], z[INTEGER_MAX_VECTORS];
        UNROLL for (int v = 0; v < panels * VECTORS; v++) {
            const int8_t *at = b + (size_t)(v / VECTORS) * b_panel + q * PANEL_QUAD_BYTES + v % VECTORS * VF_LANES * QUAD_BYTES;
            y[v] = vi_load_bytes(at);
            if (digits == 2) z[v] = vi_load_bytes(at + b_plane);
        }
        UNROLL for (int i = 0; i < rows; i++) {
            const vi s = broadcast_quad(a + i * DIGIT_TILE_INPUTS + q * QUAD_BYTES);
            UNROLL for (int v = 0; v < panels * VECTORS; v++) {
                x[i][v][0] = vi_dot(x[i][v][0], s, y[v]);
                if (digits == 2) x[i][v][1] = vi_dot(x[i][v][1], s, z[v]);
            }
            if (digits == 1) continue;
            const vi low = broadcast_quad(a + a_plane + i * DIGIT_TILE_INPUTS + q * QUAD_BYTES);
            UNROLL for (int v = 0; v < panels * VECTORS; v++) x[i][v][1] = vi_dot(x[i][v][1], low, y[v]);
        }
    }
}

/* Functions that convert the sums of a tile to C; each serves all numbers of rows. */
#define DOT_FINISH(format, name, panels)                                                                               \
    static __attribute__((noinline)) void VF_NAME(name##_##panels)(const integer_gemm_task *task, size_t rows, size_t row, \
                                                                    size_t panel, const int32_t *sums)                 \
    {                                                                                                                  \
        integer_finish(format, INTEGER_OPERAND, panels, task, rows, row, panel, sums);                                 \
    }
#define DOT_FINISH_ALL(panels)                                                                                         \
    DOT_FINISH(ONE_DIGIT, dot_finish_u8, panels)                                                                       \
    DOT_FINISH(TWO_DIGITS, dot_finish_u8x2, panels)                                                                    \
    DOT_FINISH(FIFTEEN_BITS, dot_finish_u15, panels)
DOT_FINISH_ALL(1)
#if INTEGER_PANELS(1) > 1
DOT_FINISH_ALL(2)
#endif
#if INTEGER_PANELS(1) > 2
DOT_FINISH(ONE_DIGIT, dot_finish_u8, 3)
DOT_FINISH(FIFTEEN_BITS, dot_finish_u15, 3)
#endif

typedef void dot_finish_function(const integer_gemm_task *task, size_t rows, size_t row, size_t panel, const int32_t *sums);

VF dot_finish_function *dot_finish_of(const integer_format format, const int panels)
{
    (void)panels; /* unused where there is only one number of panels */
#define FINISH_OF(n)                                                                                                   \
    (format == ONE_DIGIT ? VF_NAME(dot_finish_u8_##n) : format == TWO_DIGITS ? VF_NAME(dot_finish_u8x2_##n) : VF_NAME(dot_finish_u15_##n))
#if INTEGER_PANELS(1) > 2
    if (panels == 3) return format == ONE_DIGIT ? VF_NAME(dot_finish_u8_3) : VF_NAME(dot_finish_u15_3);
#endif
#if INTEGER_PANELS(1) > 1
    if (panels == 2) return FINISH_OF(2);
#endif
    return FINISH_OF(1);
#undef FINISH_OF
}

VF void dot_tile(const integer_format format, const int rows, const int panels, const integer_gemm_task *task, size_t row,
                 size_t panel, integer_fetch *fetch)
{
    const int digits = FORMAT_DIGITS(format);
    const size_t b_plane = task->depth * PANEL, b_panel = b_plane * (size_t)digits;
    const uint8_t *a = task->a + digit_at(task->depth, row, 0);
    const int8_t *b = task->b + panel * b_panel;
    vi x[INTEGER_MAX_ROWS][INTEGER_MAX_VECTORS][2];
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int v = 0; v < panels * VECTORS; v++) x[i][v][0] = x[i][v][1] = vi_set1(0);
    const int passes = format == FIFTEEN_BITS ? 2 : 1;
    for (int pass = 0; pass < passes; pass++, a += task->a_plane_bytes) {
        if (format == FIFTEEN_BITS) /* In the first pass this shifts zeros. */
            UNROLL for (int i = 0; i < rows; i++)
                UNROLL for (int v = 0; v < panels * VECTORS; v++) x[i][v][0] = vi_shift_left7(x[i][v][0]);
        for (size_t k = 0; k < task->depth; k += DIGIT_TILE_INPUTS) {
            if (pass == 0) integer_fetch_step(fetch);
            dot_inputs(digits, rows, panels, x, a + k * DIGIT_TILE_ROWS, task->a_plane_bytes, b + k * PANEL, b_plane, b_panel);
        }
    }
    /* Passes the sums through memory that the compiler does not see; otherwise it keeps the sums there during the
     * products, too. */
    int32_t sums[INTEGER_MAX_ROWS * INTEGER_MAX_VECTORS * 2 * VF_LANES];
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int v = 0; v < panels * VECTORS; v++)
            UNROLL for (int d = 0; d < digits; d++)
                vi_store(sums + ((i * panels + v / VECTORS) * digits + d) * PANEL + v % VECTORS * VF_LANES, x[i][v][d]);
    size_t count = (size_t)rows; /* hidden too: the compiler would make a copy of the epilogue for each number of
                                  * rows */
    __asm__ volatile("" : "+r"(count) : "r"(sums) : "memory");
    dot_finish_of(format, panels)(task, count, row, panel, sums);
}

#define DOT_CASE(n)                                                                                                    \
    case n:                                                                                                            \
        if (n <= INTEGER_ROWS(FORMAT_DIGITS(format), panels)) dot_tile(format, n, panels, task, row, panel, &fetch);    \
        break;

/* Multiplies all rows by `panels` panels. A tile of 16 rows is cut into balanced groups: (16 = 8 + 8, 11 = 6 + 5). */
VF void dot_panels(const integer_format format, const int panels, const integer_gemm_task *task, size_t panel)
{
    const size_t most = INTEGER_ROWS(FORMAT_DIGITS(format), panels), full = (DIGIT_TILE_ROWS + most - 1) / most;
    const size_t rest = task->rows % DIGIT_TILE_ROWS, groups = task->rows / DIGIT_TILE_ROWS * full + (rest + most - 1) / most;
    integer_fetch fetch =
        integer_fetch_of(format, task, panel, (size_t)panels, groups * (task->depth / DIGIT_TILE_INPUTS));
    for (size_t first = 0; first < task->rows; first += DIGIT_TILE_ROWS) {
        const size_t here = task->rows - first < DIGIT_TILE_ROWS ? task->rows - first : DIGIT_TILE_ROWS;
        const size_t parts = (here + most - 1) / most;
        for (size_t part = 0, row = first; part < parts; part++) {
            const size_t end = first + here * (part + 1) / parts;
            switch (end - row) {
                DOT_CASE(1) DOT_CASE(2) DOT_CASE(3) DOT_CASE(4) DOT_CASE(5) DOT_CASE(6)
#if INTEGER_MAX_ROWS > 6
                DOT_CASE(7) DOT_CASE(8)
#endif
            }
            row = end;
        }
    }
}

VF void dot_all(const integer_format format, const integer_gemm_task *task)
{
    integer_gemm_task_assert(task);
    for (size_t panel = 0; panel < task->panels;) {
        const size_t left = task->panels - panel, most = INTEGER_PANELS(FORMAT_DIGITS(format)), here = left < most ? left : most;
        switch (here) {
        case 1: dot_panels(format, 1, task, panel); break;
#if INTEGER_PANELS(1) > 1
        case 2: dot_panels(format, 2, task, panel); break;
#endif
#if INTEGER_PANELS(1) > 2
        case 3:
            if (format != TWO_DIGITS) dot_panels(format, 3, task, panel);
            break;
#endif
        }
        panel += here;
    }
}

static void VF_NAME(gemm_u8)(const integer_gemm_task *task) { dot_all(ONE_DIGIT, task); }
static void VF_NAME(gemm_u8x2)(const integer_gemm_task *task) { dot_all(TWO_DIGITS, task); }
static void VF_NAME(gemm_u15)(const integer_gemm_task *task) { dot_all(FIFTEEN_BITS, task); }
