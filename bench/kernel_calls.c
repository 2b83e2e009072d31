/* Each kernel has a function here that calls it on the data of a problem, and a row that says what the call is in
 * work.
 *
 * SPDX-License-Identifier: MIT */
#include "bench/kernel_calls.h"

#include <string.h>

static void call_gemm(const kernels *table, kernel_data *d)
{
    const kernel_problem *p = d->problem;
    size_t copy = d->call++ % d->copies;
    gemm_task task = {
        .rows = p->rows,
        .depth = p->depth,
        .panels = kernel_panels(p),
        .a = d->a,
        .lda = d->lda,
        .b = d->b + copy * d->b_floats,
        .b_panel_stride = p->depth * PANEL,
        .c = d->c,
        .ldc = d->ldc,
        .c_panel_stride = PANEL,
        .bias = p->bias ? d->row : NULL,
        .gelu = p->gelu,
        .residual = p->residual ? d->c : NULL,
        .ld_residual = d->ldc,
        .residual_panel_stride = PANEL,
        .next = d->b + (copy + 1) % d->copies * d->b_floats,
    };
    table->gemm_f32(&task);
}

static void call_pack(const kernels *table, kernel_data *d)
{
    const kernel_problem *p = d->problem;
    table->pack_panels_f32(d->b, p->depth * PANEL, d->a, d->lda, p->rows, p->depth);
}

static void call_position_bias(const kernels *table, kernel_data *d)
{
    position_bias_task task = {
        .rows = d->problem->rows,
        .bias = d->c,
        .c2p = d->a,
        .ld_c2p = d->lda,
        .p2c = d->b,
        .row_of = d->rows + PANEL,
        .position_of = d->positions + d->problem->rows + PANEL - 1,
        .last_row = KERNEL_TABLE_ROWS - 1,
        .unit_steps = true,
    };
    table->position_bias_f32(&task);
}

static void copy_rows(const kernel_data *d, float *to, const float *from, size_t ld)
{
    for (size_t i = 0; i < d->problem->rows; i++)
        memcpy(to + i * d->ldc, from + i * ld, d->problem->columns * sizeof(float));
}

static void call_softmax(const kernels *table, kernel_data *d)
{
    const kernel_problem *p = d->problem;
    softmax_task task = {.rows = p->rows,
                         .keys = p->columns,
                         .s = d->c,
                         .lds = d->ldc,
                         .maximum = d->state,
                         .total = d->state + p->rows,
                         .rescale = d->state + 2 * p->rows,
                         .first = true};
    copy_rows(d, d->c, d->a, d->lda);
    table->softmax_f32(&task);
}

static void call_layernorm(const kernels *table, kernel_data *d)
{
    const kernel_problem *p = d->problem;
    table->layernorm_f32(d->c, d->ldc, d->a, d->lda, d->row, d->second_row, p->rows, p->columns, 1e-7f);
}

static void call_activate(const kernels *table, kernel_data *d)
{
    copy_rows(d, d->c, d->a, d->lda);
    for (size_t i = 0; i < d->problem->rows; i++)
        table->activate_f32(d->c + i * d->ldc, d->problem->columns, (kernel_activation)d->problem->function);
}

static void call_gemm_tn(const kernels *table, kernel_data *d)
{
    const size_t bounds[] = {0, d->problem->rows};
    const gemm_tn_task task = {.columns = d->problem->depth,
                               .panels = kernel_panels(d->problem),
                               .a = d->a,
                               .lda = d->lda,
                               .b = d->b,
                               .ldb = d->ldb,
                               .b_panel_stride = PANEL,
                               .c = d->c,
                               .ldc = d->ldc,
                               .c_panel_stride = PANEL,
                               .bounds = bounds,
                               .parts = 1};
    table->gemm_tn_f32(&task);
}

static void call_sum_rows(const kernels *table, kernel_data *d)
{
    const size_t bounds[] = {0, d->problem->rows};
    const sum_rows_task task = {
        .n = d->problem->columns, .a = d->a, .lda = d->lda, .bounds = bounds, .parts = 1, .y = d->c};
    table->sum_rows_f32(&task);
}

static void call_dot_rows(const kernels *table, kernel_data *d)
{
    table->dot_rows_f32(d->state, d->a, d->lda, d->b, d->ldb, d->problem->rows, d->problem->columns);
}

static void call_layernorm_backward(const kernels *table, kernel_data *d)
{
    const layernorm_backward_task task = {.rows = d->problem->rows,
                                          .n = d->problem->columns,
                                          .dx = d->c,
                                          .normal = d->d,
                                          .x = d->a,
                                          .dy = d->b,
                                          .gamma = d->row,
                                          .lddx = d->ldc,
                                          .ld_normal = d->ldc,
                                          .ldx = d->lda,
                                          .lddy = d->ldb,
                                          .eps = 1e-7f};
    table->layernorm_backward_f32(&task);
}

static void call_activate_backward(const kernels *table, kernel_data *d)
{
    const kernel_problem *p = d->problem;
    copy_rows(d, d->c, d->a, d->lda);
    for (size_t i = 0; i < p->rows; i++)
        table->activate_backward_f32(d->c + i * d->ldc, NULL, d->b + i * d->ldb, p->columns,
                                     (kernel_activation)p->function);
}

static void call_softmax_backward(const kernels *table, kernel_data *d)
{
    const kernel_problem *p = d->problem;
    const softmax_backward_task task = {.rows = p->rows,
                                        .keys = p->columns,
                                        .s = d->c,
                                        .dp = d->d,
                                        .lds = d->ldc,
                                        .lddp = d->ldc,
                                        .maximum = d->state,
                                        .inverse_total = d->state + p->rows,
                                        .delta = d->state + 2 * p->rows};
    copy_rows(d, d->c, d->a, d->lda);
    copy_rows(d, d->d, d->b, d->ldb);
    table->softmax_backward_f32(&task);
}

/* The strip goes on growing, too slowly to run away while it is measured. */
static void call_fold_runs(const kernels *table, kernel_data *d)
{
    const kernel_problem *p = d->problem;
    const fold_runs_task task = {.rows = p->rows,
                                 .columns = p->columns,
                                 .s = d->a,
                                 .row_step = d->lda,
                                 .column_step = 1,
                                 .place_of = d->rows + p->rows - 1,
                                 .unit_steps = true,
                                 .strip = d->c,
                                 .ld_strip = d->ldc};
    table->fold_runs_f32(&task);
}

static void call_adam(const kernels *table, kernel_data *d)
{
    const adam_task task = {.n = d->problem->rows * d->problem->columns,
                            .w = d->c,
                            .m = d->d,
                            .v = d->b,
                            .g = d->a,
                            .scale = 1,
                            .b1 = 0.9f,
                            .c1 = 0.1f,
                            .b2 = 0.999f,
                            .c2 = 0.001f,
                            .eps = 1e-6f,
                            .rate = -1e-6f,
                            .inverse_root = 1,
                            .keep = 1};
    table->adam_f32(&task);
}

/* Between calls nothing is restored: with a scale of 1 values become 0 or stay. */
static void call_dropout(const kernels *table, kernel_data *d)
{
    const dropout_task task = {.rows = d->problem->rows,
                               .n = d->problem->columns,
                               .x = d->a,
                               .ldx = d->lda,
                               .of = d->places,
                               .seed = 1,
                               .step = 1,
                               .threshold = UINT32_MAX / 10,
                               .scale = 1};
    table->dropout_f32(&task);
}

static quantize_task quantize_task_of(const kernel_data *d)
{
    return (quantize_task){.rows = d->problem->rows,
                           .depth = d->problem->depth,
                           .x = d->a,
                           .ldx = d->lda,
                           .digits = d->digits,
                           .plane_bytes = kernel_plane_bytes(d->problem),
                           .scale = d->row_scales,
                           .zero = d->zeros};
}

static void call_quantize_u8(const kernels *table, kernel_data *d)
{
    const quantize_task task = quantize_task_of(d);
    table->quantize_u8(&task);
}

static void call_quantize_u8x2(const kernels *table, kernel_data *d)
{
    const quantize_task task = quantize_task_of(d);
    table->quantize_u8x2(&task);
}

static void call_quantize_u15(const kernels *table, kernel_data *d)
{
    const quantize_task task = quantize_task_of(d);
    table->quantize_u15(&task);
}

static void call_quantize_panels_s8(const kernels *table, kernel_data *d)
{
    const quantize_panels_task task = {.panels = kernel_panels(d->problem),
                                       .depth = d->problem->depth,
                                       .x = d->b,
                                       .x_panel_stride = d->problem->depth * PANEL,
                                       .digits = d->weights,
                                       .scale = d->column_scales,
                                       .sum = d->sums};
    table->quantize_panels_s8(&task);
}

static integer_gemm_task integer_task_of(const kernel_data *d)
{
    return (integer_gemm_task){.rows = d->problem->rows,
                               .depth = d->problem->depth,
                               .panels = kernel_panels(d->problem),
                               .a = d->digits,
                               .a_plane_bytes = kernel_plane_bytes(d->problem),
                               .a_scale = d->row_scales,
                               .a_zero = d->zeros,
                               .b = d->weights,
                               .b_scale = d->column_scales,
                               .b_sum = d->sums,
                               .c = d->c,
                               .ldc = d->ldc,
                               .c_panel_stride = PANEL};
}

static void call_gemm_u8(const kernels *table, kernel_data *d)
{
    const integer_gemm_task task = integer_task_of(d);
    table->gemm_u8(&task);
}

static void call_gemm_u8x2(const kernels *table, kernel_data *d)
{
    const integer_gemm_task task = integer_task_of(d);
    table->gemm_u8x2(&task);
}

static void call_gemm_u15(const kernels *table, kernel_data *d)
{
    const integer_gemm_task task = integer_task_of(d);
    table->gemm_u15(&task);
}

/* Floats, or bytes as parts of them, that a call moves at least: so many times rows x columns, rows x depth and depth x
 * columns. */
#define SLOT(name)     call_##name, offsetof(kernels, name##_f32_isa)
#define INTEGERS(name) call_##name, offsetof(kernels, name##_isa)
static const struct {
    void (*call)(const kernels *table, kernel_data *d);
    size_t isa_at; /* of the slot's word in the table */
    double rows_columns, rows_depth, depth_columns;
} operations[KERNEL_OPERATIONS] = {
    [KERNEL_GEMM] = {SLOT(gemm), 1, 1, 1},
    [KERNEL_PACK] = {call_pack, offsetof(kernels, pack_panels_f32_isa), 0, 2, 0},
    [KERNEL_POSITION_BIAS] = {SLOT(position_bias), 3, 0, 0},
    [KERNEL_SOFTMAX] = {SLOT(softmax), 4, 0, 0},
    [KERNEL_LAYERNORM] = {SLOT(layernorm), 2, 0, 0},
    [KERNEL_ACTIVATE] = {SLOT(activate), 4, 0, 0},
    [KERNEL_GEMM_TN] = {SLOT(gemm_tn), 1, 1, 1},
    [KERNEL_SUM_ROWS] = {SLOT(sum_rows), 1, 0, 0},
    [KERNEL_DOT_ROWS] = {SLOT(dot_rows), 2, 0, 0},
    [KERNEL_LAYERNORM_BACKWARD] = {SLOT(layernorm_backward), 4, 0, 0},
    [KERNEL_ACTIVATE_BACKWARD] = {SLOT(activate_backward), 5, 0, 0},
    [KERNEL_SOFTMAX_BACKWARD] = {SLOT(softmax_backward), 8, 0, 0},
    [KERNEL_FOLD_RUNS] = {SLOT(fold_runs), 1, 0, 0},
    [KERNEL_ADAM] = {SLOT(adam), 7, 0, 0},
    [KERNEL_DROPOUT] = {SLOT(dropout), 2, 0, 0},
    [KERNEL_QUANTIZE_U8] = {INTEGERS(quantize_u8), 0, 1.25, 0},
    [KERNEL_QUANTIZE_U8X2] = {INTEGERS(quantize_u8x2), 0, 1.5, 0},
    [KERNEL_QUANTIZE_U15] = {INTEGERS(quantize_u15), 0, 1.5, 0},
    [KERNEL_QUANTIZE_PANELS] = {INTEGERS(quantize_panels_s8), 0, 0, 1.25},
    [KERNEL_GEMM_U8] = {INTEGERS(gemm_u8), 1, 0.25, 0.25},
    [KERNEL_GEMM_U8X2] = {INTEGERS(gemm_u8x2), 1, 0.5, 0.5},
    [KERNEL_GEMM_U15] = {INTEGERS(gemm_u15), 1, 0.5, 0.25},
};

void kernel_call(const kernels *table, kernel_data *data) { operations[data->problem->operation].call(table, data); }

const char *kernel_implementation(const kernels *table, kernel_operation operation)
{
    return *(const char *const *)((const char *)table + operations[operation].isa_at);
}

kernel_work kernel_work_of(const kernel_problem *p)
{
    const kernel_operation o = p->operation;
    const double rows = (double)p->rows, depth = (double)p->depth,
                 columns = o == KERNEL_POSITION_BIAS ? PANEL : (double)p->columns;
    const bool multiplies = o == KERNEL_GEMM || o == KERNEL_GEMM_TN || o >= KERNEL_GEMM_U8;
    const bool of_depth = o == KERNEL_PACK || (o >= KERNEL_QUANTIZE_U8 && o <= KERNEL_QUANTIZE_U15);
    const bool of_weights = o == KERNEL_GEMM_TN || o == KERNEL_QUANTIZE_PANELS;
    const double floats = (operations[o].rows_columns + p->residual) * rows * columns +
                          operations[o].rows_depth * rows * depth + operations[o].depth_columns * depth * columns;
    return (kernel_work){.gflop = multiplies ? 1e-9 * 2 * rows * depth * columns : 0,
                         .bytes = floats * sizeof(float),
                         .elements = of_depth     ? rows * depth
                                     : of_weights ? depth * columns
                                                  : rows * columns};
}
