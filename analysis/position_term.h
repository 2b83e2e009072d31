/* The position-to-position term that the models leave out, made from what they have: p2p(r) = PQ[row(r)] . PK[row(r)],
 * divided by the common scale like the other terms, or with the paper's index for the queries, PQ[row(-r)]. It depends
 * on the distance alone.
 *
 * SPDX-License-Identifier: MIT */
#ifndef ANALYSIS_POSITION_TERM_H
#define ANALYSIS_POSITION_TERM_H

#include "core/base/status.h"

typedef enum position_term_index {
    POSITION_TERM_CODE, /* row(r) on both sides, as the published code reads its tables for p2c */
    POSITION_TERM_PAPER /* row(r) and row(-r): P_{i|j} against P_{j|i} */
} position_term_index;

typedef struct position_term {
    size_t heads, rows, reach;
    float *by_row;      /* [L][A][rows]: a row_bias for a session (session_internal_options) */
    float *by_distance; /* [L][A][2 reach + 1] */
} position_term;

/* For texts of up to `tokens` tokens. DEBERTA_E_UNSUPPORTED unless the model has c2p and p2c. With the paper's index a
 * row stands for many distances -r only at the ends of the table, where row(-r) is that of the nearest one. */
deberta_status position_term_make(position_term *term, const deberta_model *model, position_term_index index,
                                  size_t tokens, deberta_error *err);
void position_term_free(position_term *term);

/* Points at distance 0: [-reach ... reach]. */
static inline const float *position_term_by_distance(const position_term *term, size_t layer, size_t head)
{
    return term->by_distance + (layer * term->heads + head) * (2 * term->reach + 1) + term->reach;
}

#endif
