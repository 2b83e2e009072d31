/* gemm_u8, gemm_u8x2, gemm_u15: sums of integers that are known exactly. SPDX-License-Identifier: MIT */
#include "tests/checkasm/check_integer.h"

#include <math.h>

typedef struct integer_case {
    integer_format format;
    size_t rows, depth, panels;
    bool accumulate, bias, gelu, residual, next, extreme; /* extreme: all digits as large as they can be */
    bool c_scale, outer, row_scale;

    /* chosen by the body */
    size_t a_plane, ldc, ld_residual;
    test_buffer *a, *a_scale, *a_zero, *b, *b_scale, *b_sum, *c, *bias_values, *residual_values;
    test_buffer *c_scales, *outer_column, *outer_row, *row_scales;
} integer_case;

static void call_gemm_u8(const kernels *table, const void *task) { table->gemm_u8(task); }
static void call_gemm_u8x2(const kernels *table, const void *task) { table->gemm_u8x2(task); }

static void call_gemm_u15(const kernels *table, const void *task) { table->gemm_u15(task); }

static const void *integer_task_for(void *context, int copy)
{
    static integer_gemm_task task;
    const integer_case *g = context;
    task = (integer_gemm_task){
        .rows = g->rows,
        .depth = g->depth,
        .panels = g->panels,
        .a = (const uint8_t *)g->a->copy[copy],
        .a_plane_bytes = g->a_plane,
        .a_scale = g->a_scale->copy[copy],
        .a_zero = (const int32_t *)g->a_zero->copy[copy],
        .b = (const int8_t *)g->b->copy[copy],
        .b_scale = g->b_scale->copy[copy],
        .b_sum = (const int32_t *)g->b_sum->copy[copy],
        .c = g->c->copy[copy],
        .ldc = g->ldc,
        .c_panel_stride = PANEL,
        .c_scale = optional(g->c_scales, copy),
        .bias = optional(g->bias_values, copy),
        .outer_column = optional(g->outer_column, copy),
        .outer_ld = 1,
        .outer_row = optional(g->outer_row, copy),
        .residual = optional(g->residual_values, copy),
        .row_scale = optional(g->row_scales, copy),
        .ld_residual = g->ld_residual,
        .residual_panel_stride = PANEL,
        .accumulate = g->accumulate,
        .gelu = g->gelu,
        .next = g->next ? g->b->copy[copy] : NULL,
    };
    return &task;
}

static int8_t weight_digit(const integer_case *g, int digit, size_t k, size_t j)
{
    const int8_t *b = (const int8_t *)g->b->copy[COPY_INITIAL];
    const size_t plane = g->depth * PANEL;
    return b[(j / PANEL * FORMAT_DIGITS(g->format) + (size_t)digit) * plane + k / 4 * (4 * PANEL) + j % PANEL * 4 +
             k % 4];
}

static int row_digit(const integer_case *g, int digit, size_t i, size_t k)
{
    const uint8_t *a = (const uint8_t *)g->a->copy[COPY_INITIAL];
    return a[(size_t)digit * g->a_plane + digit_at(g->depth, i, k)];
}

static void fill_operands(test_run *run, integer_case *g)
{
    uint8_t *a = (uint8_t *)g->a->copy[COPY_INITIAL];
    int8_t *b = (int8_t *)g->b->copy[COPY_INITIAL];
    int32_t *zero = (int32_t *)g->a_zero->copy[COPY_INITIAL], *sum = (int32_t *)g->b_sum->copy[COPY_INITIAL];
    const bool two = g->format == TWO_DIGITS;
    for (size_t e = 0; e < g->a_plane * FORMAT_PLANES(g->format); e++) {
        const bool low = e >= g->a_plane;
        const int least = low && two ? 64 : 0; /* of a low digit */
        const int random = low ? least + (int)random_index(run, 128) : (int)random_index(run, 255 + !two);
        a[e] = (uint8_t)(g->extreme ? (low ? least + 127 : 255) : random + (two && !low));
    }
    const size_t plane = g->depth * PANEL;
    for (size_t e = 0; e < plane * g->panels * FORMAT_DIGITS(g->format); e++) {
        const bool low = two && e / plane % 2 == 1;
        const int random = low ? (int)random_index(run, 128) - 64 : (int)random_index(run, 255) - 127;
        const int sign =
            g->format == FIFTEEN_BITS ? e / plane % 2 : e % 3 > 0; /* whole columns: their sums are largest */
        b[e] = (int8_t)(g->extreme ? (low ? -64 : sign ? 127 : -127) : random);
    }
    for (size_t i = 0; i < g->rows; i++) {
        zero[i] = g->extreme ? (int32_t)(i % 2) * 255 : (int32_t)random_index(run, 256);
        g->a_scale->copy[COPY_INITIAL][i] = random_uniform(run, 0.001f, 0.1f);
    }
    for (size_t j = 0; j < g->panels * PANEL; j++) {
        int32_t first = 0, both = 0;
        for (size_t k = 0; k < g->depth; k++) {
            first += weight_digit(g, 0, k, j);
            both += weight_digit(g, 0, k, j) + (two ? weight_digit(g, 1, k, j) : 0);
        }
        int32_t *at = sum + j / PANEL * FORMAT_DIGITS(g->format) * PANEL + j % PANEL;
        at[0] = first;
        if (two) at[PANEL] = both;
        g->b_scale->copy[COPY_INITIAL][j] = random_uniform(run, 0.001f, 0.1f);
    }
}

/* Before the scales, exactly. */
static double exact_sum(const integer_case *g, size_t i, size_t j)
{
    int64_t high = 0, mixed = 0;
    const int32_t zero = ((const int32_t *)g->a_zero->copy[COPY_INITIAL])[i];
    for (size_t k = 0; k < g->depth; k++) {
        const int b = weight_digit(g, 0, k, j);
        if (g->format == FIFTEEN_BITS) {
            high += (128 * row_digit(g, 0, i, k) + row_digit(g, 1, i, k)) * b;
            continue;
        }
        const int a = row_digit(g, 0, i, k) - (g->format == ONE_DIGIT ? zero : DIGIT_OFFSET);
        high += a * b;
        if (g->format == TWO_DIGITS) mixed += a * weight_digit(g, 1, k, j) + (row_digit(g, 1, i, k) - DIGIT_OFFSET) * b;
    }
    return (double)high + (double)mixed / 128;
}

static void compare_products(test_run *run, const integer_case *g)
{
    for (size_t i = 0; i < g->rows; i++)
        for (size_t j = 0; j < g->panels * PANEL; j++) {
            const size_t index = i * g->ldc + j;
            const double scales = (double)g->a_scale->copy[COPY_INITIAL][i] * (double)g->b_scale->copy[COPY_INITIAL][j];
            const double product = exact_sum(g, i, j) * scales;
            double start = g->accumulate ? (double)g->c->copy[COPY_INITIAL][index]
                           : g->bias     ? (double)g->bias_values->copy[COPY_INITIAL][j]
                                         : 0;
            if (g->c_scale) start *= (double)g->c_scales->copy[COPY_INITIAL][i];
            double want = product + start, terms = fabs(product) + fabs(start);
            if (g->gelu) want = reference_activation(want, KERNEL_GELU);
            if (g->outer) {
                const double column = g->outer_column->copy[COPY_INITIAL][i], row = g->outer_row->copy[COPY_INITIAL][j];
                want += column + row;
                terms += fabs(column) + fabs(row);
            }
            if (g->residual) {
                const double residual = g->residual_values->copy[COPY_INITIAL][i * g->ld_residual + j];
                want += residual;
                terms += fabs(residual);
            }
            if (g->row_scale) {
                want *= (double)g->row_scales->copy[COPY_INITIAL][i];
                terms *= (double)g->row_scales->copy[COPY_INITIAL][i];
            }
            if (!run_error(run, "c", index, g->c->copy[COPY_TESTED][index], want, UNIT_EPS_S, EPS * terms + 0x1p-149,
                           g->gelu ? 12 : 6))
                return;
        }
}

static test_buffer *scale_buffer(test_run *run, const char *name, bool wanted, size_t count)
{
    if (!wanted) return NULL;
    test_buffer *found = run_buffer(run, name, count, BUFFER_INPUT);
    for (size_t i = 0; i < count; i++) found->copy[COPY_INITIAL][i] = random_uniform(run, 0.1f, 3.0f);
    return found;
}

static void integer_body(test_run *run, const void *parameters)
{
    integer_case g = *(const integer_case *)parameters;
    const size_t columns = g.panels * PANEL;
    g.a_plane = round_up(g.rows, DIGIT_TILE_ROWS) * g.depth;
    g.ldc = random_ld(run, columns);
    g.ld_residual = random_ld(run, columns);
    g.a = byte_buffer_of(run, "a", g.a_plane * FORMAT_PLANES(g.format), BUFFER_INPUT);
    g.a_scale = run_buffer(run, "a_scale", g.rows, BUFFER_INPUT);
    g.a_zero = run_buffer(run, "a_zero", g.rows, BUFFER_INPUT);
    g.b = byte_buffer_of(run, "b", g.depth * columns * FORMAT_DIGITS(g.format), BUFFER_INPUT);
    g.b_scale = run_buffer(run, "b_scale", columns, BUFFER_INPUT);
    g.b_sum = run_buffer(run, "b_sum", columns * FORMAT_DIGITS(g.format), BUFFER_INPUT);
    g.c_scales = scale_buffer(run, "c_scale", g.c_scale, g.rows);
    g.outer_column = scale_buffer(run, "outer_column", g.outer, g.rows);
    g.outer_row = scale_buffer(run, "outer_row", g.outer, columns);
    g.row_scales = scale_buffer(run, "row_scale", g.row_scale, g.rows);
    g.c = run_buffer(run, "c", matrix_span(g.rows, columns, g.ldc), BUFFER_OUTPUT);
    if (g.accumulate) fill_matrix(run, g.c->copy[COPY_INITIAL], g.rows, columns, g.ldc, DIST_BELL, 1.0f);
    if (g.bias) {
        g.bias_values = run_buffer(run, "bias", columns, BUFFER_INPUT);
        fill_matrix(run, g.bias_values->copy[COPY_INITIAL], 1, columns, columns, DIST_BELL, 1.0f);
    }
    if (g.residual) {
        g.residual_values = run_buffer(run, "residual", matrix_span(g.rows, columns, g.ld_residual), BUFFER_INPUT);
        fill_matrix(run, g.residual_values->copy[COPY_INITIAL], g.rows, columns, g.ld_residual, DIST_BELL, 1.0f);
    }
    fill_operands(run, &g);
    static void (*const calls[])(const kernels *, const void *) = {call_gemm_u8, call_gemm_u8x2, call_gemm_u15};
    if (run_kernels(run, calls[g.format], integer_task_for, &g)) compare_products(run, &g);
}

static void run_integer_case(test_run *run, size_t weight, const integer_case *g)
{
    run_case(run, weight, integer_body, g, "rows %zu, depth %zu, panels %zu%s%s%s%s%s%s%s%s%s", g->rows, g->depth,
             g->panels, g->accumulate ? ", accumulate" : "", g->bias ? ", bias" : "", g->gelu ? ", gelu" : "",
             g->residual ? ", residual" : "", g->c_scale ? ", c_scale" : "", g->outer ? ", outer" : "",
             g->row_scale ? ", row_scale" : "", g->next ? ", next" : "", g->extreme ? ", extreme" : "");
}

/* What attention asks of an epilogue, in all combinations. */
static void walk_epilogues(test_run *run, integer_format format)
{
    for (unsigned flags = 0; flags < 32; flags++)
        for (size_t rows = 1; rows <= 40; rows += 13) {
            const integer_case g = {.format = format,
                                    .rows = rows,
                                    .depth = 64 * (1 + flags % 3),
                                    .panels = 1 + flags % 5,
                                    .accumulate = flags & 1,
                                    .c_scale = (flags & 3) == 3,
                                    .outer = flags & 4,
                                    .residual = flags & 8,
                                    .row_scale = flags & 16};
            run_integer_case(run, 6, &g);
        }
}

static void walk_integer(test_run *run, integer_format format)
{
    static const size_t depths[] = {64, 128, 384, 448, 512, 768, 1024};
    const size_t most = format == FIFTEEN_BITS ? MAX_U15_DEPTH : MAX_INTEGER_DEPTH;
    for (size_t d = 0; d < sizeof depths / sizeof *depths && depths[d] <= most; d++)
        for (size_t rows = 0; rows <= 34; rows++)
            for (size_t panels = 1; panels <= 7; panels += d ? 3 : 1) {
                const integer_case g = {.format = format,
                                        .rows = rows,
                                        .depth = depths[d],
                                        .panels = panels,
                                        .next = (rows + panels) % 2,
                                        .bias = (rows + d) % 2,
                                        .extreme = rows % 6 == 5};
                run_integer_case(run, d ? 60 : 30, &g);
            }
    for (unsigned flags = 0; flags < 16; flags++)
        for (size_t rows = 1; rows <= 50; rows += 7) {
            const integer_case g = {.format = format,
                                    .rows = rows,
                                    .depth = 64,
                                    .panels = 1 + rows % 4,
                                    .accumulate = flags % 3 == 1,
                                    .bias = flags % 3 == 2,
                                    .gelu = flags & 4,
                                    .residual = flags & 8};
            run_integer_case(run, 6, &g);
        }
    walk_epilogues(run, format);
    const integer_case tall = {
        .format = format, .rows = 100, .depth = most < 768 ? most : 768, .panels = 2, .next = true, .bias = true};
    run_integer_case(run, 1, &tall);
}

void check_gemm_u8(test_run *run) { walk_integer(run, ONE_DIGIT); }
void check_gemm_u8x2(test_run *run) { walk_integer(run, TWO_DIGITS); }
void check_gemm_u15(test_run *run) { walk_integer(run, FIFTEEN_BITS); }
