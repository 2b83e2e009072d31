/* Computes integer products on AVX2 with AVX-VNNI (the 256-bit, VEX-encoded vpdpbusd of processors that have no
 * AVX-512), by the loops of simd/tmpl/integer_dot_tmpl.h; the avx2 tier provides all other kernels.
 *
 * One digit: 6 rows x 1 panel of two vectors, 12 of 16 registers accumulate, 8 loads for 12 products. Two digits: 3
 * rows with two sums; the weights' low digits are multiplied from memory.
 *
 * SPDX-License-Identifier: MIT */
#include "core/kernels.h"
#include "simd/avx2/vec_avx2.h"

#undef VF_NAME
#undef VF_ISA
#define VF_NAME(name) name##_avxvnni
#define VF_ISA        "avxvnni"

#define INTEGER_MAX_ROWS             6
#define INTEGER_MAX_VECTORS          2
#define INTEGER_PANELS(digits)       1
#define INTEGER_ROWS(digits, panels) ((digits) == 1 ? 6 : 3)
#define INTEGER_OPERAND              DIGITS_STORED

VF vi vi_load_bytes(const int8_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
VF vi vi_dot(vi sum, vi a, vi b) { return _mm256_dpbusd_avx_epi32(sum, a, b); }

#include "simd/tmpl/unroll_tmpl.h"
#include "simd/tmpl/math_tmpl.h"
#include "simd/tmpl/integer_epilogue_tmpl.h"
#include "simd/tmpl/integer_dot_tmpl.h"
#include "simd/tmpl/integer_part_tmpl.h"
