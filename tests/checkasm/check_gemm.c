/* gemm_f32: products of every shape around the register tiles, every combination of epilogues, and numbers at the
 * limits. SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm.h"

#include <math.h>

typedef enum start_kind { START_ZERO, START_C, START_SCALED_C, START_COUNT } start_kind;
typedef enum residual_kind { RESIDUAL_NONE, RESIDUAL_OTHER, RESIDUAL_C, RESIDUAL_COUNT } residual_kind;

typedef struct gemm_case {
    size_t rows, depth, panels;
    start_kind start;
    residual_kind residual;
    bool bias, gelu, outer, row_scale, next;
    value_kind distribution;
    void (*plant)(test_run *run, struct gemm_case *c); /* puts special values into the filled buffers, or NULL */

    /* chosen by the body */
    size_t lda, b_panel_stride, ldc, c_panel_stride, outer_ld, ld_residual, residual_panel_stride;
    test_buffer *a, *b, *c, *c_scale, *bias_values, *outer_column, *outer_row, *residual_values, *scales;
} gemm_case;

static void call_gemm(const kernels *table, const void *task) { table->gemm_f32(task); }

static float *copy_of(const test_buffer *b, int copy) { return b ? b->copy[copy] : NULL; }

static const void *gemm_task_for(void *context, int copy)
{
    static gemm_task task;
    const gemm_case *g = context;
    task = (gemm_task){
        .rows = g->rows,
        .depth = g->depth,
        .panels = g->panels,
        .a = g->a->copy[copy],
        .lda = g->lda,
        .b = g->b->copy[copy],
        .b_panel_stride = g->b_panel_stride,
        .c = g->c->copy[copy],
        .ldc = g->ldc,
        .c_panel_stride = g->c_panel_stride,
        .c_scale = copy_of(g->c_scale, copy),
        .bias = copy_of(g->bias_values, copy),
        .outer_column = copy_of(g->outer_column, copy),
        .outer_ld = g->outer_ld,
        .outer_row = copy_of(g->outer_row, copy),
        .residual = g->residual == RESIDUAL_C ? g->c->copy[copy] : copy_of(g->residual_values, copy),
        .ld_residual = g->ld_residual,
        .residual_panel_stride = g->residual_panel_stride,
        .row_scale = copy_of(g->scales, copy),
        .accumulate = g->start != START_ZERO,
        .gelu = g->gelu,
        .next = g->next ? g->b->copy[copy] : NULL,
    };
    return &task;
}

/* ---------------------------------------------------------------------------------------------------------- buffers */

/* A result matrix is row-major, or a panel at a time. */
static void choose_layout(test_run *run, const gemm_case *g, size_t *ld, size_t *panel_stride)
{
    if (random_flag(run)) {
        *ld = random_ld(run, g->panels * PANEL);
        *panel_stride = PANEL;
    } else {
        *ld = random_ld(run, PANEL);
        *panel_stride = random_ld(run, g->rows * *ld);
    }
}

static size_t layout_span(const gemm_case *g, size_t ld, size_t panel_stride)
{
    return g->rows && g->panels ? (g->rows - 1) * ld + (g->panels - 1) * panel_stride + PANEL : 0;
}

static void fill_layout(test_run *run, const gemm_case *g, float *values, size_t ld, size_t panel_stride, float scale)
{
    for (size_t p = 0; p < g->panels; p++)
        fill_matrix(run, values + p * panel_stride, g->rows, PANEL, ld, g->distribution, scale);
}

static test_buffer *filled_vector(test_run *run, const gemm_case *g, const char *name, size_t count, size_t ld,
                                  float scale)
{
    test_buffer *b = run_buffer(run, name, matrix_span(count, 1, ld), BUFFER_INPUT);
    fill_matrix(run, b->copy[COPY_INITIAL], count, 1, ld, g->distribution, scale);
    return b;
}

static void take_operands(test_run *run, gemm_case *g)
{
    g->lda = random_ld(run, g->depth);
    g->b_panel_stride = random_ld(run, g->depth * PANEL);
    choose_layout(run, g, &g->ldc, &g->c_panel_stride);
    g->a = run_buffer(run, "a", matrix_span(g->rows, g->depth, g->lda), BUFFER_INPUT);
    g->b = run_buffer(run, "b", matrix_span(g->panels, g->depth * PANEL, g->b_panel_stride), BUFFER_INPUT);
    g->c = run_buffer(run, "c", layout_span(g, g->ldc, g->c_panel_stride), BUFFER_OUTPUT);
    fill_matrix(run, g->a->copy[COPY_INITIAL], g->rows, g->depth, g->lda, g->distribution, 1.0f);
    fill_matrix(run, g->b->copy[COPY_INITIAL], g->panels, g->depth * PANEL, g->b_panel_stride, g->distribution, 0.25f);
    if (g->start != START_ZERO || g->residual == RESIDUAL_C)
        fill_layout(run, g, g->c->copy[COPY_INITIAL], g->ldc, g->c_panel_stride, 1.0f);
}

static void take_epilogue_operands(test_run *run, gemm_case *g)
{
    const size_t columns = g->panels * PANEL;
    if (g->start == START_SCALED_C) g->c_scale = filled_vector(run, g, "c_scale", g->rows, 1, 0.5f);
    if (g->bias) g->bias_values = filled_vector(run, g, "bias", columns, 1, 1.0f);
    if (g->outer) {
        g->outer_ld = random_ld(run, 1);
        g->outer_column = filled_vector(run, g, "outer_column", g->rows, g->outer_ld, 1.0f);
        g->outer_row = filled_vector(run, g, "outer_row", columns, 1, 1.0f);
    }
    if (g->residual == RESIDUAL_OTHER) {
        choose_layout(run, g, &g->ld_residual, &g->residual_panel_stride);
        g->residual_values =
            run_buffer(run, "residual", layout_span(g, g->ld_residual, g->residual_panel_stride), BUFFER_INPUT);
        fill_layout(run, g, g->residual_values->copy[COPY_INITIAL], g->ld_residual, g->residual_panel_stride, 1.0f);
    } else if (g->residual == RESIDUAL_C) {
        g->ld_residual = g->ldc;
        g->residual_panel_stride = g->c_panel_stride;
    }
    if (g->row_scale) g->scales = filled_vector(run, g, "row_scale", g->rows, 1, 2.0f);
}

/* ---------------------------------------------------------------------------------------------------------- float64 */

/* The exact element, and S: the sum of the absolute values of all terms, as far as each can reach the result. */
typedef struct exact {
    double value, terms;
} exact;

static void add_term(exact *x, double term)
{
    x->value += term;
    x->terms += fabs(term);
}

static exact exact_element(const gemm_case *g, size_t i, size_t p, size_t l)
{
    enum { FROM = COPY_INITIAL };
    exact x = {0, 0};
    const double c = g->start == START_ZERO && g->residual != RESIDUAL_C
                         ? 0
                         : (double)g->c->copy[FROM][i * g->ldc + p * g->c_panel_stride + l];
    if (g->start == START_C) add_term(&x, c);
    if (g->start == START_SCALED_C) add_term(&x, c * (double)g->c_scale->copy[FROM][i]);
    for (size_t k = 0; k < g->depth; k++)
        add_term(&x, (double)g->a->copy[FROM][i * g->lda + k] *
                         (double)g->b->copy[FROM][p * g->b_panel_stride + k * PANEL + l]);
    if (g->bias) add_term(&x, g->bias_values->copy[FROM][p * PANEL + l]);
    if (g->gelu) {
        x.value = reference_activation(x.value, KERNEL_GELU);
        x.terms *= 1.13; /* the largest slope of GELU */
    }
    if (g->outer) {
        add_term(&x, g->outer_column->copy[FROM][i * g->outer_ld]);
        add_term(&x, g->outer_row->copy[FROM][p * PANEL + l]);
    }
    if (g->residual == RESIDUAL_C) add_term(&x, c);
    if (g->residual == RESIDUAL_OTHER)
        add_term(&x, g->residual_values->copy[FROM][i * g->ld_residual + p * g->residual_panel_stride + l]);
    if (g->row_scale) {
        const double scale = g->scales->copy[FROM][i];
        x.value *= scale;
        x.terms *= fabs(scale);
    }
    return x;
}

static void compare_with_float64(test_run *run, const gemm_case *g)
{
    /* One rounding a product, one each for c_scale, bias, outer (2), residual and row_scale, and 6 for GELU. */
    const double limit = (double)g->depth + 6 + (g->gelu ? 6 : 0);
    for (size_t p = 0; p < g->panels; p++) {
        for (size_t i = 0; i < g->rows; i++) {
            for (size_t l = 0; l < PANEL; l++) {
                const size_t index = i * g->ldc + p * g->c_panel_stride + l;
                const exact x = exact_element(g, i, p, l);
                const double size = EPS * x.terms + 0x1p-149;
                if (!run_error(run, "c", index, g->c->copy[COPY_TESTED][index], x.value, UNIT_EPS_S, size, limit))
                    return;
            }
        }
    }
}

static void gemm_body(test_run *run, const void *parameters)
{
    gemm_case g = *(const gemm_case *)parameters;
    take_operands(run, &g);
    take_epilogue_operands(run, &g);
    if (g.plant) g.plant(run, &g);
    if (run_kernels(run, call_gemm, gemm_task_for, &g)) compare_with_float64(run, &g);
}

static void run_gemm_case(test_run *run, size_t weight, const gemm_case *g)
{
    static const char *const starts[] = {"", ", accumulate", ", c_scale"};
    static const char *const residuals[] = {"", ", residual", ", residual is c"};
    run_case(run, weight, gemm_body, g, "rows %zu, depth %zu, panels %zu%s%s%s%s%s%s%s", g->rows, g->depth, g->panels,
             starts[g->start], g->bias ? ", bias" : "", g->gelu ? ", gelu" : "", g->outer ? ", outer" : "",
             residuals[g->residual], g->row_scale ? ", row_scale" : "", g->next ? ", next" : "");
}

/* ------------------------------------------------------------------------------------------------------------ walks */

static size_t most_rows(const test_run *run)
{
    const size_t rows = 2 * run->tested->tile_rows + 1;
    return rows < 13 ? 13 : rows;
}

static size_t most_panels(const test_run *run)
{
    const size_t panels = 2 * run->tested->tile_panels + 1;
    return panels < 5 ? 5 : panels;
}

/* All edges of the tiles at depths around every unrolling; then all depths at a few edges; then the model's own depth.
 * */
void check_gemm_products(test_run *run)
{
    static const size_t depths[] = {0, 1, 2, 3, 4, 7, 8, 16, 17, 64};
    for (size_t d = 0; d < sizeof depths / sizeof *depths; d++)
        for (size_t rows = 0; rows <= most_rows(run); rows++)
            for (size_t panels = 0; panels <= most_panels(run); panels++) {
                const gemm_case g = {.rows = rows,
                                     .depth = depths[d],
                                     .panels = panels,
                                     .start = (start_kind)((rows + panels + d) % START_COUNT),
                                     .next = (rows + panels) % 2,
                                     .distribution = (rows + d) % 3 == 0 ? DIST_EXACT : DIST_BELL};
                run_gemm_case(run, 60, &g);
            }
    for (size_t depth = 0; depth <= 70; depth++)
        for (size_t rows = 1; rows <= run->tested->tile_rows + 1; rows += 1 + run->tested->tile_rows / 2)
            for (size_t panels = 1; panels <= 3; panels++) {
                const gemm_case g = {.rows = rows, .depth = depth, .panels = panels, .distribution = DIST_WIDE};
                run_gemm_case(run, 30, &g);
            }
    for (size_t rows = 1; rows <= most_rows(run); rows += 4)
        for (size_t panels = 1; panels <= most_panels(run); panels += 2) {
            const gemm_case g = {.rows = rows, .depth = 768, .panels = panels, .bias = true, .next = rows > 1};
            run_gemm_case(run, 40, &g);
        }
    /* So many row groups, of at most 12 rows in any tier, that there is less than a byte to fetch for each. */
    const gemm_case tall = {
        .rows = (8 * PANEL * sizeof(float) + 1) * 12,
        .depth = 17,
        .panels = 1,
        .next = true,
        .distribution = DIST_BELL,
    };
    run_gemm_case(run, 1, &tall);
}

void check_gemm_epilogues(test_run *run)
{
    static const size_t shapes[][3] = {{1, 5, 1}, {7, 9, 3}, {14, 33, 2}, {25, 0, 4}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (unsigned choice = 0; choice < START_COUNT * RESIDUAL_COUNT * 32; choice++) {
            const unsigned flags = choice / (START_COUNT * RESIDUAL_COUNT);
            const gemm_case g = {.rows = shapes[s][0],
                                 .depth = shapes[s][1],
                                 .panels = shapes[s][2],
                                 .start = (start_kind)(choice % START_COUNT),
                                 .residual = (residual_kind)(choice / START_COUNT % RESIDUAL_COUNT),
                                 .bias = flags & 1,
                                 .gelu = flags & 2,
                                 .outer = flags & 4,
                                 .row_scale = flags & 8,
                                 .next = flags & 16};
            run_gemm_case(run, 12, &g);
        }
}

/* A product of 2^-140 is kept, not flushed to zero. */
static void plant_subnormals(test_run *run, gemm_case *g)
{
    (void)run;
    for (size_t e = 0; e < g->a->size; e++) g->a->copy[COPY_INITIAL][e] *= 0x1p-72f;
    for (size_t e = 0; e < g->b->size; e++) g->b->copy[COPY_INITIAL][e] *= 0x1p-70f;
}

/* A NaN reaches its row and an infinity its column; the rest stays clean. */
static void plant_nan(test_run *run, gemm_case *g)
{
    g->a->copy[COPY_INITIAL][random_index(run, g->rows) * g->lda + random_index(run, g->depth)] = NAN;
    g->b->copy[COPY_INITIAL][random_index(run, g->depth) * PANEL + 3] = -INFINITY;
}

static void plant_zeros(test_run *run, gemm_case *g)
{
    for (size_t e = 0; e < g->a->size; e++)
        if (float_bits(g->a->copy[COPY_INITIAL][e]) != POISON)
            g->a->copy[COPY_INITIAL][e] = random_flag(run) ? 0.0f : -0.0f;
}

void check_gemm_special(test_run *run)
{
    static void (*const plants[])(test_run *, gemm_case *) = {plant_subnormals, plant_nan, plant_zeros};
    for (size_t s = 0; s < sizeof plants / sizeof *plants; s++)
        for (size_t rows = 1; rows <= most_rows(run); rows += 3)
            for (unsigned flags = 0; flags < 4; flags++) {
                const gemm_case g = {.rows = rows,
                                     .depth = 11,
                                     .panels = 1 + flags % 3,
                                     .gelu = flags & 1,
                                     .residual = flags & 2 ? RESIDUAL_C : RESIDUAL_NONE,
                                     .distribution = DIST_EXACT,
                                     .plant = plants[s]};
                run_gemm_case(run, 8, &g);
            }
}
