/* Draws the random numbers of dropout masks from counters (Philox), 16 at a time, and applies the masks. A number of 32 bits sits in an even lane, and nothing reads the
 * odd lane beside it except vi_odd after a product.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

enum { COUNTERS = 16, COUNTER_VECTORS = COUNTERS / (VF_LANES / 2), COLUMNS = 4 * COUNTERS };

/* Computes the words of 16 consecutive counters, in the order of the columns. */
VF void random_words(uint32_t words[COLUMNS], const dropout_task *task, const dropout_row *of, uint32_t first)
{
    uint32_t key = task->seed, other_key = task->step, numbers[2 * COUNTERS] = {0};
    vi a[COUNTER_VECTORS], b[COUNTER_VECTORS], c[COUNTER_VECTORS], d[COUNTER_VECTORS];
    for (uint32_t l = 0; l < COUNTERS; l++) numbers[2 * l] = first + l;
    UNROLL
    for (size_t v = 0; v < COUNTER_VECTORS; v++) {
        a[v] = vi_load((const int32_t *)numbers + v * VF_LANES);
        b[v] = vi_set1((int32_t)of->place);
        c[v] = vi_set1((int32_t)of->sequence);
        d[v] = vi_set1((int32_t)of->site);
    }
    const vi even_factor = vi_set1((int32_t)0xD2511F53u), odd_factor = vi_set1((int32_t)0xCD9E8D57u);
    for (int round = 0; round < 10; round++) {
        const vi k = vi_set1((int32_t)key), other = vi_set1((int32_t)other_key);
        UNROLL
        for (size_t v = 0; v < COUNTER_VECTORS; v++) {
            const vi even = vi_multiply_even(even_factor, a[v]), odd = vi_multiply_even(odd_factor, c[v]);
            a[v] = vi_xor(vi_xor(vi_odd(odd), b[v]), k);
            b[v] = odd;
            c[v] = vi_xor(vi_xor(vi_odd(even), d[v]), other);
            d[v] = even;
        }
        key += 0x9E3779B9u;
        other_key += 0xBB67AE85u;
    }
    uint32_t parts[4][2 * COUNTERS];
    UNROLL
    for (size_t v = 0; v < COUNTER_VECTORS; v++) {
        vi_store(parts[0] + v * VF_LANES, a[v]);
        vi_store(parts[1] + v * VF_LANES, b[v]);
        vi_store(parts[2] + v * VF_LANES, c[v]);
        vi_store(parts[3] + v * VF_LANES, d[v]);
    }
    for (size_t l = 0; l < COUNTERS; l++)
        for (size_t w = 0; w < 4; w++) words[4 * l + w] = parts[w][2 * l];
}

static void VF_NAME(dropout_f32)(const dropout_task *task)
{
    const uint32_t threshold = task->threshold;
    const float scale = task->scale;
    for (size_t i = 0; i < task->rows; i++) {
        for (size_t column = 0; column < task->n; column += COLUMNS) {
            const size_t here = task->n - column < COLUMNS ? task->n - column : COLUMNS;
            float *x = task->x + i * task->ldx + column;
            uint32_t words[COLUMNS];
            random_words(words, task, &task->of[i], task->first + (uint32_t)(column / 4));
            for (size_t e = 0; e < here; e++) {
                const float kept = x[e] * scale;
                x[e] = words[e] < threshold ? 0 : kept;
            }
        }
    }
}
