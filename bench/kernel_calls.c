/* SPDX-License-Identifier: MIT */
#include "bench/kernel_calls.h"

#include <string.h>

#include "core/base/random.h"
#include "core/model/pack.h"
#include "core/model/positions.h"

#define COLD_BYTES ((size_t)256 << 20)

/* v3's table: what position_bias and fold_runs are measured with. */
static const position_rule rule_of_v3 = {.span = 256, .buckets = 256, .max_distance = 512, .clamp_distance = true};
enum { V3_ROWS = 512 };

static size_t panels_of(const kernel_problem *p) { return (p->columns + PANEL - 1) / PANEL; }

/* --------------------------------------------------------------------------------------------------------- one call */

static void call_gemm(const kernels *table, kernel_data *d)
{
    const kernel_problem *p = d->problem;
    size_t copy = d->call++ % d->copies;
    gemm_task task = {
        .rows = p->rows,
        .depth = p->depth,
        .panels = panels_of(p),
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
        .last_row = V3_ROWS - 1,
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
                               .panels = panels_of(d->problem),
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
        table->activate_backward_f32(d->c + i * d->ldc, d->b + i * d->ldb, p->columns, (kernel_activation)p->function);
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
                                 .lds = d->lda,
                                 .s_panel_stride = PANEL,
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

/* From a plane of digits to the next. */
static size_t plane_of(const kernel_problem *p)
{
    return (p->rows + DIGIT_TILE_ROWS - 1) / DIGIT_TILE_ROWS * DIGIT_TILE_ROWS * p->depth;
}

static quantize_task quantize_task_of(const kernel_data *d)
{
    return (quantize_task){.rows = d->problem->rows,
                           .depth = d->problem->depth,
                           .x = d->a,
                           .ldx = d->lda,
                           .digits = d->digits,
                           .plane_bytes = plane_of(d->problem),
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

static integer_gemm_task integer_task_of(const kernel_data *d)
{
    return (integer_gemm_task){.rows = d->problem->rows,
                               .depth = d->problem->depth,
                               .panels = panels_of(d->problem),
                               .a = d->digits,
                               .a_plane_bytes = plane_of(d->problem),
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
    [KERNEL_GEMM_U8] = {INTEGERS(gemm_u8), 1, 0.25, 0.25},
    [KERNEL_GEMM_U8X2] = {INTEGERS(gemm_u8x2), 1, 0.5, 0.5},
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
    const bool of_integers = o == KERNEL_GEMM_U8 || o == KERNEL_GEMM_U8X2;
    const bool multiplies = o == KERNEL_GEMM || o == KERNEL_GEMM_TN || of_integers;
    const bool of_depth = o == KERNEL_PACK || o == KERNEL_QUANTIZE_U8 || o == KERNEL_QUANTIZE_U8X2;
    const double floats = (operations[o].rows_columns + p->residual) * rows * columns +
                          operations[o].rows_depth * rows * depth + operations[o].depth_columns * depth * columns;
    return (kernel_work){.gflop = multiplies ? 1e-9 * 2 * rows * depth * columns : 0,
                         .bytes = floats * sizeof(float),
                         .elements = of_depth              ? rows * depth
                                     : o == KERNEL_GEMM_TN ? depth * columns
                                                           : rows * columns};
}

/* ------------------------------------------------------------------------------------------------------------- data */

static bool reads_two_matrices(kernel_operation operation)
{
    return operation == KERNEL_DOT_ROWS || operation == KERNEL_LAYERNORM_BACKWARD ||
           operation == KERNEL_ACTIVATE_BACKWARD || operation == KERNEL_SOFTMAX_BACKWARD || operation == KERNEL_ADAM ||
           operation == KERNEL_GEMM_TN;
}

static bool reads_depth(kernel_operation operation)
{
    return operation == KERNEL_GEMM || operation == KERNEL_PACK || operation == KERNEL_GEMM_TN ||
           operation >= KERNEL_QUANTIZE_U8;
}

/* Entries of the table of positions. */
static size_t distances_of(const kernel_problem *p)
{
    return p->operation == KERNEL_FOLD_RUNS ? p->rows + p->columns : p->rows + 2 * PANEL;
}

static size_t floats_of_b(const kernel_data *d)
{
    const kernel_problem *p = d->problem;
    if (p->operation == KERNEL_PACK) return (p->rows + PANEL - 1) / PANEL * PANEL * p->depth;
    if (p->operation == KERNEL_POSITION_BIAS) return V3_ROWS * PANEL;
    return reads_two_matrices(p->operation) ? p->rows * d->ldb : p->depth * panels_of(p) * PANEL;
}

void kernel_data_carve(kernel_data *d, arena *memory, bool cold)
{
    const kernel_problem *p = d->problem;
    d->lda = row_stride(reads_depth(p->operation) ? p->depth : p->columns);
    d->ldb = d->ldc = row_stride(panels_of(p) * PANEL);
    if (p->operation == KERNEL_POSITION_BIAS) d->lda = V3_ROWS + PANEL;
    if (p->operation == KERNEL_FOLD_RUNS) d->ldc = V3_ROWS + PANEL;
    const size_t out_rows = p->operation == KERNEL_GEMM_TN ? p->depth : p->rows;
    d->b_floats = floats_of_b(d);
    d->copies = 1;
    if (cold && p->operation == KERNEL_GEMM) d->copies = COLD_BYTES / (d->b_floats * sizeof(float)) + 1;
    d->a = arena_take(memory, p->rows * d->lda, sizeof(float));
    d->b = arena_take(memory, d->copies * d->b_floats, sizeof(float));
    d->c = arena_take(memory, out_rows * (d->ldc > PANEL ? d->ldc : PANEL), sizeof(float));
    d->d = arena_take(memory, p->rows * d->ldc, sizeof(float));
    d->row = arena_take(memory, d->ldc, sizeof(float));
    d->second_row = arena_take(memory, d->ldc, sizeof(float));
    d->state = arena_take(memory, 3 * p->rows, sizeof(float));
    d->rows = arena_take(memory, distances_of(p), sizeof(int32_t));
    d->positions = arena_take(memory, p->rows + 2 * PANEL, sizeof(int32_t));
    d->places = arena_take(memory, p->rows, sizeof *d->places);
    if (p->operation < KERNEL_QUANTIZE_U8) return;
    const size_t columns = panels_of(p) * PANEL, digits = 2; /* the most */
    d->digits = arena_take(memory, digits * plane_of(p), 1);
    d->weights = arena_take(memory, digits * columns * p->depth, 1);
    d->zeros = arena_take(memory, p->rows, sizeof(int32_t));
    d->sums = arena_take(memory, digits * columns, sizeof(int32_t));
    d->row_scales = arena_take(memory, p->rows, sizeof(float));
    d->column_scales = arena_take(memory, columns, sizeof(float));
}

/* Numbers in [-1, 1): no subnormals, no runs of equal values. */
static void fill(float *x, size_t count)
{
    uint64_t state = 12345;
    for (size_t i = 0; i < count; i++) x[i] = (float)(2 * random_fraction(&state) - 1);
}

/* Any digits do: products of integers take the same time whatever they are. */
static void fill_digits(kernel_data *d)
{
    const kernel_problem *p = d->problem;
    const size_t columns = panels_of(p) * PANEL;
    uint64_t state = 12345;
    for (size_t i = 0; i < 2 * plane_of(p); i++) d->digits[i] = (uint8_t)random_below(&state, 256);
    for (size_t i = 0; i < 2 * columns * p->depth; i++) d->weights[i] = (int8_t)((int)random_below(&state, 255) - 127);
    for (size_t i = 0; i < 2 * columns; i++) d->sums[i] = 0;
    for (size_t i = 0; i < p->rows; i++) d->zeros[i] = 128, d->row_scales[i] = 1;
    for (size_t i = 0; i < columns; i++) d->column_scales[i] = 1;
}

void kernel_data_fill(kernel_data *d)
{
    const kernel_problem *p = d->problem;
    const bool folds = p->operation == KERNEL_FOLD_RUNS;
    if (p->operation >= KERNEL_QUANTIZE_U8) fill_digits(d);
    for (size_t i = 0; i < p->rows; i++) d->places[i] = (dropout_row){.place = (uint32_t)i};
    fill(d->a, p->rows * d->lda);
    fill(d->b, d->copies * d->b_floats);
    fill(d->row, d->ldc);
    fill(d->second_row, d->ldc);
    /* Of rows whose largest logit is 1, and of squares of gradients. */
    for (size_t i = 0; i < 3 * p->rows; i++) d->state[i] = 1;
    for (size_t i = 0; p->operation == KERNEL_ADAM && i < d->b_floats; i++) d->b[i] *= d->b[i];
    if (p->operation == KERNEL_ADAM || folds) fill(d->c, p->rows * d->ldc);
    if (p->operation == KERNEL_ADAM) fill(d->d, p->rows * d->ldc);
    /* Index PANEL is query 0 and key lane 0; of fold_runs the last query's is. */
    const ptrdiff_t zero = folds ? (ptrdiff_t)p->rows - 1 : PANEL, count = (ptrdiff_t)distances_of(p);
    for (ptrdiff_t i = 0; i < count; i++) d->rows[i] = (int32_t)position_row(&rule_of_v3, p->distance + i - zero);
    for (ptrdiff_t i = 0; !folds && i < count; i++) d->positions[count - 1 - i] = V3_ROWS - 1 - d->rows[i];
}
