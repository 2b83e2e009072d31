/* The kernels on shapes of a base model. SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm_bench.h"

#include <string.h>

/* ---------------------------------------------------------------------------------------------------------- kernels */

static void restore_nothing(bench_arrays *arrays) { (void)arrays; }

static void call_gemm(const kernels *table, bench_arrays *w)
{
    const gemm_task task = {.rows = w->variant == 1 ? 1 : ROWS,
                            .depth = DEPTH,
                            .panels = PANELS,
                            .a = w->a,
                            .lda = DEPTH,
                            .b = w->b,
                            .b_panel_stride = DEPTH * PANEL,
                            .c = w->c,
                            .ldc = DEPTH,
                            .c_panel_stride = PANEL,
                            .bias = w->bias,
                            .gelu = w->variant == 2,
                            .next = w->variant != 1 ? w->b : NULL};
    table->gemm_f32(&task);
}

static void call_pack(const kernels *table, bench_arrays *w)
{
    table->pack_panels_f32(w->b, 64 * PANEL, w->a, DEPTH, ROWS, 64);
}

/* Variants: linear, a step at every other distance, and the same map without the promise. */
static void restore_map(bench_arrays *w)
{
    for (int x = 0; x < ROWS + PANEL; x++) {
        w->row_of[x] = w->variant == 0 ? x : x / 2;
        w->position_of[ROWS + PANEL - 1 - x] = TABLE_ROWS - 1 - w->row_of[x];
    }
}

static void call_position_bias(const kernels *table, bench_arrays *w)
{
    const position_bias_task task = {.rows = ROWS,
                                     .bias = w->c,
                                     .c2p = w->strips,
                                     .ld_c2p = TABLE_ROWS,
                                     .c2p_first = TABLE_ROWS - 1 - ROWS - PANEL,
                                     .p2c = w->b,
                                     .row_of = w->row_of + PANEL - 1,
                                     .position_of = w->position_of + ROWS,
                                     .last_row = TABLE_ROWS - 1,
                                     .unit_steps = w->variant != 2};
    table->position_bias_f32(&task);
}

static void restore_logits(bench_arrays *w) { memcpy(w->c, w->a, ROWS * KEYS * sizeof(float)); }

static void call_softmax(const kernels *table, bench_arrays *w)
{
    const softmax_task task = {.rows = ROWS,
                               .keys = KEYS,
                               .s = w->c,
                               .lds = KEYS,
                               .maximum = w->state[0],
                               .total = w->state[1],
                               .rescale = w->state[2],
                               .first = true};
    table->softmax_f32(&task);
}

static void call_layernorm(const kernels *table, bench_arrays *w)
{
    table->layernorm_f32(w->c, DEPTH, w->a, DEPTH, w->bias, w->bias, ROWS, DEPTH, 1e-7f);
}

static void restore_values(bench_arrays *w) { memcpy(w->c, w->a, VALUES * sizeof(float)); }

static void call_activate(const kernels *table, bench_arrays *w)
{
    table->activate_f32(w->c, VALUES, (kernel_activation)w->variant);
}

static const size_t bounds[] = {0, ROWS};

static void call_gemm_tn(const kernels *table, bench_arrays *w)
{
    const gemm_tn_task task = {.columns = OUTPUTS,
                               .panels = PANELS,
                               .a = w->a,
                               .lda = DEPTH,
                               .b = w->b,
                               .ldb = PANELS * PANEL,
                               .b_panel_stride = PANEL,
                               .c = w->c,
                               .ldc = PANELS * PANEL,
                               .c_panel_stride = PANEL,
                               .bounds = bounds,
                               .parts = 1};
    table->gemm_tn_f32(&task);
}

static void call_sum_rows(const kernels *table, bench_arrays *w)
{
    const sum_rows_task task = {.n = DEPTH,
                                .a = w->a,
                                .lda = DEPTH,
                                .b = w->variant ? w->b : NULL,
                                .ldb = DEPTH,
                                .bounds = bounds,
                                .parts = 1,
                                .y = w->c};
    table->sum_rows_f32(&task);
}

static void call_dot_rows(const kernels *table, bench_arrays *w)
{
    table->dot_rows_f32(w->c, w->a, DEPTH, w->b, DEPTH, ROWS, DEPTH);
}

static void call_layernorm_backward(const kernels *table, bench_arrays *w)
{
    const layernorm_backward_task task = {.rows = ROWS,
                                          .n = KEYS,
                                          .dx = w->c,
                                          .normal = w->normal,
                                          .x = w->a,
                                          .dy = w->b,
                                          .gamma = w->bias,
                                          .lddx = KEYS,
                                          .ld_normal = KEYS,
                                          .ldx = KEYS,
                                          .lddy = KEYS,
                                          .eps = 1e-7f};
    table->layernorm_backward_f32(&task);
}

static void call_activate_backward(const kernels *table, bench_arrays *w)
{
    table->activate_backward_f32(w->c, NULL, w->b, VALUES, (kernel_activation)w->variant);
}

static void restore_gradients(bench_arrays *w)
{
    restore_logits(w);
    memcpy(w->normal, w->b, ROWS * KEYS * sizeof(float));
}

static void call_softmax_backward(const kernels *table, bench_arrays *w)
{
    for (size_t i = 0; i < ROWS; i++) w->state[0][i] = 4, w->state[1][i] = 0.01f, w->state[2][i] = 0;
    const softmax_backward_task task = {.rows = ROWS,
                                        .keys = KEYS,
                                        .s = w->c,
                                        .dp = w->normal,
                                        .lds = KEYS,
                                        .lddp = KEYS,
                                        .maximum = w->state[0],
                                        .inverse_total = w->state[1],
                                        .delta = w->state[2]};
    table->softmax_backward_f32(&task);
}

/* Variants as those of the position bias. The strip goes on growing, far from overflow. */
static void restore_places(bench_arrays *w)
{
    for (int x = 0; x < ROWS + KEYS; x++) w->place_of[x] = w->variant == 0 && x < TABLE_ROWS ? x : x / 2;
}

static void call_fold_runs(const kernels *table, bench_arrays *w)
{
    const fold_runs_task task = {.rows = ROWS,
                                 .columns = KEYS,
                                 .s = w->a,
                                 .row_step = KEYS,
                                 .column_step = 1,
                                 .place_of = w->place_of + ROWS - 1,
                                 .unit_steps = w->variant != 2,
                                 .strip = w->c,
                                 .ld_strip = DEPTH};
    table->fold_runs_f32(&task);
}

static void call_adam(const kernels *table, bench_arrays *w)
{
    const adam_task task = {.n = VALUES,
                            .w = w->c,
                            .m = w->moments[0],
                            .v = w->moments[1],
                            .g = w->a,
                            .scale = 1,
                            .b1 = 0.9f,
                            .c1 = 0.1f,
                            .b2 = 0.999f,
                            .c2 = 0.001f,
                            .eps = 1e-6f,
                            .rate = -1e-6f,
                            .inverse_root = 1,
                            .keep = 1,
                            .coupled = w->variant == 1};
    table->adam_f32(&task);
}

static void call_dropout(const kernels *table, bench_arrays *w)
{
    const dropout_task task = {.rows = ROWS,
                               .n = KEYS,
                               .x = w->c,
                               .ldx = KEYS,
                               .of = w->rows,
                               .seed = 1,
                               .step = 1,
                               .threshold = UINT32_MAX / 10,
                               .scale = 1};
    table->dropout_f32(&task);
}

/* Variants: digits, 1 or 2. */
static void call_quantize(const kernels *table, bench_arrays *w)
{
    const quantize_task task = {.rows = ROWS,
                                .depth = DEPTH,
                                .x = w->a,
                                .ldx = DEPTH,
                                .digits = w->digits,
                                .plane_bytes = ROWS * DEPTH,
                                .scale = w->scales[0],
                                .zero = w->zeros};
    (w->variant == 1 ? table->quantize_u8 : table->quantize_u8x2)(&task);
}

static void call_quantize_u15(const kernels *table, bench_arrays *w)
{
    const quantize_task task = {.rows = ROWS,
                                .depth = KEYS,
                                .x = w->a,
                                .ldx = KEYS,
                                .digits = w->digits,
                                .plane_bytes = ROWS * KEYS,
                                .scale = w->scales[0]};
    table->quantize_u15(&task);
}

static void call_quantize_panels(const kernels *table, bench_arrays *w)
{
    const quantize_panels_task task = {.panels = PANELS,
                                       .depth = KEYS,
                                       .x = w->b,
                                       .x_panel_stride = KEYS * PANEL,
                                       .digits = w->weights,
                                       .scale = w->scales[1],
                                       .sum = w->sums};
    table->quantize_panels_s8(&task);
}

/* The same, and the depth of a chunk of keys: what a variant of 0 stands for. */
static void call_integer_gemm(const kernels *table, bench_arrays *w)
{
    const integer_gemm_task task = {.rows = ROWS,
                                    .depth = w->variant ? DEPTH : KEYS,
                                    .panels = PANELS,
                                    .a = w->digits,
                                    .a_plane_bytes = ROWS * DEPTH,
                                    .a_scale = w->scales[0],
                                    .a_zero = w->zeros,
                                    .b = w->weights,
                                    .b_scale = w->scales[1],
                                    .b_sum = w->sums,
                                    .c = w->c,
                                    .ldc = DEPTH,
                                    .c_panel_stride = PANEL,
                                    .bias = w->bias};
    (w->variant == 0 ? table->gemm_u15 : w->variant == 1 ? table->gemm_u8 : table->gemm_u8x2)(&task);
}

#define GFLOPS          "GFLOP/s", 1e-9
#define NS              "ns/element", -1e9
#define GEMM_FLOP(rows) (2.0 * (rows)*DEPTH * PANELS * PANEL)
const bench_case bench_cases[] = {
    {SLOT_gemm_f32, "96 x 768 x 192, bias", restore_nothing, call_gemm, GEMM_FLOP(ROWS), GFLOPS, 0},
    {SLOT_gemm_f32, "96 x 768 x 192, bias and gelu", restore_nothing, call_gemm, GEMM_FLOP(ROWS), GFLOPS, 2},
    {SLOT_gemm_f32, "1 x 768 x 192, bias", restore_nothing, call_gemm, GEMM_FLOP(1), GFLOPS, 1},
    {SLOT_pack_panels_f32, "96 rows of 64", restore_nothing, call_pack, ROWS * 64, NS, 0},
    {SLOT_position_bias_f32, "96 queries, linear", restore_map, call_position_bias, ROWS *PANEL, NS, 0},
    {SLOT_position_bias_f32, "96 queries, unit steps", restore_map, call_position_bias, ROWS *PANEL, NS, 1},
    {SLOT_position_bias_f32, "96 queries, any map", restore_map, call_position_bias, ROWS *PANEL, NS, 2},
    {SLOT_softmax_f32, "96 rows of 512", restore_logits, call_softmax, ROWS *KEYS, NS, 0},
    {SLOT_layernorm_f32, "96 rows of 768", restore_nothing, call_layernorm, ROWS *DEPTH, NS, 0},
    {SLOT_activate_f32, "gelu", restore_values, call_activate, VALUES, NS, KERNEL_GELU},
    {SLOT_activate_f32, "gelu_tanh", restore_values, call_activate, VALUES, NS, KERNEL_GELU_TANH},
    {SLOT_activate_f32, "gelu_quick", restore_values, call_activate, VALUES, NS, KERNEL_GELU_QUICK},
    {SLOT_activate_f32, "relu", restore_values, call_activate, VALUES, NS, KERNEL_RELU},
    {SLOT_activate_f32, "silu", restore_values, call_activate, VALUES, NS, KERNEL_SILU},
    {SLOT_activate_f32, "tanh", restore_values, call_activate, VALUES, NS, KERNEL_TANH},
    {SLOT_activate_f32, "sigmoid", restore_values, call_activate, VALUES, NS, KERNEL_SIGMOID},
    {SLOT_activate_f32, "exp", restore_values, call_activate, VALUES, NS, KERNEL_EXP},
    {SLOT_gemm_tn_f32, "384 x 96 x 192", restore_nothing, call_gemm_tn, 2.0 * OUTPUTS *ROWS *PANELS *PANEL, GFLOPS, 0},
    {SLOT_sum_rows_f32, "96 rows of 768", restore_nothing, call_sum_rows, ROWS *DEPTH, NS, 0},
    {SLOT_sum_rows_f32, "96 rows of 768, products", restore_nothing, call_sum_rows, ROWS *DEPTH, NS, 1},
    {SLOT_dot_rows_f32, "96 rows of 768", restore_nothing, call_dot_rows, ROWS *DEPTH, NS, 0},
    {SLOT_layernorm_backward_f32, "96 rows of 512", restore_nothing, call_layernorm_backward, ROWS *KEYS, NS, 0},
    {SLOT_activate_backward_f32, "gelu", restore_values, call_activate_backward, VALUES, NS, KERNEL_GELU},
    {SLOT_activate_backward_f32, "tanh", restore_values, call_activate_backward, VALUES, NS, KERNEL_TANH},
    {SLOT_softmax_backward_f32, "96 rows of 512", restore_gradients, call_softmax_backward, ROWS *KEYS, NS, 0},
    {SLOT_fold_runs_f32, "96 rows of 512, linear", restore_places, call_fold_runs, ROWS *KEYS, NS, 0},
    {SLOT_fold_runs_f32, "96 rows of 512, unit steps", restore_places, call_fold_runs, ROWS *KEYS, NS, 1},
    {SLOT_fold_runs_f32, "96 rows of 512, any map", restore_places, call_fold_runs, ROWS *KEYS, NS, 2},
    {SLOT_adam_f32, "3072 weights", restore_nothing, call_adam, VALUES, NS, 0},
    {SLOT_adam_f32, "3072 weights, coupled", restore_nothing, call_adam, VALUES, NS, 1},
    {SLOT_dropout_f32, "96 rows of 512", restore_logits, call_dropout, ROWS *KEYS, NS, 0},
    {SLOT_quantize_u8, "96 rows of 768", restore_nothing, call_quantize, ROWS *DEPTH, NS, 1},
    {SLOT_quantize_u8x2, "96 rows of 768", restore_nothing, call_quantize, ROWS *DEPTH, NS, 2},
    {SLOT_gemm_u8, "96 x 768 x 192, bias", restore_nothing, call_integer_gemm, GEMM_FLOP(ROWS), GFLOPS, 1},
    {SLOT_gemm_u8x2, "96 x 768 x 192, bias", restore_nothing, call_integer_gemm, GEMM_FLOP(ROWS), GFLOPS, 2},
    {SLOT_quantize_u15, "96 rows of 512", restore_nothing, call_quantize_u15, ROWS *KEYS, NS, 0},
    {SLOT_quantize_panels_s8, "512 x 192", restore_nothing, call_quantize_panels, KEYS *PANELS *PANEL, NS, 0},
    {SLOT_gemm_u15, "96 x 512 x 192, bias", restore_nothing, call_integer_gemm, 2.0 * ROWS *KEYS *PANELS *PANEL, GFLOPS,
     0},
    {.call = NULL},
};

void bench_arrays_fill(bench_arrays *arrays, const test_options *options)
{
    test_run run = {.random_state = options->seed};
    fill_matrix(&run, arrays->a, 1, ROWS * DEPTH, ROWS * DEPTH, DIST_BELL, 1.0f);
    fill_matrix(&run, arrays->b, 1, DEPTH * PANELS * PANEL, DEPTH * PANELS * PANEL, DIST_BELL, 0.05f);
    fill_matrix(&run, arrays->bias, 1, DEPTH, DEPTH, DIST_BELL, 1.0f);
    fill_matrix(&run, arrays->strips, 1, ROWS * TABLE_ROWS, ROWS * TABLE_ROWS, DIST_BELL, 1.0f);
    for (uint32_t i = 0; i < ROWS; i++) arrays->rows[i] = (dropout_row){.place = i};
    for (size_t i = 0; i < sizeof arrays->digits; i++) arrays->digits[i] = (uint8_t)random_index(&run, 256);
    for (size_t i = 0; i < sizeof arrays->weights; i++)
        arrays->weights[i] = (int8_t)((int)random_index(&run, 255) - 127);
    for (size_t i = 0; i < DEPTH; i++) arrays->scales[0][i] = arrays->scales[1][i] = 0x1p-7f;
}
