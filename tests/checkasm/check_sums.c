/* Sums over rows and over columns: gemm_tn_f32, sum_rows_f32, dot_rows_f32, fold_runs_f32. Cuts into parts, empty parts
 * and chunks included; the order of additions is compared with the scalar kernel's, bit for bit.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm.h"

#include <math.h>
#include <string.h>

typedef struct sum_case {
    size_t columns, panels, rows, parts; /* parts 0: one chain */
    bool accumulate, with_b, with_sums;

    /* chosen by the body */
    size_t lda, ldb, ldc, b_panel_stride, bounds[MAX_ROW_PARTS + 1];
    test_buffer *a, *b, *c, *sums;
} sum_case;

/* Random cuts; every fourth part or so is empty. */
static void choose_bounds(test_run *run, sum_case *c)
{
    c->bounds[0] = 0;
    for (size_t part = 0; part < c->parts; part++) {
        const size_t left = c->rows - c->bounds[part];
        size_t here = random_index(run, 4) == 0 ? 0 : random_index(run, 2 * left / (c->parts - part) + 2);
        if (here > left || part + 1 == c->parts) here = left;
        c->bounds[part + 1] = c->bounds[part] + here;
    }
}

static void fill_values(test_run *run, test_buffer *buffer, size_t rows, size_t width, size_t ld)
{
    fill_matrix(run, buffer->copy[COPY_INITIAL], rows, width, ld, DIST_BELL, 1.0f);
}

/* Additions that any cutting makes, and the products. */
static double sum_limit(size_t rows) { return (double)rows + MAX_ROW_PARTS; }

/* ------------------------------------------------------------------------------------------------------- gemm_tn_f32 */

static void call_gemm_tn(const kernels *table, const void *task) { table->gemm_tn_f32(task); }

static const void *gemm_tn_task_for(void *context, int copy)
{
    static gemm_tn_task task;
    const sum_case *c = context;
    task = (gemm_tn_task){.columns = c->columns,
                          .panels = c->panels,
                          .a = c->a->copy[copy],
                          .lda = c->lda,
                          .b = c->b->copy[copy],
                          .ldb = c->ldb,
                          .b_panel_stride = c->b_panel_stride,
                          .c = c->c->copy[copy],
                          .ldc = c->ldc,
                          .c_panel_stride = PANEL,
                          .bounds = c->parts ? c->bounds : NULL,
                          .parts = c->parts,
                          .rows = c->rows,
                          .accumulate = c->accumulate,
                          .sums = c->with_sums ? c->sums->copy[copy] : NULL};
    return &task;
}

/* Sums of columns of A over all rows; `of` is what the kernel made of them. */
static bool compare_column_sums(test_run *run, const sum_case *c, const char *name, const test_buffer *of)
{
    for (size_t j = 0; j < c->columns; j++) {
        double want = 0, terms = 0;
        for (size_t r = 0; r < c->rows; r++) {
            const double x = (double)c->a->copy[COPY_INITIAL][r * c->lda + j];
            const double product = c->with_b ? x * (double)c->b->copy[COPY_INITIAL][r * c->ldb + j] : x;
            want += product;
            terms += fabs(product);
        }
        if (!run_error(run, name, j, (double)of->copy[COPY_TESTED][j], want, UNIT_EPS_S, EPS * terms + 0x1p-149,
                       sum_limit(c->rows)))
            return false;
    }
    return true;
}

static void compare_gemm_tn(test_run *run, const sum_case *c)
{
    const float *a = c->a->copy[COPY_INITIAL], *b = c->b->copy[COPY_INITIAL];
    if (c->with_sums && !compare_column_sums(run, c, "sums", c->sums)) return;
    for (size_t i = 0; i < c->columns; i++)
        for (size_t j = 0; j < c->panels * PANEL; j++) {
            const size_t at = i * c->ldc + j;
            double want = c->accumulate ? (double)c->c->copy[COPY_INITIAL][at] : 0, terms = fabs(want);
            for (size_t r = 0; r < c->rows; r++) {
                const double product =
                    (double)a[r * c->lda + i] * (double)b[r * c->ldb + j / PANEL * c->b_panel_stride + j % PANEL];
                want += product;
                terms += fabs(product);
            }
            if (!run_error(run, "c", at, (double)c->c->copy[COPY_TESTED][at], want, UNIT_EPS_S, EPS * terms + 0x1p-149,
                           sum_limit(c->rows)))
                return;
        }
}

static void gemm_tn_body(test_run *run, const void *parameters)
{
    sum_case c = *(const sum_case *)parameters;
    const bool by_panels = random_flag(run);
    const size_t width = c.panels * PANEL;
    choose_bounds(run, &c);
    c.lda = random_ld(run, c.columns);
    c.ldc = random_ld(run, width);
    c.ldb = by_panels ? PANEL : random_ld(run, width);
    c.b_panel_stride = by_panels ? c.rows * PANEL + 8 : PANEL;
    c.a = run_buffer(run, "a", matrix_span(c.rows, c.columns, c.lda), BUFFER_INPUT);
    c.b = run_buffer(run, "b",
                     by_panels && c.panels && c.rows ? (c.panels - 1) * c.b_panel_stride + c.rows * PANEL
                                                     : matrix_span(c.rows, width, c.ldb),
                     BUFFER_INPUT);
    c.c = run_buffer(run, "c", matrix_span(c.columns, width, c.ldc), BUFFER_OUTPUT_ANY_ZERO);
    c.sums = run_buffer(run, "sums", c.with_sums ? c.columns : 0, BUFFER_OUTPUT_ANY_ZERO);
    fill_values(run, c.a, c.rows, c.columns, c.lda);
    for (size_t p = 0; p < (by_panels ? c.panels : 1); p++)
        fill_matrix(run, c.b->copy[COPY_INITIAL] + p * c.b_panel_stride, c.rows, by_panels ? PANEL : width, c.ldb,
                    DIST_BELL, 1.0f);
    if (c.accumulate) fill_values(run, c.c, c.columns, width, c.ldc);
    if (run_kernels(run, call_gemm_tn, gemm_tn_task_for, &c)) compare_gemm_tn(run, &c);
}

static void run_gemm_tn_case(test_run *run, size_t weight, const sum_case *c)
{
    run_case(run, weight, gemm_tn_body, c, "%zu columns, %zu panels, %zu rows, %zu parts%s%s", c->columns, c->panels,
             c->rows, c->parts, c->accumulate ? ", accumulate" : "", c->with_sums ? ", sums" : "");
}

void check_gemm_tn_chains(test_run *run)
{
    static const size_t rows[] = {0, 1, 2, 7, 16, 130};
    sum_case c = {0};
    for (c.panels = 0; c.panels <= 5; c.panels++)
        for (c.columns = 0; c.columns <= 26; c.columns++)
            for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                c.rows = rows[i];
                c.accumulate = (c.columns + i) % 2;
                run_gemm_tn_case(run, 24, &c);
            }
}

void check_gemm_tn_parts(test_run *run)
{
    static const size_t rows[] = {0, 1, 3, 40, ROW_CHUNK - 1, ROW_CHUNK, ROW_CHUNK + 1, 3 * ROW_CHUNK + 5};
    sum_case c = {0};
    for (c.parts = 1; c.parts <= MAX_ROW_PARTS; c.parts *= 2)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            for (c.panels = 1; c.panels <= 4; c.panels++) {
                c.rows = rows[i];
                c.columns = 1 + random_index(run, i % 4 ? 14 : 210); /* kernels work on blocks of them */
                c.with_sums = (i + c.panels) % 2;
                run_gemm_tn_case(run, 8, &c);
            }
}

/* ------------------------------------------------------------------------------------------------- sum_rows, dot_rows */

static void call_sum_rows(const kernels *table, const void *task) { table->sum_rows_f32(task); }

static const void *sum_rows_task_for(void *context, int copy)
{
    static sum_rows_task task;
    const sum_case *c = context;
    task = (sum_rows_task){.n = c->columns,
                           .a = c->a->copy[copy],
                           .b = c->with_b ? c->b->copy[copy] : NULL,
                           .lda = c->lda,
                           .ldb = c->ldb,
                           .bounds = c->bounds,
                           .parts = c->parts,
                           .y = c->c->copy[copy]};
    return &task;
}

static void sum_rows_body(test_run *run, const void *parameters)
{
    sum_case c = *(const sum_case *)parameters;
    choose_bounds(run, &c);
    c.lda = random_ld(run, c.columns);
    c.ldb = random_ld(run, c.columns);
    c.a = run_buffer(run, "a", matrix_span(c.rows, c.columns, c.lda), BUFFER_INPUT);
    c.b = run_buffer(run, "b", c.with_b ? matrix_span(c.rows, c.columns, c.ldb) : 0, BUFFER_INPUT);
    c.c = run_buffer(run, "y", c.columns, BUFFER_OUTPUT_ANY_ZERO);
    fill_values(run, c.a, c.rows, c.columns, c.lda);
    if (c.with_b) fill_values(run, c.b, c.rows, c.columns, c.ldb);
    if (!run_kernels(run, call_sum_rows, sum_rows_task_for, &c)) return;
    compare_column_sums(run, &c, "y", c.c);
}

void check_sum_rows(test_run *run)
{
    enum { FEW = 3 * PANEL + 1, MANY = 13 * PANEL, STEP = 13 }; /* kernels work on groups of columns */
    static const size_t rows[] = {0, 1, 5, ROW_CHUNK + 3};
    sum_case c = {0};
    for (c.parts = 1; c.parts <= 16; c.parts *= 2)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            for (c.columns = 0; c.columns <= MANY; c.columns += c.columns < FEW ? 1 : STEP) {
                c.rows = rows[i];
                c.with_b = (c.columns + i) % 2;
                run_case(run, 24, sum_rows_body, &c, "%zu columns, %zu rows, %zu parts%s", c.columns, c.rows, c.parts,
                         c.with_b ? ", products" : "");
            }
}

typedef struct dot_task {
    float *y;
    const float *a, *b;
    size_t lda, ldb, rows, n;
} dot_task;

static void call_dot_rows(const kernels *table, const void *task)
{
    const dot_task *t = task;
    table->dot_rows_f32(t->y, t->a, t->lda, t->b, t->ldb, t->rows, t->n);
}

static const void *dot_task_for(void *context, int copy)
{
    static dot_task task;
    const sum_case *c = context;
    task = (dot_task){c->c->copy[copy], c->a->copy[copy], c->b->copy[copy], c->lda, c->ldb, c->rows, c->columns};
    return &task;
}

static void dot_rows_body(test_run *run, const void *parameters)
{
    sum_case c = *(const sum_case *)parameters;
    c.lda = random_ld(run, c.columns);
    c.ldb = random_ld(run, c.columns);
    c.a = run_buffer(run, "a", matrix_span(c.rows, c.columns, c.lda), BUFFER_INPUT);
    c.b = run_buffer(run, "b", matrix_span(c.rows, c.columns, c.ldb), BUFFER_INPUT);
    c.c = run_buffer(run, "y", c.rows, BUFFER_OUTPUT_ANY_ZERO);
    fill_values(run, c.a, c.rows, c.columns, c.lda);
    fill_values(run, c.b, c.rows, c.columns, c.ldb);
    if (!run_kernels(run, call_dot_rows, dot_task_for, &c)) return;
    for (size_t i = 0; i < c.rows; i++) {
        double want = 0, terms = 0;
        for (size_t e = 0; e < c.columns; e++) {
            const double product =
                (double)c.a->copy[COPY_INITIAL][i * c.lda + e] * (double)c.b->copy[COPY_INITIAL][i * c.ldb + e];
            want += product;
            terms += fabs(product);
        }
        if (!run_error(run, "y", i, (double)c.c->copy[COPY_TESTED][i], want, UNIT_EPS_S, EPS * terms + 0x1p-149,
                       (double)c.columns / PANEL + 8))
            return;
    }
}

void check_dot_rows(test_run *run)
{
    sum_case c = {0};
    for (c.rows = 0; c.rows <= 3; c.rows++)
        for (c.columns = 0; c.columns <= 5 * PANEL + 1; c.columns++)
            run_case(run, 12, dot_rows_body, &c, "%zu rows of %zu", c.rows, c.columns);
}

/* -------------------------------------------------------------------------------------------------------- fold_runs */

enum { FOLD_KINDS = 4, FOLD_MOST = 128 };

typedef struct fold_case {
    size_t rows, columns;
    int kind;

    /* chosen by the body */
    size_t row_step, column_step, ld_strip, places;
    int32_t table[2 * FOLD_MOST], first;
    test_buffer *s, *strip;
} fold_case;

static void call_fold_runs(const kernels *table, const void *task) { table->fold_runs_f32(task); }

static const void *fold_task_for(void *context, int copy)
{
    static fold_runs_task task;
    const fold_case *c = context;
    task = (fold_runs_task){.rows = c->rows,
                            .columns = c->columns,
                            .s = c->s->copy[copy],
                            .row_step = c->row_step,
                            .column_step = c->column_step,
                            .place_of = c->table + (c->rows ? c->rows - 1 : 0),
                            .first = c->first,
                            .unit_steps = c->kind != 3,
                            .strip = c->strip->copy[copy],
                            .ld_strip = c->ld_strip};
    return &task;
}

/* Kinds: a place a column, one for all, runs of random length, anywhere. */
static void fill_fold(test_run *run, fold_case *c)
{
    const size_t entries = c->rows + c->columns;
    int32_t place = 5;
    c->first = place;
    for (size_t x = 0; x < entries; x++) {
        c->table[x] = c->kind == 3 ? c->first + (int32_t)random_index(run, 20) : place;
        if (c->kind == 0 || (c->kind == 2 && random_index(run, 3) == 0)) place++;
    }
    c->places = c->kind == 3 ? 20 : (size_t)(place - c->first) + 1;
}

static void compare_fold(test_run *run, const fold_case *c)
{
    for (size_t i = 0; i < c->rows; i++)
        for (size_t x = 0; x < c->places; x++) {
            const size_t at = i * c->ld_strip + x;
            double want = (double)c->strip->copy[COPY_INITIAL][at], terms = fabs(want);
            for (size_t j = 0; j < c->columns; j++) {
                if ((size_t)(c->table[c->rows - 1 + j - i] - c->first) != x) continue;
                const double value = (double)c->s->copy[COPY_INITIAL][i * c->row_step + j * c->column_step];
                want += value;
                terms += fabs(value);
            }
            if (!run_error(run, "strip", at, (double)c->strip->copy[COPY_TESTED][at], want, UNIT_EPS_S,
                           EPS * terms + 0x1p-149, (double)c->columns + 1))
                return;
        }
}

static void fold_body(test_run *run, const void *parameters)
{
    fold_case c = *(const fold_case *)parameters;
    const bool is_turned = random_flag(run);
    const size_t rows = is_turned ? c.columns : c.rows, columns = is_turned ? c.rows : c.columns;
    const size_t ld = random_ld(run, columns);
    fill_fold(run, &c);
    c.row_step = is_turned ? 1 : ld;
    c.column_step = is_turned ? ld : 1;
    c.ld_strip = random_ld(run, c.places);
    c.s = run_buffer(run, "s", matrix_span(rows, columns, ld), BUFFER_INPUT);
    c.strip = run_buffer(run, "strip", matrix_span(c.rows, c.places, c.ld_strip), BUFFER_OUTPUT);
    fill_values(run, c.s, rows, columns, ld);
    fill_values(run, c.strip, c.rows, c.places, c.ld_strip);
    if (run_kernels(run, call_fold_runs, fold_task_for, &c)) compare_fold(run, &c);
}

void check_fold_runs(test_run *run)
{
    static const char *const kinds[FOLD_KINDS] = {"one a place", "all in one place", "runs", "any map"};
    static const size_t rows[] = {0, 1, 2, 17, 40};
    fold_case c = {0};
    for (c.kind = 0; c.kind < FOLD_KINDS; c.kind++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            for (c.columns = 0; c.columns <= 4 * PANEL + 1; c.columns++) {
                c.rows = rows[i];
                run_case(run, 24, fold_body, &c, "%zu rows of %zu, %s", c.rows, c.columns, kinds[c.kind]);
            }
}
