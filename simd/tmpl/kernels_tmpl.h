/* Collects every kernel body. simd/<isa>/kernels_<isa>.c includes its vocabulary and its tile sizes first, and then
 * compiles the bodies for its instruction set.
 *
 *     row_tmpl.h              softmax, layer norm, activations
 *     gemm_tmpl.h             products, packed panels
 *     position_bias_tmpl.h    c2p and p2c at the distances of a tile
 *     math_formulas_tmpl.h    exp, gelu, tanh
 *     training_row_tmpl.h     backward of layer norm, activation, softmax; gradients by position; AdamW, XAdam
 *     gemm_tn_tmpl.h          gradients of weights
 *     sum_rows_tmpl.h         sums over rows, such as gradients of biases
 *     dropout_tmpl.h          dropout masks
 *     quantize_tmpl.h         integers of low precision; their products: integer_*.h
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "core/kernels.h"

#include "simd/tmpl/unroll_tmpl.h"
#include "simd/tmpl/math_tmpl.h"
#include "simd/tmpl/gemm_tmpl.h"
#include "simd/tmpl/position_bias_tmpl.h"
#include "simd/tmpl/row_tmpl.h"
#ifndef KERNELS_WITHOUT_TRAINING
#include "simd/tmpl/sum_rows_tmpl.h"
#include "simd/tmpl/gemm_tn_tmpl.h"
#include "simd/tmpl/training_row_tmpl.h"
#include "simd/tmpl/dropout_tmpl.h"
#endif
#include "simd/tmpl/quantize_tmpl.h"
#ifdef INTEGER_GEMM /* The tier's vocabulary names the file with products of integers; without one the tier below      \
                       provides them. */
#include "simd/tmpl/integer_epilogue_tmpl.h"
#include INTEGER_GEMM
#endif

/* Fills the table. It is the only symbol of the object. */
void VF_NAME(kernels_init)(kernels *table)
{
    table->tile_rows = TILE_ROWS(TILE_PANELS);
    table->tile_panels = TILE_PANELS;
#define X(name, parameters)                                                                                            \
    table->name = VF_NAME(name);                                                                                       \
    table->name##_isa = VF_ISA;
    INFERENCE_KERNEL_LIST(X)
    BUILT_TRAINING_KERNEL_LIST(X)
    QUANTIZE_KERNEL_LIST(X)
#ifdef INTEGER_GEMM
    INTEGER_GEMM_KERNEL_LIST(X)
#endif
#undef X
}
