/* Rounds of the kernels that only training calls. SPDX-License-Identifier: MIT */
#ifndef CHECK_VERIFY_TRAINING_H
#define CHECK_VERIFY_TRAINING_H

#include "check/verify_rounds.h"

void round_gemm_tn(verify_rounds *k);
void round_sum_rows(verify_rounds *k);
void round_dot_rows(verify_rounds *k);
void round_layernorm_backward(verify_rounds *k);
void round_activate_backward(verify_rounds *k);
void round_softmax_backward(verify_rounds *k);
void round_fold_runs(verify_rounds *k);
void round_adam(verify_rounds *k);
void round_dropout(verify_rounds *k);

#endif
