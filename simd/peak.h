/* Measures the peak rate of multiply-adds on each tier: chains that stay in registers. SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

#include "core/base/tiers.h"

typedef struct peak_kernel {
    float (*run)(size_t rounds); /* the result only keeps the compiler from removing the work */
    size_t flops_per_round;
} peak_kernel;

/* Declares the peaks of every row of core/base/tiers.h that has one, in simd/<name>/peak_<name>.c, compiled with the
 * flags of that row: chains of float32 (on x86 the scalar one needs hardware FMA, which the caller checks), and
 * products of bytes, as in the integer kernels of that name. */
#define X(NAME, name, ...) extern const peak_kernel peak_##name, peak_bytes_##name;
TIER_LIST(X)
PART_LIST(X)
#undef X

/* For the kernel bodies: apply X to every chain. */
#define CHAINS_12(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define CHAINS_24(X) CHAINS_12(X) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23)
