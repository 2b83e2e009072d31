/* Describes products of float32 and the kernels around them: gemm_f32, gemm_tn_f32, pack_panels_f32, and the sums over
 * rows.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "check/kernels/activations.h"
#include "core/base/numbers.h"

static size_t panels_of(const kernel_problem *p) { return p->columns / PANEL; }

/* Declares a matrix [panels][rows][16], as pack_panels_f32 writes it. */
static void take_packed(kernel_problem *p, size_t k, const char *name, array_kind kind, size_t panels, size_t rows,
                        float scale)
{
    problem_array *a = take_vector(p, k, name, kind, 0, scale);
    a->blocks = panels;
    a->block_stride = p->plain ? rows * PANEL : problem_stride(p, rows * PANEL);
    a->rows = rows;
    a->ld = a->width = PANEL;
    count_words(a);
}

/* --------------------------------------------------------------------------------------------------------- gemm_f32 */

/* Describes C [rows][columns] = A [rows][depth] B. */
enum {
    GEMM_A,
    GEMM_B,
    GEMM_C,
    GEMM_C_SCALE,
    GEMM_BIAS,
    GEMM_OUTER_COLUMN,
    GEMM_OUTER_ROW,
    GEMM_RESIDUAL,
    GEMM_ROW_SCALE
};

static void gemm_f32_lay_out(kernel_problem *p)
{
    if (!has_option(p, ACCUMULATE)) p->options &= ~(unsigned)WITH_C_SCALE;
    if (has_option(p, RESIDUAL_IN_C)) p->options &= ~(unsigned)WITH_RESIDUAL;
    take_matrix(p, GEMM_A, "a", ARRAY_INPUT, p->rows, p->depth, 1);
    take_packed(p, GEMM_B, "b", ARRAY_INPUT, panels_of(p), p->depth, 0.25f);
    take_panels(p, GEMM_C, "c", ARRAY_OUTPUT, p->rows, panels_of(p), has_option(p, ACCUMULATE | RESIDUAL_IN_C) ? 1 : 0);
    if (has_option(p, WITH_C_SCALE)) take_vector(p, GEMM_C_SCALE, "c_scale", ARRAY_INPUT, p->rows, 0.5f);
    if (has_option(p, WITH_BIAS)) take_vector(p, GEMM_BIAS, "bias", ARRAY_INPUT, p->columns, 1);
    if (has_option(p, WITH_OUTER)) {
        take_matrix(p, GEMM_OUTER_COLUMN, "outer_column", ARRAY_INPUT, p->rows, 1, 1);
        take_vector(p, GEMM_OUTER_ROW, "outer_row", ARRAY_INPUT, p->columns, 1);
    }
    if (has_option(p, WITH_RESIDUAL)) take_panels(p, GEMM_RESIDUAL, "residual", ARRAY_INPUT, p->rows, panels_of(p), 1);
    if (has_option(p, WITH_ROW_SCALE)) take_vector(p, GEMM_ROW_SCALE, "row_scale", ARRAY_INPUT, p->rows, 2);
}

static void gemm_f32_call(const kernels *table, const kernel_problem *p)
{
    const size_t residual = has_option(p, RESIDUAL_IN_C) ? GEMM_C : GEMM_RESIDUAL;
    const bool adds_residual = has_option(p, WITH_RESIDUAL | RESIDUAL_IN_C);
    const gemm_task task = {.rows = p->rows,
                            .depth = p->depth,
                            .panels = panels_of(p),
                            .a = now_in(p, GEMM_A),
                            .lda = p->arrays[GEMM_A].ld,
                            .b = now_in(p, GEMM_B),
                            .b_panel_stride = p->arrays[GEMM_B].block_stride,
                            .c = now_in(p, GEMM_C),
                            .ldc = p->arrays[GEMM_C].ld,
                            .c_panel_stride = p->arrays[GEMM_C].block_stride,
                            .c_scale = now_in(p, GEMM_C_SCALE),
                            .bias = now_in(p, GEMM_BIAS),
                            .outer_column = now_in(p, GEMM_OUTER_COLUMN),
                            .outer_ld = p->arrays[GEMM_OUTER_COLUMN].ld,
                            .outer_row = now_in(p, GEMM_OUTER_ROW),
                            .residual = adds_residual ? now_in(p, residual) : NULL,
                            .ld_residual = p->arrays[residual].ld,
                            .residual_panel_stride = p->arrays[residual].block_stride,
                            .row_scale = now_in(p, GEMM_ROW_SCALE),
                            .accumulate = has_option(p, ACCUMULATE),
                            .gelu = has_option(p, WITH_GELU),
                            .next = !has_option(p, FETCH_NEXT) ? NULL
                                    : p->next                  ? p->next
                                                               : now_in(p, GEMM_B)};
    table->gemm_f32(&task);
}

static exact_sum exact_element(const kernel_problem *p, size_t i, size_t j)
{
    exact_sum x = {0};
    if (has_option(p, ACCUMULATE))
        add_term(&x, given(p, GEMM_C, i, j) * (has_option(p, WITH_C_SCALE) ? given(p, GEMM_C_SCALE, 0, i) : 1));
    for (size_t k = 0; k < p->depth; k++) add_term(&x, given(p, GEMM_A, i, k) * given(p, GEMM_B, k, j));
    if (has_option(p, WITH_BIAS)) add_term(&x, given(p, GEMM_BIAS, 0, j));
    if (has_option(p, WITH_GELU)) {
        x.value = exact_activation(x.value, ACTIVATION_GELU);
        x.terms *= 1.13; /* largest slope of GELU */
    }
    if (has_option(p, WITH_OUTER)) {
        add_term(&x, given(p, GEMM_OUTER_COLUMN, i, 0));
        add_term(&x, given(p, GEMM_OUTER_ROW, 0, j));
    }
    if (has_option(p, WITH_RESIDUAL)) add_term(&x, given(p, GEMM_RESIDUAL, i, j));
    if (has_option(p, RESIDUAL_IN_C)) add_term(&x, given(p, GEMM_C, i, j));
    if (has_option(p, WITH_ROW_SCALE)) {
        x.value *= given(p, GEMM_ROW_SCALE, 0, i);
        x.terms *= fabs(given(p, GEMM_ROW_SCALE, 0, i));
    }
    return x;
}

static void gemm_f32_exact(const kernel_problem *p, const exact_judge *judge)
{
    /* Counts the roundings of a result: one per product, one each for c_scale, bias, outer (2), residual and row_scale,
     * and 6 for GELU. */
    const double limit = (double)p->depth + 6 + (has_option(p, WITH_GELU) ? 6 : 0);
    for (size_t j = 0; j < p->columns; j++)
        for (size_t i = 0; i < p->rows; i++)
            if (!expect_sum(p, judge, GEMM_C, place_in(&p->arrays[GEMM_C], i, j), exact_element(p, i, j), limit))
                return;
}

DESCRIBE_KERNEL(gemm_f32, "gemm", .drawn = {40, 160, 8 * PANEL}, .measured = {96, 768, 192},
                .optional = WITH_BIAS | WITH_GELU | WITH_OUTER | WITH_RESIDUAL | RESIDUAL_IN_C | WITH_ROW_SCALE |
                            ACCUMULATE | WITH_C_SCALE | FETCH_NEXT,
                .column_unit = PANEL, .multiplies = true, .moved = {1, 1, 1})

/* -------------------------------------------------------------------------------------------------- pack_panels_f32 */

enum { PACK_X, PACK_PANELS };

static void pack_panels_f32_lay_out(kernel_problem *p)
{
    take_matrix(p, PACK_X, "x", ARRAY_INPUT, p->rows, p->depth, 1);
    take_packed(p, PACK_PANELS, "panels", ARRAY_OUTPUT, ceiling_divide(p->rows, PANEL), p->depth, 0);
}

static void pack_panels_f32_call(const kernels *table, const kernel_problem *p)
{
    table->pack_panels_f32(now_in(p, PACK_PANELS), p->arrays[PACK_PANELS].block_stride, now_in(p, PACK_X),
                           p->arrays[PACK_X].ld, p->rows, p->depth);
}

/* The kernel only moves data, so every word is known exactly. */
static void pack_panels_f32_exact(const kernel_problem *p, const exact_judge *judge)
{
    for (size_t r = 0; r < round_up(p->rows, PANEL); r++)
        for (size_t k = 0; k < p->depth; k++) {
            const double want = r < p->rows ? given(p, PACK_X, r, k) : 0;
            if (!expect_result(p, judge, PACK_PANELS, place_in(&p->arrays[PACK_PANELS], k, r),
                               (exact_value){want, 1, 0, UNIT_EPS_S}))
                return;
        }
}

DESCRIBE_KERNEL(pack_panels_f32, "pack", .drawn = {40, 160, 0}, .measured = {96, 64, 0}, .moved = {0, 2, 0},
                .elements = ROWS_DEPTH)

/* -------------------------------------------------------------------------------------------------- sums over rows */

/* Draws random cuts; about every fourth part is empty. */
static void choose_bounds(kernel_problem *p)
{
    p->bounds[0] = 0;
    for (size_t part = 0; part < p->parts; part++) {
        const size_t left = p->rows - p->bounds[part];
        size_t here = draw_below(p, 4) == 0 ? 0 : draw_below(p, 2 * left / (p->parts - part) + 2);
        if (here > left || part + 1 == p->parts) here = left;
        p->bounds[part + 1] = p->bounds[part] + here;
    }
}

/* Returns an upper bound of the roundings of a sum, whatever its cuts: additions and products. */
static double sum_limit(const kernel_problem *p) { return (double)p->rows + MAX_ROW_PARTS; }

/* Judges array k, which holds, for every column of A, the sum over all rows, of products with B if with_products. */
static bool expect_column_sums(const kernel_problem *p, const exact_judge *judge, size_t k, size_t columns,
                               bool with_products)
{
    for (size_t j = 0; j < columns; j++) {
        exact_sum want = {0};
        for (size_t r = 0; r < p->rows; r++)
            add_term(&want, given(p, GEMM_A, r, j) * (with_products ? given(p, GEMM_B, r, j) : 1));
        if (!expect_sum(p, judge, k, j, want, sum_limit(p))) return false;
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------------ gemm_tn_f32 */

/* Describes C [depth][columns] = A' B, with A [rows][depth] and B [rows][columns]. */
enum { TN_SUMS = GEMM_C + 1 };

static void gemm_tn_f32_lay_out(kernel_problem *p)
{
    if (p->parts) p->options &= ~(unsigned)ACCUMULATE;
    if (!p->parts || !p->columns) p->options &= ~(unsigned)WITH_SUMS;
    choose_bounds(p);
    take_matrix(p, GEMM_A, "a", ARRAY_INPUT, p->rows, p->depth, 1);
    take_panels(p, GEMM_B, "b", ARRAY_INPUT, p->rows, panels_of(p), 1);
    take_panels(p, GEMM_C, "c", ARRAY_OUTPUT_ANY_ZERO, p->depth, panels_of(p), has_option(p, ACCUMULATE) ? 1 : 0);
    if (has_option(p, WITH_SUMS)) take_vector(p, TN_SUMS, "sums", ARRAY_OUTPUT_ANY_ZERO, p->depth, 0);
}

static void gemm_tn_f32_call(const kernels *table, const kernel_problem *p)
{
    const gemm_tn_task task = {.columns = p->depth,
                               .panels = panels_of(p),
                               .a = now_in(p, GEMM_A),
                               .lda = p->arrays[GEMM_A].ld,
                               .b = now_in(p, GEMM_B),
                               .ldb = p->arrays[GEMM_B].ld,
                               .b_panel_stride = p->arrays[GEMM_B].block_stride,
                               .c = now_in(p, GEMM_C),
                               .ldc = p->arrays[GEMM_C].ld,
                               .c_panel_stride = p->arrays[GEMM_C].block_stride,
                               .bounds = p->parts ? p->bounds : NULL,
                               .parts = p->parts,
                               .rows = p->rows,
                               .accumulate = has_option(p, ACCUMULATE),
                               .sums = now_in(p, TN_SUMS)};
    table->gemm_tn_f32(&task);
}

static void gemm_tn_f32_exact(const kernel_problem *p, const exact_judge *judge)
{
    if (has_option(p, WITH_SUMS) && !expect_column_sums(p, judge, TN_SUMS, p->depth, false)) return;
    for (size_t i = 0; i < p->depth; i++)
        for (size_t j = 0; j < p->columns; j++) {
            exact_sum want = {0};
            if (has_option(p, ACCUMULATE)) add_term(&want, given(p, GEMM_C, i, j));
            for (size_t r = 0; r < p->rows; r++) add_term(&want, given(p, GEMM_A, r, i) * given(p, GEMM_B, r, j));
            if (!expect_sum(p, judge, GEMM_C, place_in(&p->arrays[GEMM_C], i, j), want, sum_limit(p))) return;
        }
}

DESCRIBE_KERNEL(gemm_tn_f32, "gemm_tn", .drawn = {160, 40, 8 * PANEL}, .measured = {96, 384, 192},
                .optional = ACCUMULATE | WITH_SUMS, .has_parts = true, .column_unit = PANEL, .multiplies = true,
                .moved = {1, 1, 1}, .elements = DEPTH_COLUMNS)

/* ------------------------------------------------------------------------------------------- sum_rows_f32, dot_rows_f32 */

static void sum_rows_f32_lay_out(kernel_problem *p)
{
    if (!p->parts) p->parts = 1;
    choose_bounds(p);
    take_matrix(p, GEMM_A, "a", ARRAY_INPUT, p->rows, p->columns, 1);
    if (has_option(p, WITH_PRODUCTS)) take_matrix(p, GEMM_B, "b", ARRAY_INPUT, p->rows, p->columns, 1);
    take_vector(p, GEMM_C, "y", ARRAY_OUTPUT_ANY_ZERO, p->columns, 0);
}

static void sum_rows_f32_call(const kernels *table, const kernel_problem *p)
{
    const sum_rows_task task = {.n = p->columns,
                                .a = now_in(p, GEMM_A),
                                .b = now_in(p, GEMM_B),
                                .lda = p->arrays[GEMM_A].ld,
                                .ldb = p->arrays[GEMM_B].ld,
                                .bounds = p->bounds,
                                .parts = p->parts,
                                .y = now_in(p, GEMM_C)};
    table->sum_rows_f32(&task);
}

static void sum_rows_f32_exact(const kernel_problem *p, const exact_judge *judge)
{
    expect_column_sums(p, judge, GEMM_C, p->columns, has_option(p, WITH_PRODUCTS));
}

DESCRIBE_KERNEL(sum_rows_f32, "sum_rows", .drawn = {160, 0, 8 * PANEL}, .measured = {96, 0, 768},
                .optional = WITH_PRODUCTS, .has_parts = true, .moved = {1, 0, 0})

static void dot_rows_f32_lay_out(kernel_problem *p)
{
    take_matrix(p, GEMM_A, "a", ARRAY_INPUT, p->rows, p->columns, 1);
    take_matrix(p, GEMM_B, "b", ARRAY_INPUT, p->rows, p->columns, 1);
    take_vector(p, GEMM_C, "y", ARRAY_OUTPUT_ANY_ZERO, p->rows, 0);
}

static void dot_rows_f32_call(const kernels *table, const kernel_problem *p)
{
    table->dot_rows_f32(now_in(p, GEMM_C), now_in(p, GEMM_A), p->arrays[GEMM_A].ld, now_in(p, GEMM_B),
                        p->arrays[GEMM_B].ld, p->rows, p->columns);
}

static void dot_rows_f32_exact(const kernel_problem *p, const exact_judge *judge)
{
    for (size_t i = 0; i < p->rows; i++) {
        exact_sum want = {0};
        for (size_t e = 0; e < p->columns; e++) add_term(&want, given(p, GEMM_A, i, e) * given(p, GEMM_B, i, e));
        if (!expect_sum(p, judge, GEMM_C, i, want, (double)p->columns / PANEL + 8)) return;
    }
}

DESCRIBE_KERNEL(dot_rows_f32, "dot_rows", .drawn = {40, 0, 1000}, .measured = {96, 0, 768}, .moved = {2, 0, 0})
