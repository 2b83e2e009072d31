/* Has the common code of integer products: it converts sums to float32 before the scales, and prefetches the next
 * panels.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

/* The form in which A's digits entered a sum: as stored, less 128 so that signed bytes hold them, or less their zero
 * point, which for two digits is 128 as well. */
enum integer_operand { DIGITS_STORED, DIGITS_LESS_128, DIGITS_LESS_ZERO };

/* Converts sums of one row and vector of outputs to float, as core/integer_kernels.h defines. sums: the digit
 * products; for two digits high and mixed, for 15 bits all in one. a_zero: that of the row, for one digit; b_sum:
 * that of the vector. */
VF vf integer_value_of(const integer_format format, const enum integer_operand of, const int32_t *a_zero,
                       const int32_t *b_sum, const vi *sums)
{
    if (format == FIFTEEN_BITS) {
        if (of != DIGITS_LESS_128) return vf_from_int(sums[0]);
        return vf_from_int(vi_add(sums[0], vi_mul(vi_set1(DIGIT_OFFSET * 128 + DIGIT_OFFSET), vi_load(b_sum))));
    }
    if (format == ONE_DIGIT) {
        if (of == DIGITS_LESS_ZERO) return vf_from_int(sums[0]);
        const int32_t zero = *a_zero - (of == DIGITS_LESS_128 ? DIGIT_OFFSET : 0);
        return vf_from_int(vi_sub(sums[0], vi_mul(vi_set1(zero), vi_load(b_sum))));
    }
    const vi high = of != DIGITS_STORED ? sums[0] : vi_sub(sums[0], vi_shift_left7(vi_load(b_sum)));
    const vi mixed = of != DIGITS_STORED ? sums[1] : vi_sub(sums[1], vi_shift_left7(vi_load(b_sum + PANEL)));
    return vf_fma(vf_from_int(mixed), vf_set1(0x1p-7f), vf_from_int(high));
}

/* Plans the prefetch into L2 of the bytes after `panels` panels from `panel` on, while these are multiplied in
 * `steps` steps. */
typedef struct integer_fetch {
    const char *at;
    size_t requests, step; /* bytes from one step to the next */
} integer_fetch;

VF integer_fetch integer_fetch_of(const integer_format format, const integer_gemm_task *task, size_t panel, size_t panels, size_t steps)
{
    enum { LINE = 64 };
    const size_t panel_bytes = task->depth * PANEL * (size_t)FORMAT_DIGITS(format), behind = panel + panels;
    const char *next = behind < task->panels ? (const char *)task->b + behind * panel_bytes : task->next;
    if (!task->next || steps == 0) return (integer_fetch){0};
    const size_t bytes = panel_bytes * panels / steps, requests = (bytes + LINE - 1) / LINE;
    return (integer_fetch){next, requests, requests ? bytes / requests : 0};
}

VF void integer_fetch_step(integer_fetch *fetch)
{
    for (size_t r = 0; r < fetch->requests; r++, fetch->at += fetch->step) vf_prefetch_l2(fetch->at);
}
