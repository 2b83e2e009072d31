/* Position projections, computed ahead: PK = R W_k + b and PQ = R W_q + b depend on no input (SPEC 4.1).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/parallel.h"
#include "core/model/pack.h"

/* One layer's projections of the relative table. The softmax scale is already in W_q. */
typedef struct position_fold {
    const kernels *kernels;
    size_t heads, head_size, padded_head, rows; /* rows = 2K */
    const float *table, *reversed;              /* R in natural order, and last row first: [2K][ld] */
    size_t ld;
    packed_matrix key_matrix, query_matrix;
    size_t first_key_panel, first_query_panel;
    float *keys;      /* out: [A][ceil(2K / 16)][d][16], panels of reversed rows; NULL: no c2p */
    float *queries;   /* out: [A][2K][padded_head], natural rows; NULL: no p2c */
    float *workspace; /* [A][2K][padded_head], with c2p */
} position_fold;

void position_fold_run(const position_fold *fold, executor *by);
