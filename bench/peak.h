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

/* The same of the products of bytes, as integer kernels of that name multiply: one object for each part that is
 * compiled in, but for AMX, whose tiles are configured first. */
extern const peak_kernel peak_u8_avx2; /* and of avx512 without VNNI */
extern const peak_kernel peak_u8_avxvnni;
extern const peak_kernel peak_u8_avx512vnni;
extern const peak_kernel peak_u8_neon;
extern const peak_kernel peak_u8_neondot;
extern const peak_kernel peak_u8_neoni8mm;

/* For the bodies: X of every chain. */
#define CHAINS_12(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define CHAINS_24(X) CHAINS_12(X) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23)

#endif
