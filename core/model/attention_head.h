/* What attention works on: one head of one sequence. attention.c makes and uses it, ablation.c changes it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CORE_MODEL_ATTENTION_HEAD_H
#define CORE_MODEL_ATTENTION_HEAD_H

#include <stddef.h>

/* One head of one sequence of the session's batch. */
typedef struct attention_head {
    size_t sequence, head, first_token, n;
    float *keys;         /* [ceil(n / 16)][d][16], packed */
    const float *values; /* row 0 of panel 0; rows are 16 apart */
    size_t value_panel_stride;
    const float *position_keys;    /* NULL: no c2p */
    const float *position_queries; /* NULL: no p2c */
    float *far_p2c;                /* [2][16 ceil(n / 16)]: left, right. NULL: no p2c */
    const float *key_bias;         /* NULL: no holes */
    const float *p2c_keys;         /* what p2c is made of: `keys`, unless ablated */
    size_t p2c_panel_stride;       /* 0 where one panel stands for all */
    /* Ablations (core/model/ablation.h); NULL: none. */
    const float *c2c_query, *c2p_query; /* in place of every query of that term */
    float *mean_key;                    /* [d][16]: where attention_pack_keys leaves the mean key */
    const float *row_bias;              /* [2K]: added to c2p by table row */
} attention_head;

#endif
