/* Cuts products into tasks of rows and panels, and sums over rows into tasks of columns.
 *
 * SPDX-License-Identifier: MIT */
#include "train/state/products.h"

#include <string.h>

enum { TASK_ROWS = 96, TASK_PANELS = 12, TASK_COLUMNS = 96, SUM_COLUMNS = 96, NORM_ROWS = 16 };

/* --------------------------------------------------------------------------------------------------------- transposed */

void transposed_carve(packed_matrix *transposed, arena *memory, const packed_matrix *matrix)
{
    if (matrix->panel_count == 0) return;
    packed_matrix_carve(transposed, memory, matrix->depth, matrix->panel_count * PANEL);
}

typedef struct transposing {
    const packed_matrix *to, *from;
    const kernels *table;
} transposing;

/* Transposes tile by tile: 16 outputs of `to` are 16 inputs k of `from`, in whose panels 16 outputs follow each other.
 */
static void transpose_panel(void *context, size_t panel, size_t worker)
{
    const transposing *job = context;
    const packed_matrix *to = job->to, *from = job->from;
    (void)worker;
    for (size_t output = 0; output < to->depth; output += PANEL) {
        float rows[PANEL][PANEL], tile[PANEL * PANEL];
        for (size_t l = 0; l < PANEL; l++) {
            const size_t k = panel * PANEL + l, block = k / from->block_depth * from->block_depth;
            if (k < from->depth)
                memcpy(rows[l], packed_matrix_panel(from, block, output / PANEL) + (k - block) * PANEL, sizeof rows[l]);
            else
                memset(rows[l], 0, sizeof rows[l]);
        }
        job->table->pack_panels_f32(tile, 0, rows[0], PANEL, PANEL, PANEL);
        for (size_t l = 0; l < PANEL; l++) {
            const size_t k = output + l, block = k / to->block_depth * to->block_depth;
            memcpy(packed_matrix_panel(to, block, panel) + (k - block) * PANEL, tile + l * PANEL, sizeof rows[l]);
        }
    }
}

void transposed_fill(const packed_matrix *transposed, const packed_matrix *matrix, const kernels *table, executor *by)
{
    transposing job = {.to = transposed, .from = matrix, .table = table};
    if (matrix->panel_count > 0) parallel_for(by, transposed->panel_count, transpose_panel, &job);
}

/* ------------------------------------------------------------------------------------------------- rows of activations */

typedef struct range_loop {
    const range_product *product;
    const kernels *table;
    size_t panel_tasks;
} range_loop;

/* Returns the weights that the next task probably reads: the panels that follow, of the same rows of the matrix. */
static const float *weights_behind(const packed_matrix *m, size_t first, size_t panel)
{
    const size_t block = first / m->block_depth * m->block_depth;
    const size_t behind = panel + TASK_PANELS < m->panel_count ? panel + TASK_PANELS : 0;
    return packed_matrix_panel(m, block, behind) + (first - block) * PANEL;
}

static void range_task(void *context, size_t task, size_t worker)
{
    const range_loop *loop = context;
    const range_product *p = loop->product;
    const packed_matrix *m = p->matrix;
    (void)worker;
    const size_t row = task / loop->panel_tasks * TASK_ROWS, panel = task % loop->panel_tasks * TASK_PANELS;
    const size_t end = p->first + p->depth;
    for (size_t k = p->first, next; k < end; k = next) {
        const size_t block = k / m->block_depth * m->block_depth;
        const size_t block_depth = minimum(m->block_depth, m->depth - block);
        next = minimum(end, block + block_depth);
        const bool last = next == end;
        const gemm_task gemm = {
            .rows = minimum(TASK_ROWS, p->rows - row),
            .depth = next - k,
            .panels = minimum(TASK_PANELS, m->panel_count - panel),
            .a = p->a + row * p->lda + (k - p->first),
            .lda = p->lda,
            .b = packed_matrix_panel(m, block, panel) + (k - block) * PANEL,
            .b_panel_stride = block_depth * PANEL,
            .c = p->c + row * p->ldc + panel * PANEL,
            .ldc = p->ldc,
            .c_panel_stride = PANEL,
            .accumulate = p->accumulate || k > p->first,
            .residual = last && p->residual ? p->residual + row * p->ld_residual + panel * PANEL : NULL,
            .ld_residual = p->ld_residual,
            .residual_panel_stride = PANEL,
            .next = last ? weights_behind(m, p->first, panel) : packed_matrix_panel(m, next, panel),
        };
        loop->table->gemm_f32(&gemm);
    }
}

void range_product_run(const range_product *product, const kernels *table, executor *by)
{
    range_loop loop = {
        .product = product, .table = table, .panel_tasks = ceiling_divide(product->matrix->panel_count, TASK_PANELS)};
    parallel_for(by, ceiling_divide(product->rows, TASK_ROWS) * loop.panel_tasks, range_task, &loop);
}

/* ----------------------------------------------------------------------------------------------------- sums over rows */

typedef struct weight_loop {
    const weight_product *product;
    const kernels *table;
    size_t panel_tasks;
} weight_loop;

static void weight_task(void *context, size_t task, size_t worker)
{
    const weight_loop *loop = context;
    const weight_product *p = loop->product;
    (void)worker;
    const size_t column = task / loop->panel_tasks * TASK_COLUMNS, panel = task % loop->panel_tasks * TASK_PANELS;
    const gemm_tn_task gemm = {
        .columns = minimum(TASK_COLUMNS, p->columns - column),
        .panels = minimum(TASK_PANELS, p->panels - panel),
        .a = p->a + column,
        .lda = p->lda,
        .b = p->b + panel * PANEL,
        .ldb = p->ldb,
        .b_panel_stride = PANEL,
        .c = p->c + column * p->ldc + panel * PANEL,
        .ldc = p->ldc,
        .c_panel_stride = PANEL,
        .bounds = p->parts.bounds,
        .parts = p->parts.count,
        .sums = p->sums && panel == 0 ? p->sums + column : NULL,
    };
    loop->table->gemm_tn_f32(&gemm);
}

void weight_product_run(const weight_product *product, const kernels *table, executor *by)
{
    weight_loop loop = {
        .product = product, .table = table, .panel_tasks = ceiling_divide(product->panels, TASK_PANELS)};
    parallel_for(by, ceiling_divide(product->columns, TASK_COLUMNS) * loop.panel_tasks, weight_task, &loop);
}

typedef struct column_loop {
    const column_sum *sum;
    const kernels *table;
} column_loop;

static void column_task(void *context, size_t task, size_t worker)
{
    const column_loop *loop = context;
    const column_sum *sum = loop->sum;
    const size_t column = task * SUM_COLUMNS;
    (void)worker;
    const sum_rows_task rows = {
        .n = minimum(SUM_COLUMNS, sum->n - column),
        .a = sum->a + column,
        .b = sum->b ? sum->b + column : NULL,
        .lda = sum->lda,
        .ldb = sum->ldb,
        .bounds = sum->parts.bounds,
        .parts = sum->parts.count,
        .y = sum->y + column,
    };
    loop->table->sum_rows_f32(&rows);
}

void column_sum_run(const column_sum *sum, const kernels *table, executor *by)
{
    column_loop loop = {.sum = sum, .table = table};
    parallel_for(by, ceiling_divide(sum->n, SUM_COLUMNS), column_task, &loop);
}

/* --------------------------------------------------------------------------------------------------------------- norms */

typedef struct norm_loop {
    const layernorm_backward_task *whole;
    const kernels *table;
} norm_loop;

static void products_norm_task(void *context, size_t task, size_t worker)
{
    const norm_loop *loop = context;
    layernorm_backward_task rows = *loop->whole;
    const size_t first = task * NORM_ROWS;
    (void)worker;
    rows.rows = minimum(NORM_ROWS, loop->whole->rows - first);
    rows.dx += first * rows.lddx;
    rows.normal += first * rows.ld_normal;
    rows.x += first * rows.ldx;
    rows.dy += first * rows.lddy;
    loop->table->layernorm_backward_f32(&rows);
}

void norm_backward_run(const layernorm_backward_task *task, const kernels *table, executor *by)
{
    norm_loop loop = {.whole = task, .table = table};
    parallel_for(by, ceiling_divide(task->rows, NORM_ROWS), products_norm_task, &loop);
}
