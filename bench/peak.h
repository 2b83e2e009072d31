/* How fast multiply-adds can be on each tier: chains that stay in registers. SPDX-License-Identifier: MIT */
#ifndef BENCH_PEAK_H
#define BENCH_PEAK_H

#include <stddef.h>

typedef struct peak_kernel {
    float (*run)(size_t rounds); /* the result only keeps the compiler from leaving the work out */
    size_t flops_per_round;
} peak_kernel;

/* One object for each tier that is compiled in, with the flags of that tier. */
extern const peak_kernel peak_scalar; /* on x86 with hardware FMA, which the caller checks */
extern const peak_kernel peak_avx2;
extern const peak_kernel peak_avx512;
extern const peak_kernel peak_neon;

#endif
