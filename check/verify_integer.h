/* Rounds of the kernels of low precision. SPDX-License-Identifier: MIT */
#ifndef CHECK_VERIFY_INTEGER_H
#define CHECK_VERIFY_INTEGER_H

#include "check/verify_rounds.h"

/* Errors in half steps of the digits. */
void round_quantize_u8(verify_rounds *k);
void round_quantize_u8x2(verify_rounds *k);
void round_quantize_u15(verify_rounds *k);
void round_quantize_panels_s8(verify_rounds *k);
/* Sums of integers are exact: errors are those of the few roundings behind them. */
void round_gemm_u8(verify_rounds *k);
void round_gemm_u8x2(verify_rounds *k);
void round_gemm_u15(verify_rounds *k);

#endif
