/* Implements quantize_u8 and quantize_u8x2, which pass twice over the floats of each row: for the range, then for the
 * digits. Also implements quantize_u15, whose range is known, and quantize_panels_s8, one vector of columns at a time.
 *
 * SPDX-License-Identifier: MIT */
#ifndef SIMD_TMPL_QUANTIZE_TMPL_H
#define SIMD_TMPL_QUANTIZE_TMPL_H

/* Returns row values [e, e + VF_LANES), times the factors; 0 from the depth on. */
VF vf quantize_values(const bool factors, const quantize_task *task, const float *x, size_t e)
{
    const size_t here = lanes_left(task->depth, e);
    if (here == VF_LANES) return factors ? vf_mul(vf_load(x + e), vf_load(task->factor + e)) : vf_load(x + e);
    const vf v = vf_load_n(x + e, here, vf_zero());
    return factors ? vf_mul(v, vf_load_n(task->factor + e, here, vf_zero())) : v;
}

typedef struct quantize_range {
    float low, high, poison; /* poison: 0, or a NaN if a value is infinite or no number */
} quantize_range;

VF quantize_range quantize_range_of(const bool factors, const quantize_task *task, const float *x)
{
    enum { CHAINS = 2 };
    vf low[CHAINS], high[CHAINS], poison[CHAINS];
    UNROLL for (int c = 0; c < CHAINS; c++) low[c] = high[c] = poison[c] = vf_zero();
    for (size_t e = 0; e < task->depth; e += CHAINS * VF_LANES)
        UNROLL for (size_t c = 0; c < CHAINS; c++) {
            const vf v = quantize_values(factors, task, x, e + c * VF_LANES);
            low[c] = vf_min(v, low[c]);
            high[c] = vf_max(v, high[c]);
            poison[c] = vf_fma(v, vf_zero(), poison[c]);
        }
    return (quantize_range){
        .low = vf_min_lanes(vf_min(low[0], low[1])),
        .high = vf_max_lanes(vf_max(high[0], high[1])),
        .poison = vf_sum_lanes(vf_add(poison[0], poison[1])),
    };
}

/* Returns top / range where that is a usable number, else 0. */
VF float quantize_inverse(float top, float range)
{
    return range >= 0x1p-100f && range < __builtin_inff() ? top / range : 0.0f;
}

VF void quantize_row(const int digits, const bool factors, const quantize_task *task, size_t row, size_t depth)
{
    const float *x = task->x + row * task->ldx;
    const quantize_range of = quantize_range_of(factors, task, x);
    const float range = digits == 1 ? of.high - of.low : of.high < -of.low ? -of.low : of.high;
    const float inverse = quantize_inverse(digits == 1 ? 255.0f : 16256.0f, range);
    task->scale[row] = (inverse > 0 ? range / (digits == 1 ? 255.0f : 127.0f) : 0.0f) + of.poison;
    const int32_t zero = digits == 1 && inverse > 0 ? (int32_t)__builtin_rintf(-of.low * inverse) : 0;
    if (digits == 1) task->zero[row] = zero;
    uint8_t *to = task->digits + digit_at(depth, row, 0);
    for (size_t tile = 0; tile < depth; tile += DIGIT_TILE_INPUTS, to += DIGIT_TILE_INPUTS * DIGIT_TILE_ROWS)
        for (size_t k = 0; k < DIGIT_TILE_INPUTS; k += VF_LANES) {
            const vi q = vf_round(vf_mul(quantize_values(factors, task, x, tile + k), vf_set1(inverse)));
            if (digits == 1) {
                vi_store_u8(to + k, vi_add(q, vi_set1(zero)));
            } else {
                const vi high = vi_shift_right7(vi_add(q, vi_set1(64))), low = vi_sub(q, vi_shift_left7(high));
                vi_store_u8(to + k, vi_add(high, vi_set1(DIGIT_OFFSET)));
                vi_store_u8(to + task->plane_bytes + k, vi_add(low, vi_set1(DIGIT_OFFSET)));
            }
        }
}

VF void quantize_rows(const int digits, const quantize_task *task)
{
    const size_t depth = (task->depth + DIGIT_TILE_INPUTS - 1) / DIGIT_TILE_INPUTS * DIGIT_TILE_INPUTS;
    if (task->factor)
        for (size_t row = 0; row < task->rows; row++) quantize_row(digits, true, task, row, depth);
    else
        for (size_t row = 0; row < task->rows; row++) quantize_row(digits, false, task, row, depth);
}

static void VF_NAME(quantize_u8)(const quantize_task *task) { quantize_rows(1, task); }
static void VF_NAME(quantize_u8x2)(const quantize_task *task) { quantize_rows(2, task); }

static void VF_NAME(quantize_u15)(const quantize_task *task)
{
    const size_t depth = (task->depth + DIGIT_TILE_INPUTS - 1) / DIGIT_TILE_INPUTS * DIGIT_TILE_INPUTS;
    for (size_t row = 0; row < task->rows; row++) {
        const float *x = task->x + row * task->ldx;
        uint8_t *to = task->digits + digit_at(depth, row, 0);
        task->scale[row] = 1.0f / U15_TOP;
        for (size_t tile = 0; tile < depth; tile += DIGIT_TILE_INPUTS, to += DIGIT_TILE_INPUTS * DIGIT_TILE_ROWS)
            UNROLL for (size_t k = 0; k < DIGIT_TILE_INPUTS; k += VF_LANES) {
                const vi q = vf_round(vf_mul(quantize_values(false, task, x, tile + k), vf_set1(U15_TOP)));
                const vi high = vi_shift_right7(q);
                vi_store_u8(to + k, high);
                vi_store_u8(to + task->plane_bytes + k, vi_sub(q, vi_shift_left7(high)));
            }
    }
}

/* Returns the values of one vector of columns, whose inputs are PANEL floats apart. */
VF vf column_values(const bool factors, const quantize_panels_task *task, const float *x, size_t k)
{
    const vf v = vf_load(x + k * PANEL);
    return factors ? vf_mul(v, vf_broadcast(task->factor + k)) : v;
}

VF void quantize_columns(const bool factors, const quantize_panels_task *task, size_t depth, const float *x, int8_t *to,
                         float *scale, int32_t *sum)
{
    vf largest = vf_zero(), poison = vf_zero();
    for (size_t k = 0; k < task->depth; k++) {
        const vf v = column_values(factors, task, x, k);
        largest = vf_max(vf_abs(v), largest);
        poison = vf_fma(v, vf_zero(), poison);
    }
    const vf least = vf_set1(0x1p-100f), top = vf_set1(127.0f);
    const vf inverse = vf_select_less(largest, least, vf_zero(), vf_div(top, largest)); /* 0 of an infinity */
    vf_store(scale, vf_add(vf_select_less(largest, least, vf_zero(), vf_div(largest, top)), poison));
    vi total = vi_set1(0);
    for (size_t k = 0; k < depth; k += 4, to += 4 * PANEL) {
        vi quad = vi_set1(0);
        UNROLL for (size_t e = 4; e-- > 0;) {
            vi q = vi_set1(0);
            if (k + e < task->depth) q = vf_round(vf_mul(column_values(factors, task, x, k + e), inverse));
            total = vi_add(total, q);
            quad = vi_add(vi_shift_left8(quad), vi_add(q, vi_set1(DIGIT_OFFSET))); /* unsigned, so nothing is borrowed */
        }
        vi_store(to, vi_xor(quad, vi_set1((int32_t)0x80808080u)));
    }
    vi_store(sum, total);
}

VF void quantize_panels(const bool factors, const quantize_panels_task *task)
{
    const size_t depth = (task->depth + DIGIT_TILE_INPUTS - 1) / DIGIT_TILE_INPUTS * DIGIT_TILE_INPUTS;
    for (size_t p = 0; p < task->panels; p++)
        for (size_t lane = 0; lane < PANEL; lane += VF_LANES)
            quantize_columns(factors, task, depth, task->x + p * task->x_panel_stride + lane,
                             task->digits + p * depth * PANEL + lane * 4, task->scale + p * PANEL + lane,
                             task->sum + p * PANEL + lane);
}

static void VF_NAME(quantize_panels_s8)(const quantize_panels_task *task)
{
    if (task->factor)
        quantize_panels(true, task);
    else
        quantize_panels(false, task);
}

#endif
