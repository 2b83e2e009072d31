/* What checkasm --bench measures. SPDX-License-Identifier: MIT */
#ifndef TESTS_CHECKASM_CHECKASM_BENCH_H
#define TESTS_CHECKASM_CHECKASM_BENCH_H

#include "tests/checkasm/checkasm.h"

enum { ROWS = 96, DEPTH = 768, PANELS = 12, KEYS = 512, TABLE_ROWS = 512, VALUES = 3072, OUTPUTS = 384 };

/* Everything that the kernels work on; large, so that it lives outside the stack. */
typedef struct bench_arrays {
    float a[ROWS * DEPTH], b[DEPTH * PANELS * PANEL], c[ROWS * DEPTH], bias[DEPTH], strips[ROWS * TABLE_ROWS];
    float normal[ROWS * KEYS];
    float state[3][ROWS], moments[2][VALUES];
    int32_t row_of[ROWS + PANEL], position_of[ROWS + PANEL], place_of[ROWS + KEYS];
    dropout_row rows[ROWS];
    float scales[2][DEPTH];
    int32_t zeros[ROWS], sums[2 * DEPTH];
    uint8_t digits[2 * ROWS * DEPTH];
    int8_t weights[2 * DEPTH * PANELS * PANEL];
    size_t variant; /* of the benchmark that runs */
} bench_arrays;

typedef struct bench_case {
    slot_id slot;
    const char *label;
    void (*restore)(bench_arrays *arrays);
    void (*call)(const kernels *table, bench_arrays *arrays);
    double work; /* of one call */
    const char *unit;
    double scale; /* work / seconds * scale, or seconds / work * scale if negative */
    size_t variant;
} bench_case;

extern const bench_case bench_cases[]; /* up to one without a call */

void bench_arrays_fill(bench_arrays *arrays, const test_options *options);

#endif
