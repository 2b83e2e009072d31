/* Every tier and every part of one, in one list. It generates the names, the required processor features, the order in
 * which kernels override each other, the prototypes, the peaks, the options, the columns of results, and the runs of
 * checkasm. How a tier is compiled, and which registers it may use, is in simd/meson.build.
 *
 * A tier is an instruction set that a user may ask for. A part is an extension that only some processors of a tier
 * have: where present, it overrides the kernels that it implements.
 *
 * A row: NAME (as in DEBERTA_ISA_NAME and HAVE_NAME), name, the row BELOW whose kernels it overrides, the architecture,
 * the features that it needs, the features that a refusal names when they are missing (in the order of
 * core/base/cpu.c), the features that show that the operating system does not save its registers, the word that
 * checkasm prints where a part is lacking, and whether a peak of float32 and one of bytes is measured (1 or 0:
 * simd/peak.h).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

/* WebAssembly, whose modules wasm/configure.py builds, is a row in those builds and in no others. */
#ifdef __wasm__
#define WASM_TIERS(X) X(WASM, wasm, SCALAR, WASM, CPU_WASM, CPU_WASM, 0, "", 0, 0)
#else
#define WASM_TIERS(X)
#endif

/* Rows are in the order of listing, slowest first of every architecture. */
#define TIER_LIST(X)                                                                                                   \
    X(SCALAR, scalar, SCALAR, ANY, 0, 0, 0, "", 1, 0)                                                                  \
    X(AVX2, avx2, SCALAR, X86, CPU_AVX2, CPU_AVX2_PARTS, CPU_NO_AVX_STATE, "avx2", 1, 1)                               \
    X(AVX512, avx512, AVX2, X86, CPU_AVX512, CPU_AVX512_PARTS, CPU_NO_AVX_STATE | CPU_NO_AVX512_STATE, "avx512", 1, 0) \
    X(NEON, neon, SCALAR, AARCH64, CPU_NEON, CPU_NEON, 0, "asimd", 1, 1)                                               \
    WASM_TIERS(X)

/* BELOW is the tier to which the part belongs. Later parts override earlier ones. */
#define PART_LIST(X)                                                                                                   \
    X(SCALAR_FMA, scalar_fma, SCALAR, ANY, CPU_FMA, 0, 0, "fma", 0, 0)                                                 \
    X(AVXVNNI, avxvnni, AVX2, X86, CPU_AVXVNNI, 0, 0, "avx_vnni", 0, 1)                                                \
    X(AVX512VNNI, avx512vnni, AVX512, X86, CPU_AVX512VNNI, 0, 0, "avx512_vnni", 0, 1)                                  \
    X(AVX512AMX, avx512amx, AVX512, X86, CPU_AVX512AMX, 0, 0, "amx_int8", 0, 1)                                        \
    X(NEONDOT, neondot, NEON, AARCH64, CPU_NEON_DOT, 0, 0, "asimddp", 0, 1)                                            \
    X(NEONI8MM, neoni8mm, NEON, AARCH64, CPU_NEON_I8MM, 0, 0, "i8mm", 0, 1)

/* Features are a plain word so that tests can replace it. A tier's bit means that all its parts are present and that
 * the operating system saves their registers; the bits of single parts serve only to name a missing one. */
enum {
    CPU_FMA = 1,
    CPU_AVX2 = 2,   /* with FMA and F16C */
    CPU_AVX512 = 4, /* F, BW, DQ, VL */
    CPU_NEON = 8,
    CPU_SHA256 = 1 << 4, /* not a tier: instructions for SHA-256 */
    CPU_AVXVNNI = 1 << 5,
    CPU_AVX512VNNI = 1 << 6,
    CPU_AVX512AMX = 1 << 7, /* AMX-INT8, where the operating system saves the tiles */
    CPU_NEON_DOT = 1 << 17,
    CPU_NEON_I8MM = 1 << 18,
    CPU_WASM = 1 << 19, /* SIMD128 */

    CPU_HAS_AVX2 = 1 << 8,
    CPU_HAS_FMA = 1 << 9,
    CPU_HAS_F16C = 1 << 10,
    CPU_HAS_AVX512F = 1 << 11,
    CPU_HAS_AVX512BW = 1 << 12,
    CPU_HAS_AVX512DQ = 1 << 13,
    CPU_HAS_AVX512VL = 1 << 14,
    CPU_NO_AVX_STATE = 1 << 15,    /* the processor has AVX, but the operating system does not save its registers */
    CPU_NO_AVX512_STATE = 1 << 16, /* the processor has AVX-512, but the operating system does not save its registers */

    CPU_AVX2_PARTS = CPU_HAS_AVX2 | CPU_HAS_FMA | CPU_HAS_F16C,
    CPU_AVX512_PARTS = CPU_AVX2_PARTS | CPU_HAS_AVX512F | CPU_HAS_AVX512BW | CPU_HAS_AVX512DQ | CPU_HAS_AVX512VL,
    /* A process must request them from the operating system (cpu_allow_tiles). */
    CPU_ASKED_FOR = CPU_AVX512AMX
};

/* HAVE_AVX2 and the like, 0 or 1, say whether a tier was compiled in: simd/meson.build defines them globally. The
 * scalar kernels always are. */
#define HAVE_SCALAR 1
#ifdef __wasm__ /* architectures whose scalar instructions have no fused multiply-add */
#define HAVE_SCALAR_FMA 0
#else
#define HAVE_SCALAR_FMA 1
#endif

/* Expands to x if HAVE_NAME, else NULL. */
#define IF_BUILT(have, x)  IF_BUILT_(have, x)
#define IF_BUILT_(have, x) IF_BUILT_##have(x)
#define IF_BUILT_0(x)      NULL
#define IF_BUILT_1(x)      (x)
