/* Which tiers this processor and its operating system offer. SPDX-License-Identifier: MIT */
#ifndef CORE_BASE_CPU_H
#define CORE_BASE_CPU_H

#include "include/deberta.h"
#include <stdbool.h>

/* Features as a plain word so that tests can replace it. A tier's bit says that all its parts are there and that the
 * operating system saves their registers; the bits of single parts only serve to name what is missing. */
enum {
    CPU_FMA = 1,
    CPU_AVX2 = 2,   /* with FMA and F16C */
    CPU_AVX512 = 4, /* F, BW, DQ, VL */
    CPU_NEON = 8,
    CPU_SHA256 = 16,         /* no tier: instructions for SHA-256 */
    CPU_AVXVNNI = 32,        /* integer products: a part of the avx2 tier */
    CPU_AVX512VNNI = 64,     /* a part of the avx512 tier */
    CPU_AVX512AMX = 128,     /* another: AMX-INT8, where the operating system saves its tiles and is asked before */
    CPU_NEON_DOT = 1 << 17,  /* integer products: a part of the neon tier */
    CPU_NEON_I8MM = 1 << 18, /* another */
    CPU_WASM = 1 << 19,      /* WebAssembly with SIMD128 */

    CPU_HAS_AVX2 = 1 << 8,
    CPU_HAS_FMA = 1 << 9,
    CPU_HAS_F16C = 1 << 10,
    CPU_HAS_AVX512F = 1 << 11,
    CPU_HAS_AVX512BW = 1 << 12,
    CPU_HAS_AVX512DQ = 1 << 13,
    CPU_HAS_AVX512VL = 1 << 14,
    CPU_NO_AVX_STATE = 1 << 15,    /* the processor has AVX, but the operating system does not save its registers */
    CPU_NO_AVX512_STATE = 1 << 16, /* the same of AVX-512 */
};

/* CPUID and, through the compiler's run-time library, the register state that the operating system saves. */
unsigned cpu_features(void);
/* Asks the operating system to let this process use tiles (AMX), which only processes that ask may. False if it
 * refuses. Asking again is a system call without effect. From then on signal stacks must have room for 8 KiB more. */
bool cpu_allow_tiles(void);
/* NULL if a tier runs with these features and was compiled in, else why not: a static text. */
const char *cpu_missing(deberta_isa isa, unsigned features);
/* Model name of the processor, or "unknown". */
void cpu_name(char *name, size_t capacity_bytes);

#endif
