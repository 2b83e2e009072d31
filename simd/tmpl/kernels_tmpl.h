/* Every kernel body, compiled once per instruction set by simd/<isa>/kernels_<isa>.c, which includes its vocabulary and its
 * tile sizes first. SPDX-License-Identifier: MIT */
#ifndef SIMD_TMPL_KERNELS_TMPL_H
#define SIMD_TMPL_KERNELS_TMPL_H

#include <stdbool.h>

#include "core/kernels.h"

/* Loops over the rows and vectors of a tile must vanish, or the accumulators live in memory and two thirds of the speed are
 * gone. Every compiler spells that differently. */
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#define UNROLL_DEPTH _Pragma("clang loop unroll_count(4)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#define UNROLL_DEPTH _Pragma("GCC unroll 4")
#endif

#include "simd/tmpl/math_tmpl.h"
#include "simd/tmpl/gemm_tmpl.h"
#include "simd/tmpl/position_bias_tmpl.h"
#include "simd/tmpl/row_tmpl.h"
#include "simd/tmpl/gemm_tn_tmpl.h"
#include "simd/tmpl/training_row_tmpl.h"
#include "simd/tmpl/dropout_tmpl.h"

/* The only symbol of the object. */
void VF_NAME(kernels_init)(kernels *table)
{
    table->tile_rows = TILE_ROWS(TILE_PANELS);
    table->tile_panels = TILE_PANELS;
#define X(name, parameters)                                                                                            \
    table->name = VF_NAME(name);                                                                                       \
    table->name##_isa = VF_ISA;
    KERNEL_LIST(X)
#undef X
}

#endif
