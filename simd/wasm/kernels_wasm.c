/* Compiles the tier of WebAssembly twice, with relaxed_madd and without (vec_wasm.h). The bodies of its kernels are in
 * simd/tmpl (softmax: row_tmpl.h); kernels_tmpl.h says which file has what.
 *
 * SPDX-License-Identifier: MIT */
#include "simd/wasm/vec_wasm.h"
#include "simd/wasm/tune_wasm.h"
#define INTEGER_GEMM "simd/wasm/integer_wasm.h"
#if !WASM_RELAXED
#define kernels_init_wasm init_from_templates
#endif
#include "simd/tmpl/kernels_tmpl.h"
#if !WASM_RELAXED
#undef kernels_init_wasm
#include "simd/wasm/gemm_exact_wasm.h"

void kernels_init_wasm(kernels *table)
{
    init_from_templates(table);
    table->gemm_f32 = gemm_f32_exact;
}
#endif
