/* Computes integer products on AVX-512 with VNNI, by the loops of simd/tmpl/integer_dot_tmpl.h; the avx512 tier
 * provides all other kernels.
 *
 * One digit: 8 x 3 panels, 24 of 32 registers accumulate, 11 loads for 24 products. Two digits: 6 x 2 panels with two
 * sums, 16 loads for 36 products.
 *
 * SPDX-License-Identifier: MIT */
#include "core/kernels.h"
#include "simd/avx512/vec_avx512.h"

#undef VF_NAME
#undef VF_ISA
#define VF_NAME(name) name##_avx512vnni
#define VF_ISA        "avx512vnni"

#define INTEGER_MAX_ROWS             8
#define INTEGER_MAX_VECTORS          3
#define INTEGER_PANELS(digits)       ((digits) == 1 ? 3 : 2)
#define INTEGER_ROWS(digits, panels) ((digits) == 1 ? 8 : 6)
#define INTEGER_OPERAND              DIGITS_STORED

VF vi vi_load_bytes(const int8_t *p) { return _mm512_loadu_si512(p); }
VF vi vi_dot(vi sum, vi a, vi b) { return _mm512_dpbusd_epi32(sum, a, b); }

#include "simd/tmpl/unroll_tmpl.h"
#include "simd/tmpl/math_tmpl.h"
#include "simd/tmpl/integer_epilogue_tmpl.h"
#include "simd/tmpl/integer_dot_tmpl.h"
#include "simd/tmpl/integer_part_tmpl.h"
