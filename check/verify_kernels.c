/* Kernels on random problems: each tier against scalar's bits and the float64 formula. The exhaustive version, with
 * guard pages and every edge, is tests/checkasm; this one runs anywhere in a second. SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"
#include "core/dispatch.h"
#include "check/verify_rounds.h"
#include "check/verify_integer.h"
#include "check/verify_training.h"

static void round_gemm(verify_rounds *k)
{
    const size_t rows = rounds_size(k, ROWS), panels = 1 + rounds_below(k, COLUMNS / PANEL),
                 depth = rounds_size(k, DEPTH);
    const size_t ld = panels * PANEL + rounds_below(k, 9);
    const bool bias = rounds_below(k, 2), residual = rounds_below(k, 2);
    rounds_fill(k, k->a, rows * depth);
    rounds_fill(k, k->b, panels * depth * PANEL);
    rounds_fill(k, k->extra, COLUMNS + rows * COLUMNS);
    rounds_start(k, rows * ld);
    EACH_TIER(t)
    {
        const gemm_task task = {.rows = rows,
                                .depth = depth,
                                .panels = panels,
                                .a = k->a,
                                .lda = depth,
                                .b = k->b,
                                .b_panel_stride = depth * PANEL,
                                .c = k->out[t],
                                .ldc = ld,
                                .c_panel_stride = PANEL,
                                .bias = bias ? k->extra : NULL,
                                .residual = residual ? k->extra + COLUMNS : NULL,
                                .ld_residual = COLUMNS,
                                .residual_panel_stride = PANEL};
        k->tables[t].gemm_f32(&task);
    }
    rounds_compare(k, rows * ld);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < panels * PANEL; j++) {
            double sum = 0, terms = 0;
            for (size_t d = 0; d < depth; d++) {
                const double term =
                    (double)k->a[i * depth + d] * (double)k->b[(j / PANEL * depth + d) * PANEL + j % PANEL];
                sum += term;
                terms += fabs(term);
            }
            const double more[2] = {bias ? (double)k->extra[j] : 0,
                                    residual ? (double)k->extra[COLUMNS + i * COLUMNS + j] : 0};
            for (int m = 0; m < 2; m++) {
                sum += more[m];
                terms += fabs(more[m]);
            }
            EACH_TIER(t)
            verify_errors_add(&k->errors[t], (double)k->out[t][i * ld + j], sum,
                              FLT_EPSILON * terms + FLT_TRUE_MIN * (double)(depth + 1), "row %zu, column %zu", i, j);
        }
}

static void round_pack(verify_rounds *k)
{
    const size_t rows = rounds_size(k, ROWS), depth = rounds_size(k, DEPTH), panels = (rows + PANEL - 1) / PANEL;
    rounds_fill(k, k->a, rows * depth);
    rounds_start(k, panels * depth * PANEL);
    EACH_TIER(t) k->tables[t].pack_panels_f32(k->out[t], depth * PANEL, k->a, depth, rows, depth);
    rounds_compare(k, panels * depth * PANEL);
    for (size_t r = 0; r < panels * PANEL; r++)
        for (size_t d = 0; d < depth; d++) EACH_TIER(t)
    verify_errors_add(&k->errors[t], (double)k->out[t][(r / PANEL * depth + d) * PANEL + r % PANEL],
                      r < rows ? (double)k->a[r * depth + d] : 0, FLT_EPSILON, "row %zu, column %zu", r, d);
}

static void round_position_bias(verify_rounds *k)
{
    /* A table as log buckets give it, irregular now and then: rows that rise by 0 or 1 (or 2). */
    enum { REACH = 100 };
    const size_t rows = rounds_size(k, 60);
    const bool irregular = rounds_below(k, 4) == 0;
    int32_t *row_of = k->table + 2 * REACH, *position_of = row_of + 4 * REACH;
    int32_t row = 0;
    for (int r = -REACH; r <= REACH; r++) {
        row_of[r] = row;
        row += (int32_t)(irregular ? rounds_below(k, 3) : abs(r) < 40 ? 1 : rounds_below(k, 2));
    }
    const int32_t last = row_of[REACH];
    for (int r = -REACH; r <= REACH; r++) position_of[-r] = last - row_of[r];
    const size_t stride = (size_t)last + 1 + PANEL;
    rounds_fill(k, k->a, rows * stride);
    rounds_fill(k, k->b, ((size_t)last + 1) * PANEL);
    rounds_start(k, rows * PANEL);
    EACH_TIER(t)
    {
        const position_bias_task task = {.rows = rows,
                                         .bias = k->out[t],
                                         .c2p = k->a,
                                         .ld_c2p = stride,
                                         .p2c = k->b,
                                         .row_of = row_of,
                                         .position_of = position_of,
                                         .last_row = last,
                                         .unit_steps = !irregular};
        k->tables[t].position_bias_f32(&task);
    }
    rounds_compare(k, rows * PANEL);
    for (size_t i = 0; i < rows; i++)
        for (size_t l = 0; l < PANEL; l++) {
            const int32_t used = row_of[(ptrdiff_t)i - (ptrdiff_t)l];
            const double c2p = (double)k->a[i * stride + (size_t)(last - used)],
                         p2c = (double)k->b[(size_t)used * PANEL + l];
            EACH_TIER(t)
            verify_errors_add(&k->errors[t], (double)k->out[t][i * PANEL + l], c2p + p2c,
                              FLT_EPSILON * (fabs(c2p) + fabs(p2c)) + FLT_TRUE_MIN, "query %zu, lane %zu", i, l);
        }
}

static void round_softmax(verify_rounds *k)
{
    const size_t rows = 1 + rounds_below(k, 8), keys = rounds_size(k, KEY_CHUNK), ld = keys + rounds_below(k, 5);
    const bool masked = rounds_below(k, 2);
    rounds_start(k, rows * ld);
    rounds_keep(k, k->a, rows * ld);
    for (size_t j = 0; j < keys; j++) k->extra[j] = masked && rounds_below(k, 3) == 0 ? -INFINITY : 0;
    float maximum[TIERS][8], total[TIERS][8];
    EACH_TIER(t)
    {
        const softmax_task task = {.rows = rows,
                                   .keys = keys,
                                   .s = k->out[t],
                                   .lds = ld,
                                   .key_bias = masked ? k->extra : NULL,
                                   .maximum = maximum[t],
                                   .total = total[t],
                                   .first = true};
        k->tables[t].softmax_f32(&task);
        k->differing[t] += memcmp(maximum[t], maximum[DEBERTA_ISA_SCALAR], rows * sizeof(float)) != 0;
        k->differing[t] += memcmp(total[t], total[DEBERTA_ISA_SCALAR], rows * sizeof(float)) != 0;
    }
    rounds_compare(k, rows * ld);
    for (size_t i = 0; i < rows; i++) {
        double top = -INFINITY, sum = 0;
        for (size_t j = 0; j < keys; j++) top = fmax(top, (double)k->a[i * ld + j] + (double)k->extra[j]);
        if (isinf(top)) continue; /* nothing to attend to: zeros, and bits were compared */
        for (size_t j = 0; j < keys; j++) sum += exp((double)k->a[i * ld + j] + (double)k->extra[j] - top);
        for (size_t j = 0; j < keys; j++) {
            const double below_top = top - ((double)k->a[i * ld + j] + (double)k->extra[j]), p = exp(-below_top) / sum;
            /* rounding the difference counts as often as it is large; what is far below is 0 */
            EACH_TIER(t)
            verify_errors_add(&k->errors[t], (double)k->out[t][i * ld + j] / (double)total[t][i], p,
                              FLT_EPSILON * (p + 1e-30) * (1 + fmin(below_top, 88)), "row %zu, key %zu", i, j);
        }
    }
}

static void round_layernorm(verify_rounds *k)
{
    const size_t rows = 1 + rounds_below(k, 8), n = rounds_size(k, WIDTH), ld = n + rounds_below(k, 5);
    const float eps = 1e-7f, shift = rounds_below(k, 2) ? 100.0f : 0.0f;
    rounds_fill(k, k->a, rows * ld);
    for (size_t i = 0; i < rows * ld; i++) k->a[i] += shift;
    rounds_fill(k, k->extra, 2 * n);
    rounds_start(k, rows * ld);
    EACH_TIER(t) k->tables[t].layernorm_f32(k->out[t], ld, k->a, ld, k->extra, k->extra + n, rows, n, eps);
    rounds_compare(k, rows * ld);
    for (size_t i = 0; i < rows; i++) {
        double mean = 0, magnitude = 0,
               variance = 0; /* the mean is as exact as the numbers that it is made of are small */
        for (size_t e = 0; e < n; e++) mean += (double)k->a[i * ld + e] / (double)n;
        for (size_t e = 0; e < n; e++) magnitude += fabs((double)k->a[i * ld + e]) / (double)n;
        for (size_t e = 0; e < n; e++) variance += pow((double)k->a[i * ld + e] - mean, 2) / (double)n;
        const double r = 1 / sqrt(variance + (double)eps);
        for (size_t e = 0; e < n; e++) {
            const double x = (double)k->a[i * ld + e], gamma = (double)k->extra[e], beta = (double)k->extra[n + e];
            EACH_TIER(t)
            verify_errors_add(&k->errors[t], (double)k->out[t][i * ld + e], (x - mean) * r * gamma + beta,
                              FLT_EPSILON * ((fabs(x) + magnitude) * r * fabs(gamma) + fabs(beta)) + FLT_TRUE_MIN,
                              "row %zu, column %zu", i, e);
        }
    }
}

static double exact_activation(kernel_activation function, double x)
{
    switch (function) {
    case KERNEL_GELU: return 0.5 * x * erfc(-x * M_SQRT1_2);
    case KERNEL_GELU_TANH: return x / (1 + exp(-2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case KERNEL_GELU_QUICK: return x / (1 + exp(-1.702 * x));
    case KERNEL_RELU: return x > 0 ? x : 0;
    case KERNEL_SILU: return x / (1 + exp(-x));
    case KERNEL_TANH: return tanh(x);
    case KERNEL_SIGMOID: return 1 / (1 + exp(-x));
    default: return exp(x);
    }
}

static void round_activate(verify_rounds *k)
{
    const kernel_activation function = (kernel_activation)rounds_below(k, KERNEL_EXP + 1);
    const size_t n = rounds_size(k, 700);
    rounds_start(k, n);
    rounds_keep(k, k->a, n);
    EACH_TIER(t) k->tables[t].activate_f32(k->out[t], n, function);
    rounds_compare(k, n);
    for (size_t i = 0; i < n; i++) {
        const double x = (double)k->a[i], exact = exact_activation(function, x);
        const double y = exact > FLT_MAX ? INFINITY : exact;
        /* relative, but for what is too small to matter in a sum: 1e-8 of the argument */
        EACH_TIER(t)
        verify_errors_add(&k->errors[t], (double)k->out[t][i], y, FLT_EPSILON * (fabs(y) + 1e-2 * fabs(x) + 1e-30),
                          "element %zu", i, 0);
    }
}

static const struct {
    const char *suffix; /* of the report's subject */
    int rounds;
} input_kinds[INPUTS] = {{"", 60}, {" huge", 20}, {" ties", 20}, {" subnormal", 20}, {" constant", 20}};

static const struct {
    const char *name;
    void (*round)(verify_rounds *);
    double limit; /* in eps times the scale; the bounds of core/kernels.h for the largest sizes here, in its eps / 2 */
} checks[] = {
    {"gemm_f32", round_gemm, (DEPTH + 2) / 2.0},
    {"pack_panels_f32", round_pack, 0},
    {"position_bias_f32", round_position_bias, 0.501},
    {"softmax_f32", round_softmax, 8},
    {"layernorm_f32", round_layernorm, (1.5 * (WIDTH / PANEL + 1) + 16) / 2},
    {"activate_f32", round_activate, 8},
    {"gemm_tn_f32", round_gemm_tn, (DEPTH + MAX_ROW_PARTS) / 2.0},
    {"sum_rows_f32", round_sum_rows, (DEPTH + MAX_ROW_PARTS) / 2.0},
    {"dot_rows_f32", round_dot_rows, (WIDTH / PANEL + 8) / 2.0},
    {"layernorm_backward_f32", round_layernorm_backward, (4 * (WIDTH / PANEL + 1) + 48) / 2.0},
    {"activate_backward_f32", round_activate_backward, 8},
    {"softmax_backward_f32", round_softmax_backward, 8},
    {"fold_runs_f32", round_fold_runs, (COLUMNS + 1) / 2.0},
    {"adam_f32", round_adam, 8},
    {"dropout_f32", round_dropout, 0.501},
    {"quantize_u8", round_quantize_u8, 1.001},
    {"quantize_u8x2", round_quantize_u8x2, 1.001},
    {"quantize_u15", round_quantize_u15, 1.001},
    {"quantize_panels_s8", round_quantize_panels_s8, 1.001},
    {"gemm_u8", round_gemm_u8, 2.5},
    {"gemm_u8x2", round_gemm_u8x2, 2.5},
    {"gemm_u15", round_gemm_u15, 2.5},
};

static deberta_status allocate(verify_rounds *k, deberta_error *err)
{
    bool fine = (k->table = calloc(1024, sizeof(int32_t))) != NULL;
    for (int m = 0; m < 3 + TIERS; m++)
        if (m < 3 || k->present[m - 3]) fine = (k->memory[m] = malloc((FLOATS + PANEL) * sizeof(float))) && fine;
    if (!fine) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    return DEBERTA_OK;
}

/* One kernel on one kind of inputs: a row for each tier. */
static deberta_status check(verify_rounds *k, size_t c, verify_report *report, deberta_error *err)
{
    memset(k->values, 0, sizeof k->values);
    memset(k->differing, 0, sizeof k->differing);
    for (int round = 0; round < input_kinds[k->inputs].rounds; round++) {
        rounds_shift(k);
        checks[c].round(k);
    }
    EACH_TIER(t)
    {
        verify_row row = {
            .tier = (deberta_isa)t, .values = k->values[t], .differing = k->differing[t], .limit = checks[c].limit};
        snprintf(row.subject, sizeof row.subject, "%s%s", checks[c].name, input_kinds[k->inputs].suffix);
        DEBERTA_TRY(verify_report_add(report, &row, &k->errors[t], err));
    }
    return DEBERTA_OK;
}

static deberta_status check_all(verify_rounds *k, verify_report *report, uint64_t seed, deberta_error *err)
{
    DEBERTA_TRY(allocate(k, err));
    for (int kind = 0; kind < INPUTS; kind++)
        for (size_t c = 0; c < sizeof checks / sizeof *checks; c++) {
            k->state = seed + c + (uint64_t)kind * 100;
            k->inputs = (inputs)kind;
            DEBERTA_TRY(check(k, c, report, err));
        }
    return DEBERTA_OK;
}

deberta_status verify_kernels(verify_report *report, const verify_options *options, deberta_error *err)
{
    verify_rounds *k = calloc(1, sizeof *k);
    if (!k) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    deberta_status status = DEBERTA_OK;
    for (int t = DEBERTA_ISA_SCALAR; status == DEBERTA_OK && t < TIERS; t++)
        if (t == DEBERTA_ISA_SCALAR || options->tiers[t]) {
            status = kernels_select(&k->tables[t], (deberta_isa)t, err);
            k->present[t] = status == DEBERTA_OK;
        }
    if (status == DEBERTA_OK) status = check_all(k, report, options->seed, err);
    for (int t = 0; t < TIERS; t++) verify_errors_free(&k->errors[t]);
    for (int m = 0; m < 3 + TIERS; m++) free(k->memory[m]);
    free(k->table);
    free(k);
    return status;
}
