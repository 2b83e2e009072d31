/* quantize_u8, quantize_u8x2, gemm_u8, gemm_u8x2: digits bit for bit, what they stand for against float64, and sums of
 * integers that are known exactly. SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm.h"

#include <math.h>

static size_t whole_tiles(size_t n, size_t tile) { return (n + tile - 1) / tile * tile; }

/* Buffers are counted in floats; bytes of digits lie in them as they are. */
static test_buffer *byte_buffer_of(test_run *run, const char *name, size_t bytes, buffer_kind kind)
{
    return run_buffer(run, name, (bytes + sizeof(float) - 1) / sizeof(float), kind);
}

/* --------------------------------------------------------------------------------------------------------- quantize */

typedef struct quantize_case {
    int digits;
    size_t rows, depth;
    bool factor, damaged; /* damaged: some rows hold what is no number, and are compared apart */
    value_kind distribution;
    float scale;

    /* chosen by the body */
    size_t ldx, plane_bytes;
    test_buffer *x, *factors, *stored, *scales, *zeros;
} quantize_case;

static void call_quantize_u8(const kernels *table, const void *task) { table->quantize_u8(task); }
static void call_quantize_u8x2(const kernels *table, const void *task) { table->quantize_u8x2(task); }

static const void *quantize_task_for(void *context, int copy)
{
    static quantize_task task;
    const quantize_case *c = context;
    task = (quantize_task){
        .rows = c->rows,
        .depth = c->depth,
        .x = c->x->copy[copy],
        .ldx = c->ldx,
        .factor = c->factors ? c->factors->copy[copy] : NULL,
        .digits = (uint8_t *)c->stored->copy[copy],
        .plane_bytes = c->plane_bytes,
        .scale = c->scales->copy[copy],
        .zero = (int32_t *)c->zeros->copy[copy],
    };
    return &task;
}

/* What the digits of an input stand for, in float64. */
static double value_of_digits(const quantize_case *c, int copy, size_t i, size_t k)
{
    const uint8_t *at =
        (const uint8_t *)c->stored->copy[copy] + digit_at(whole_tiles(c->depth, DIGIT_TILE_INPUTS), i, k);
    const double scale = (double)c->scales->copy[copy][i];
    if (c->digits == 1) return (at[0] - ((const int32_t *)c->zeros->copy[copy])[i]) * scale;
    return ((at[0] - DIGIT_OFFSET) + (at[c->plane_bytes] - DIGIT_OFFSET) / 128.0) * scale;
}

static bool damaged_row(const quantize_case *c, size_t i) { return c->damaged && i % 3 == 1; }

static void compare_values(test_run *run, const quantize_case *c)
{
    for (size_t i = 0; i < c->rows; i++) {
        const float scale = c->scales->copy[COPY_TESTED][i];
        if (damaged_row(c, i)) {
            if (!isnan(scale)) run_fail(run, "scale[%zu]: got %g of a row with an infinity or NaN", i, (double)scale);
            continue;
        }
        if (c->damaged && scale != c->scales->copy[COPY_EXPECTED][i])
            run_fail(run, "scale[%zu]: got %g, expected %g", i, (double)scale,
                     (double)c->scales->copy[COPY_EXPECTED][i]);
        const double step = (double)scale * (c->digits == 1 ? 1 : 1 / 128.0);
        for (size_t k = 0; k < c->depth; k++) {
            const float x = c->x->copy[COPY_INITIAL][i * c->ldx + k];
            const float v = c->factors ? x * c->factors->copy[COPY_INITIAL][k] : x;
            const double size = 0.5 * step + 4 * EPS * fabs((double)v) + 0x1p-99;
            if (!run_error(run, "value", i * c->depth + k, value_of_digits(c, COPY_TESTED, i, k), v, UNIT_EPS_S, size,
                           1.001))
                return;
        }
    }
}

static void fill_rows(test_run *run, const quantize_case *c)
{
    float *x = c->x->copy[COPY_INITIAL];
    fill_matrix(run, x, c->rows, c->depth, c->ldx, c->distribution, c->scale);
    for (size_t i = 0; i < c->rows; i++) {
        if (i % 5 == 2) fill_matrix(run, x + i * c->ldx, 1, c->depth, c->ldx, DIST_BELL, 0); /* zeros */
        if (i % 5 == 3)
            for (size_t k = 0; k < c->depth; k++) x[i * c->ldx + k] = fabsf(x[i * c->ldx + k]); /* one-sided */
        if (damaged_row(c, i)) x[i * c->ldx + random_index(run, c->depth)] = i % 2 ? NAN : i % 4 ? INFINITY : -INFINITY;
    }
}

static void quantize_body(test_run *run, const void *parameters)
{
    quantize_case c = *(const quantize_case *)parameters;
    const size_t depth = whole_tiles(c.depth, DIGIT_TILE_INPUTS);
    const buffer_kind kind = c.damaged ? BUFFER_OUTPUT_ANY : BUFFER_OUTPUT;
    c.ldx = random_ld(run, c.depth);
    c.plane_bytes = whole_tiles(c.rows, DIGIT_TILE_ROWS) * depth;
    c.x = run_buffer(run, "x", matrix_span(c.rows, c.depth, c.ldx), BUFFER_INPUT);
    if (c.factor) {
        c.factors = run_buffer(run, "factor", c.depth, BUFFER_INPUT);
        for (size_t k = 0; k < c.depth; k++) c.factors->copy[COPY_INITIAL][k] = random_uniform(run, 0.1f, 3.0f);
    }
    c.stored = byte_buffer_of(run, "digits", c.plane_bytes * (size_t)c.digits, kind);
    c.scales = run_buffer(run, "scale", c.rows, kind);
    c.zeros = run_buffer(run, "zero", c.rows, kind);
    fill_rows(run, &c);
    if (run_kernels(run, c.digits == 1 ? call_quantize_u8 : call_quantize_u8x2, quantize_task_for, &c))
        compare_values(run, &c);
}

static void walk_quantize(test_run *run, int digits)
{
    static const size_t depths[] = {1, 3, 15, 16, 17, 63, 64, 65, 100, 128, 511, 768, 1024};
    static const value_kind kinds[] = {DIST_BELL, DIST_WIDE, DIST_EXACT};
    for (size_t d = 0; d < sizeof depths / sizeof *depths; d++)
        for (size_t rows = 0; rows <= 35; rows += rows < 18 ? 1 : 8) {
            const quantize_case c = {.digits = digits,
                                     .rows = rows,
                                     .depth = depths[d],
                                     .factor = (rows + d) % 2,
                                     .damaged = rows % 4 == 2,
                                     .distribution = kinds[(rows + d) % 3],
                                     .scale = rows % 7 == 6   ? 0x1p-120f
                                              : rows % 7 == 5 ? 0x1p90f
                                                              : 1};
            run_case(run, 20, quantize_body, &c, "rows %zu, depth %zu%s%s, scale %g", c.rows, c.depth,
                     c.factor ? ", factor" : "", c.damaged ? ", damaged" : "", (double)c.scale);
        }
}

void check_quantize_u8(test_run *run) { walk_quantize(run, 1); }
void check_quantize_u8x2(test_run *run) { walk_quantize(run, 2); }

/* ------------------------------------------------------------------------------------------------------------- gemm */

typedef struct integer_case {
    int digits;
    size_t rows, depth, panels;
    bool accumulate, bias, gelu, residual, next, extreme; /* extreme: all digits as large as they can be */

    /* chosen by the body */
    size_t a_plane, ldc, ld_residual;
    test_buffer *a, *a_scale, *a_zero, *b, *b_scale, *b_sum, *c, *bias_values, *residual_values;
} integer_case;

static void call_gemm_u8(const kernels *table, const void *task) { table->gemm_u8(task); }
static void call_gemm_u8x2(const kernels *table, const void *task) { table->gemm_u8x2(task); }

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
        .bias = g->bias ? g->bias_values->copy[copy] : NULL,
        .residual = g->residual ? g->residual_values->copy[copy] : NULL,
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
    return b[(j / PANEL * (size_t)g->digits + (size_t)digit) * plane + k / 4 * (4 * PANEL) + j % PANEL * 4 + k % 4];
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
    for (size_t e = 0; e < g->a_plane * (size_t)g->digits; e++) {
        const bool low = e >= g->a_plane;
        const int random = low ? 64 + (int)random_index(run, 128) : (int)random_index(run, 255 + (g->digits == 1));
        a[e] = (uint8_t)(g->extreme ? (low ? 191 : 255) : random + (g->digits == 2 && !low));
    }
    const size_t plane = g->depth * PANEL;
    for (size_t e = 0; e < plane * g->panels * (size_t)g->digits; e++) {
        const bool low = g->digits == 2 && e / plane % 2 == 1;
        const int random = low ? (int)random_index(run, 128) - 64 : (int)random_index(run, 255) - 127;
        b[e] = (int8_t)(g->extreme ? (low ? -64 : e % 3 ? 127 : -127) : random);
    }
    for (size_t i = 0; i < g->rows; i++) {
        zero[i] = g->extreme ? (int32_t)(i % 2) * 255 : (int32_t)random_index(run, 256);
        g->a_scale->copy[COPY_INITIAL][i] = random_uniform(run, 0.001f, 0.1f);
    }
    for (size_t j = 0; j < g->panels * PANEL; j++) {
        int32_t first = 0, both = 0;
        for (size_t k = 0; k < g->depth; k++) {
            first += weight_digit(g, 0, k, j);
            both += weight_digit(g, 0, k, j) + (g->digits == 2 ? weight_digit(g, 1, k, j) : 0);
        }
        int32_t *at = sum + j / PANEL * (size_t)g->digits * PANEL + j % PANEL;
        at[0] = first;
        if (g->digits == 2) at[PANEL] = both;
        g->b_scale->copy[COPY_INITIAL][j] = random_uniform(run, 0.001f, 0.1f);
    }
}

/* Before the scales, exactly. */
static double exact_sum(const integer_case *g, size_t i, size_t j)
{
    int64_t high = 0, mixed = 0;
    const int32_t zero = ((const int32_t *)g->a_zero->copy[COPY_INITIAL])[i];
    for (size_t k = 0; k < g->depth; k++) {
        const int a = row_digit(g, 0, i, k) - (g->digits == 1 ? zero : DIGIT_OFFSET), b = weight_digit(g, 0, k, j);
        high += a * b;
        if (g->digits == 2) mixed += a * weight_digit(g, 1, k, j) + (row_digit(g, 1, i, k) - DIGIT_OFFSET) * b;
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
            const double start = g->accumulate ? (double)g->c->copy[COPY_INITIAL][index]
                                 : g->bias     ? (double)g->bias_values->copy[COPY_INITIAL][j]
                                               : 0;
            double want = product + start, terms = fabs(product) + fabs(start);
            if (g->gelu) want = reference_activation(want, KERNEL_GELU);
            if (g->residual) {
                const double residual = g->residual_values->copy[COPY_INITIAL][i * g->ld_residual + j];
                want += residual;
                terms += fabs(residual);
            }
            if (!run_error(run, "c", index, g->c->copy[COPY_TESTED][index], want, UNIT_EPS_S, EPS * terms + 0x1p-149,
                           g->gelu ? 12 : 5))
                return;
        }
}

static void integer_body(test_run *run, const void *parameters)
{
    integer_case g = *(const integer_case *)parameters;
    const size_t columns = g.panels * PANEL;
    g.a_plane = whole_tiles(g.rows, DIGIT_TILE_ROWS) * g.depth;
    g.ldc = random_ld(run, columns);
    g.ld_residual = random_ld(run, columns);
    g.a = byte_buffer_of(run, "a", g.a_plane * (size_t)g.digits, BUFFER_INPUT);
    g.a_scale = run_buffer(run, "a_scale", g.rows, BUFFER_INPUT);
    g.a_zero = run_buffer(run, "a_zero", g.rows, BUFFER_INPUT);
    g.b = byte_buffer_of(run, "b", g.depth * columns * (size_t)g.digits, BUFFER_INPUT);
    g.b_scale = run_buffer(run, "b_scale", columns, BUFFER_INPUT);
    g.b_sum = run_buffer(run, "b_sum", columns * (size_t)g.digits, BUFFER_INPUT);
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
    if (run_kernels(run, g.digits == 1 ? call_gemm_u8 : call_gemm_u8x2, integer_task_for, &g))
        compare_products(run, &g);
}

static void run_integer_case(test_run *run, size_t weight, const integer_case *g)
{
    run_case(run, weight, integer_body, g, "rows %zu, depth %zu, panels %zu%s%s%s%s%s%s", g->rows, g->depth, g->panels,
             g->accumulate ? ", accumulate" : "", g->bias ? ", bias" : "", g->gelu ? ", gelu" : "",
             g->residual ? ", residual" : "", g->next ? ", next" : "", g->extreme ? ", extreme" : "");
}

static void walk_integer(test_run *run, int digits)
{
    static const size_t depths[] = {64, 128, 384, 448, 768, 1024};
    for (size_t d = 0; d < sizeof depths / sizeof *depths; d++)
        for (size_t rows = 0; rows <= 34; rows++)
            for (size_t panels = 1; panels <= 7; panels += d ? 3 : 1) {
                const integer_case g = {.digits = digits,
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
            const integer_case g = {.digits = digits,
                                    .rows = rows,
                                    .depth = 64,
                                    .panels = 1 + rows % 4,
                                    .accumulate = flags % 3 == 1,
                                    .bias = flags % 3 == 2,
                                    .gelu = flags & 4,
                                    .residual = flags & 8};
            run_integer_case(run, 6, &g);
        }
    const integer_case tall = {.digits = digits, .rows = 100, .depth = 768, .panels = 2, .next = true, .bias = true};
    run_integer_case(run, 1, &tall);
}

void check_gemm_u8(test_run *run) { walk_integer(run, 1); }
void check_gemm_u8x2(test_run *run) { walk_integer(run, 2); }
