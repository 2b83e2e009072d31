/* Describes the input of attention: one head of one sequence, with the session's interventions applied.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/encode/session.h"
#include "core/model/attention_operands.h"

/* One head of one sequence of the session's batch. */
typedef struct attention_head {
    size_t sequence, head, first_token, n;
    panel_operand keys;           /* [ceil(n / 16)] panels, packed */
    panel_operand values;         /* values of the first chunk of keys; attention_head_values returns the others */
    panel_operand position_keys;  /* PK in reversed rows; used with c2p */
    row_operand position_queries; /* PQ; used with p2c */
    float *far_p2c;               /* [2][16 ceil(n / 16)]: p2c of keys far left, far right; NULL: no p2c */
    const float *key_bias;        /* [n]: 0, or -inf for holes; NULL: no holes */
    const float *key_present;     /* [n]: 1, or 0 for holes; NULL: no holes */
    panel_operand p2c_keys;       /* keys of p2c: `keys`, unless ablated; one panel may serve for all */
    /* Members for ablations (core/encode/session.h); NULL: none. */
    const float *c2c_query, *c2p_query; /* vectors that replace every query of that term */
    float *mean_key;                    /* [d][16]: the mean key, which attention_head_pack computes */
    const float *row_bias;              /* [2K]: bias added to c2p by table row */
    /* Members for patches: the sequence that gives each term (this one if it is not patched) and, set by
     * attention_head_patch, how many rows after the head's queries those of c2c and c2p begin. */
    bool patched;
    size_t donor[ABLATION_TERMS];
    ptrdiff_t rows_behind[ABLATION_TERMS];
} attention_head;

/* Locates a head; its sequence's group has begun (encoder_parts.h). */
attention_head attention_head_of(const deberta_session *session, size_t layer, size_t sequence, size_t head);
/* Packs the head's keys, and its values if they are integers. */
void attention_head_pack(deberta_session *session, const attention_head *head, const worker_scratch *scratch);
/* Gives a patched head the operands of the sequences that it takes terms from, packed into the scratch of this thread,
 * where they stay until it patches another head. positions: tokens of the queries' rows, ascending; NULL: row i is
 * token i. */
void attention_head_patch(deberta_session *session, size_t layer, attention_head *head, const size_t *positions,
                          size_t count, const worker_scratch *scratch);
/* Returns the head's values of the chunk of keys that begins at `key`. */
panel_operand attention_head_values(const deberta_session *session, const attention_head *head, size_t key);
