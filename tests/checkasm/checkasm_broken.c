/* The test of the tests: kernels with one deliberate fault each. A check that lets one pass is worth nothing. Most call
 * the sound scalar kernel and then spoil what it did.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm_broken.h"

#include <math.h>
#include <string.h>

kernels sound;

/* ------------------------------------------------------------------------------------------------------------- gemm */

static float *c_at(const gemm_task *t, size_t i, size_t p) { return t->c + i * t->ldc + p * t->c_panel_stride; }

static bool is_empty(const gemm_task *t) { return t->rows == 0 || t->panels == 0; }

/* Reads without effect must not be optimised away. */
static void read_float(const float *x)
{
    const volatile float *place = x;
    (void)*place;
}

static void gemm_reads_behind_row(const gemm_task *t)
{
    sound.gemm_f32(t);
    if (!is_empty(t)) read_float(t->a + (t->rows - 1) * t->lda + t->depth);
}

static void gemm_reads_in_front(const gemm_task *t)
{
    sound.gemm_f32(t);
    if (!is_empty(t) && t->depth) read_float(t->b - 1);
}

static void gemm_writes_17th_lane(const gemm_task *t)
{
    sound.gemm_f32(t);
    if (!is_empty(t)) c_at(t, t->rows - 1, t->panels - 1)[PANEL] = 0.0f;
}

static void gemm_misses_last_lane(const gemm_task *t)
{
    float kept = 0;
    if (!is_empty(t)) memcpy(&kept, c_at(t, t->rows - 1, t->panels - 1) + PANEL - 1, sizeof kept);
    sound.gemm_f32(t);
    if (!is_empty(t)) memcpy(c_at(t, t->rows - 1, t->panels - 1) + PANEL - 1, &kept, sizeof kept);
}

/* The rounding of each product and sum by itself, and two chains in place of one: right but for the last bits. */
static void gemm_in_other_order(const gemm_task *t, bool fused, size_t chains)
{
    if (t->accumulate || t->bias || t->gelu || t->outer_column || t->residual || t->row_scale) {
        sound.gemm_f32(t);
        return;
    }
    for (size_t p = 0; p < t->panels; p++)
        for (size_t i = 0; i < t->rows; i++)
            for (size_t l = 0; l < PANEL; l++) {
                float x[2] = {0, 0};
                for (size_t k = 0; k < t->depth; k++) {
                    const float a = t->a[i * t->lda + k], b = t->b[p * t->b_panel_stride + k * PANEL + l];
                    x[k % chains] = fused ? fmaf(a, b, x[k % chains]) : a * b + x[k % chains];
                }
                c_at(t, i, p)[l] = x[0] + x[1];
            }
}
static void gemm_not_fused(const gemm_task *t) { gemm_in_other_order(t, false, 1); }
static void gemm_two_chains(const gemm_task *t) { gemm_in_other_order(t, true, 2); }

static void gemm_forgets(const gemm_task *t, gemm_task changed)
{
    (void)t;
    sound.gemm_f32(&changed);
}
static void gemm_forgets_outer(const gemm_task *t)
{
    gemm_task changed = *t;
    changed.outer_column = changed.outer_row = NULL;
    gemm_forgets(t, changed);
}
static void gemm_outer_ld_is_1(const gemm_task *t)
{
    gemm_task changed = *t;
    changed.outer_ld = 1;
    gemm_forgets(t, changed);
}
static void gemm_drops_last_depth(const gemm_task *t)
{
    gemm_task changed = *t;
    changed.depth -= changed.depth > 0;
    gemm_forgets(t, changed);
}

/* The bias last: commutes but for GELU, and else but for rounding. */
static void gemm_bias_last(const gemm_task *t)
{
    gemm_task changed = *t;
    changed.bias = NULL;
    sound.gemm_f32(&changed);
    for (size_t p = 0; t->bias && p < t->panels; p++)
        for (size_t i = 0; i < t->rows; i++)
            for (size_t l = 0; l < PANEL; l++) c_at(t, i, p)[l] += t->bias[p * PANEL + l];
}

static void gemm_flushes_subnormals(const gemm_task *t)
{
    sound.gemm_f32(t);
    for (size_t p = 0; p < t->panels; p++)
        for (size_t i = 0; i < t->rows; i++)
            for (size_t l = 0; l < PANEL; l++)
                if (fabsf(c_at(t, i, p)[l]) < 0x1p-126f) c_at(t, i, p)[l] = copysignf(0.0f, c_at(t, i, p)[l]);
}

static void gemm_changes_a(const gemm_task *t)
{
    sound.gemm_f32(t);
    if (!is_empty(t) && t->depth) *(float *)(uintptr_t)t->a = 1.0f;
}

static void gemm_faults(const gemm_task *t)
{
    (void)t;
    __builtin_trap();
}

/* ------------------------------------------------------------------------------------------------------------- pack */

static void pack_leaves_lanes(float *panels, size_t panel_stride, const float *x, size_t ldx, size_t rows, size_t depth)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t k = 0; k < depth; k++) panels[r / PANEL * panel_stride + k * PANEL + r % PANEL] = x[r * ldx + k];
}

static void pack_reads_next_row(float *panels, size_t panel_stride, const float *x, size_t ldx, size_t rows,
                                size_t depth)
{
    sound.pack_panels_f32(panels, panel_stride, x, ldx, rows, depth);
    if (rows && depth) read_float(x + rows * ldx + depth - 1);
}

/* ---------------------------------------------------------------------------------------------------- position bias */

static void bias_is_one_off(const position_bias_task *t)
{
    position_bias_task changed = *t;
    changed.row_of = t->rows ? t->row_of - (t->row_of[0] != t->row_of[-1]) : t->row_of;
    sound.position_bias_f32(&changed);
}

/* Takes the shortcut for maps in unit steps whether or not that was promised. */
static void bias_trusts_every_map(const position_bias_task *t)
{
    sound.position_bias_f32(t);
    if (!t->c2p || t->p2c || t->unit_steps) return;
    for (size_t i = 0; i < t->rows; i++)
        for (ptrdiff_t l = 0; l < PANEL; l++) {
            const size_t first = (size_t)(t->last_row - t->row_of[i]) - t->c2p_first;
            const ptrdiff_t steps = t->row_of[i] - t->row_of[(ptrdiff_t)i - l];
            const size_t step = (size_t)(steps < 0 ? 0 : steps > l ? l : steps);
            t->bias[i * PANEL + (size_t)l] = t->c2p[i * t->ld_c2p + first + step];
        }
}

static void bias_reads_16th_float(const position_bias_task *t)
{
    sound.position_bias_f32(t);
    if (!t->c2p || t->rows == 0) return;
    const size_t last = t->rows - 1;
    size_t reach = 0;
    for (size_t l = 0; l < PANEL; l++) {
        const size_t entry = (size_t)(t->last_row - t->row_of[(ptrdiff_t)last - (ptrdiff_t)l]) - t->c2p_first;
        if (entry > reach) reach = entry;
    }
    read_float(t->c2p + last * t->ld_c2p + reach + PANEL);
}

static void bias_forgets_p2c(const position_bias_task *t)
{
    position_bias_task changed = *t;
    if (changed.c2p) changed.p2c = NULL;
    sound.position_bias_f32(&changed);
}

/* ---------------------------------------------------------------------------------------------------------- softmax */

/* Sums from the first key to the last instead of in 16 partial sums. */
static void softmax_sums_in_a_row(const softmax_task *t)
{
    sound.softmax_f32(t);
    for (size_t i = 0; t->first && i < t->rows; i++) {
        float sum = 0;
        for (size_t j = 0; j < t->keys; j++) sum += t->s[i * t->lds + j];
        t->total[i] = sum;
    }
}

static void softmax_forgets_old_maximum(const softmax_task *t)
{
    for (size_t i = 0; !t->first && i < t->rows; i++) t->maximum[i] = -INFINITY;
    sound.softmax_f32(t);
}

static void softmax_spoils_masked_rows(const softmax_task *t)
{
    sound.softmax_f32(t);
    for (size_t i = 0; i < t->rows; i++)
        for (size_t j = 0; t->maximum[i] == -INFINITY && j < t->keys; j++) t->s[i * t->lds + j] = NAN;
}

static void softmax_writes_rescale(const softmax_task *t)
{
    sound.softmax_f32(t);
    if (t->first && t->rows) t->rescale[0] = 1.0f;
}

static void softmax_masks_with_a_number(const softmax_task *t)
{
    sound.softmax_f32(t);
    for (size_t i = 0; t->key_bias && i < t->rows; i++)
        for (size_t j = 0; j < t->keys; j++)
            if (t->s[i * t->lds + j] == 0.0f) t->s[i * t->lds + j] = 1e-37f;
}

/* -------------------------------------------------------------------------------------------------------- layernorm */

static void layernorm_one_pass(float *y, size_t ldy, const float *x, size_t ldx, const float *gamma, const float *beta,
                               size_t rows, size_t n, float eps)
{
    for (size_t i = 0; i < rows; i++) {
        float sum = 0, squares = 0;
        for (size_t e = 0; e < n; e++) {
            sum += x[i * ldx + e];
            squares += x[i * ldx + e] * x[i * ldx + e];
        }
        const float mean = sum / (float)n, variance = fmaxf(squares / (float)n - mean * mean, 0.0f);
        for (size_t e = 0; e < n; e++)
            y[i * ldy + e] = (x[i * ldx + e] - mean) / sqrtf(variance + eps) * gamma[e] + beta[e];
    }
}

static void layernorm_forgets_eps(float *y, size_t ldy, const float *x, size_t ldx, const float *gamma,
                                  const float *beta, size_t rows, size_t n, float eps)
{
    sound.layernorm_f32(y, ldy, x, ldx, gamma, beta, rows, n, 0.5f * eps);
}

/* Divides by the elements of whole vectors. */
static void layernorm_rounds_n_up(float *y, size_t ldy, const float *x, size_t ldx, const float *gamma,
                                  const float *beta, size_t rows, size_t n, float eps)
{
    if (n % PANEL == PANEL - 1 && n > PANEL) read_float(x + (rows ? (rows - 1) * ldx : 0) + n);
    sound.layernorm_f32(y, ldy, x, ldx, gamma, beta, rows, n, eps);
}

/* --------------------------------------------------------------------------------------------------------- activate */

static void activate_skips_tail(float *x, size_t n, kernel_activation function)
{
    sound.activate_f32(x, n / 8 * 8, function);
}

static void activate_gelu_by_tanh(float *x, size_t n, kernel_activation function)
{
    sound.activate_f32(x, n, function == KERNEL_GELU ? KERNEL_GELU_TANH : function);
}

static void activate_off_by_one_ulp(float *x, size_t n, kernel_activation function)
{
    sound.activate_f32(x, n, function);
    for (size_t e = 0; e < n; e++)
        if (function == KERNEL_TANH && isfinite(x[e]) && x[e] > 0.9f && x[e] < 1.0f)
            x[e] = float_from_bits(float_bits(x[e]) + 1);
}

static void activate_drops_nan(float *x, size_t n, kernel_activation function)
{
    for (size_t e = 0; e < n; e++)
        if (isnan(x[e])) x[e] = 0.0f;
    sound.activate_f32(x, n, function);
}

static void activate_nan_at_infinity(float *x, size_t n, kernel_activation function)
{
    for (size_t e = 0; e < n; e++)
        if (x[e] == -INFINITY) x[e] = NAN;
    sound.activate_f32(x, n, function);
}

/* --------------------------------------------------------------------------------------------------------- the list */

#define FAULTS(X)                                                                                                      \
    X(gemm_f32, GROSS, gemm_reads_behind_row)                                                                          \
    X(gemm_f32, GROSS, gemm_reads_in_front)                                                                            \
    X(gemm_f32, GROSS, gemm_writes_17th_lane)                                                                          \
    X(gemm_f32, GROSS, gemm_misses_last_lane)                                                                          \
    X(gemm_f32, BITS, gemm_not_fused)                                                                                  \
    X(gemm_f32, BITS, gemm_two_chains)                                                                                 \
    X(gemm_f32, GROSS, gemm_forgets_outer)                                                                             \
    X(gemm_f32, GROSS, gemm_outer_ld_is_1)                                                                             \
    X(gemm_f32, GROSS, gemm_drops_last_depth)                                                                          \
    X(gemm_f32, GROSS, gemm_bias_last)                                                                                 \
    X(gemm_f32, GROSS, gemm_flushes_subnormals)                                                                        \
    X(gemm_f32, GROSS, gemm_changes_a)                                                                                 \
    X(gemm_f32, GROSS, gemm_faults)                                                                                    \
    X(pack_panels_f32, GROSS, pack_leaves_lanes)                                                                       \
    X(pack_panels_f32, GROSS, pack_reads_next_row)                                                                     \
    X(position_bias_f32, GROSS, bias_is_one_off)                                                                       \
    X(position_bias_f32, GROSS, bias_trusts_every_map)                                                                 \
    X(position_bias_f32, GROSS, bias_reads_16th_float)                                                                 \
    X(position_bias_f32, GROSS, bias_forgets_p2c)                                                                      \
    X(softmax_f32, BITS, softmax_sums_in_a_row)                                                                        \
    X(softmax_f32, GROSS, softmax_forgets_old_maximum)                                                                 \
    X(softmax_f32, GROSS, softmax_spoils_masked_rows)                                                                  \
    X(softmax_f32, GROSS, softmax_writes_rescale)                                                                      \
    X(softmax_f32, GROSS, softmax_masks_with_a_number)                                                                 \
    X(layernorm_f32, GROSS, layernorm_one_pass)                                                                        \
    X(layernorm_f32, GROSS, layernorm_forgets_eps)                                                                     \
    X(layernorm_f32, GROSS, layernorm_rounds_n_up)                                                                     \
    X(activate_f32, GROSS, activate_skips_tail)                                                                        \
    X(activate_f32, GROSS, activate_gelu_by_tanh)                                                                      \
    X(activate_f32, BITS, activate_off_by_one_ulp)                                                                     \
    X(activate_f32, GROSS, activate_drops_nan)                                                                         \
    X(activate_f32, GROSS, activate_nan_at_infinity)

FAULTS(PLANT_FAULT)

static const broken_kernel faults[] = {FAULTS(FAULT_ENTRY)};

/* Name of the first check that fails, or NULL. */
static const char *caught_by(test_run *run, slot_id slot, const kernels *expected, const kernels *broken)
{
    run->expected = expected;
    run->tested = broken;
    for (size_t i = 0; i < check_count; i++) {
        if (checks[i].slot != slot) continue;
        run_check(run, &checks[i]);
        if (run->failures) return checks[i].name;
    }
    return NULL;
}

static bool try_fault(test_run *run, const broken_kernel *fault)
{
    kernels broken = sound;
    fault->plant(&broken);
    const char *check = caught_by(run, fault->slot, &sound, &broken);
    const char *alone = check;
    char message[sizeof run->first_failure];
    memcpy(message, run->first_failure, sizeof message);
    if (check && fault->size == FAULT_GROSS) alone = caught_by(run, fault->slot, &broken, &broken);
    if (check && alone)
        printf("caught %-28s by %s: %s\n", fault->name, check, message);
    else
        printf("MISSED %s%s\n", fault->name, check ? " by float64 alone" : "");
    return check && alone;
}

int self_test(const test_options *options)
{
    size_t caught = 0, missed = 0;
    test_run run;
    run_setup(&run, options);
    tier_init(scalar_tier(), &sound);
    run.isa = "broken";
    run.quiet = true;
    const struct {
        const broken_kernel *faults;
        size_t count;
    } parts[] = {{faults, sizeof faults / sizeof *faults},
                 {training_faults, training_fault_count},
                 {integer_faults, integer_fault_count}};
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++)
        for (size_t i = 0; i < parts[p].count; i++) try_fault(&run, &parts[p].faults[i]) ? caught++ : missed++;
    run_release(&run);
    printf("%zu passed, %zu failed, 0 skipped\n", caught, missed);
    return missed ? 1 : 0;
}
