/* Computes integer products on NEON with the mixed dot product of Armv8.6 (I8MM), by the loops of
 * simd/tmpl/integer_dot_tmpl.h; the neon tier provides all other kernels. Activations are used as stored.
 *
 * One digit: 6 rows x 1 panel of four vectors, 24 of 32 registers accumulate. Two digits: 2 rows with two sums.
 *
 * SPDX-License-Identifier: MIT */
#include "core/kernels.h"
#include "simd/neon/vec_neon.h"

#undef VF_NAME
#undef VF_ISA
#define VF_NAME(name) name##_neoni8mm
#define VF_ISA        "neoni8mm"

#define INTEGER_MAX_ROWS             6
#define INTEGER_MAX_VECTORS          4
#define INTEGER_PANELS(digits)       1
#define INTEGER_ROWS(digits, panels) ((digits) == 1 ? 6 : 2)
#define INTEGER_OPERAND              DIGITS_STORED

#include "simd/tmpl/unroll_tmpl.h"
#include "simd/tmpl/math_tmpl.h"
#include "simd/tmpl/integer_epilogue_tmpl.h"

VF vi vi_dot(vi sum, vi a, vi b) { return vusdotq_s32(sum, vreinterpretq_u8_s32(a), vreinterpretq_s8_s32(b)); }

#include "simd/tmpl/integer_dot_tmpl.h"
#include "simd/tmpl/integer_part_tmpl.h"
