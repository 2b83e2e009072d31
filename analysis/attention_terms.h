/* Measures the worth of each term of a logit to one head.
 *
 * A logit is a sum of up to three terms, S = c2c + c2p + p2c, and row i of the probabilities P is its softmax over the
 * keys. For a set T of terms let Q_T be the softmax of their sum alone; Q of no term is uniform, Q of all is P. A
 * constant added to a row changes no softmax, and none of the following:
 *
 *   variance share   sum_i Cov_j(term_ij, S_ij) / sum_i Var_j(S_ij). The shares sum to 1; one is negative where the
 *                    term mostly works against the sum. It looks at logits only.
 *   KL without       mean_i KL(P_i || softmax(S_i - term_i)), in bits: what is lost when this term alone is left out.
 *                    Terms that say the same cover for each other here.
 *   Shapley value    of the game w(T) = mean_i [KL(P_i || uniform) - KL(P_i || Q_T)]: the bits of P that a term
 *                    explains, averaged over all orders in which terms can be added (Shapley 1953). Exact: all 2^3
 *                    sets are evaluated. The values sum to mean_i KL(P_i || uniform); one is negative where the term
 *                    leads away from P.
 *
 * Means go over the queries that the mask keeps, sums over the keys that it keeps.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/status.h"

/* Terms: DEBERTA_C2C, DEBERTA_C2P, DEBERTA_P2C. */
enum { ATTENTION_TERMS = 3, ATTENTION_TERM_SETS = 1 << ATTENTION_TERMS };

/* The terms of one head and sequence. term[k] belongs to deberta_component k. */
typedef struct logit_terms {
    const float *term[ATTENTION_TERMS]; /* [tokens][tokens], query first; NULL where the model has no such term */
    size_t tokens;
    const unsigned char *mask; /* [tokens] or NULL: all kept; 0: neither a query nor a key */
} logit_terms;

/* Worth of the terms. A term that the model lacks has 0 everywhere. Shares are NaN where the logits do not vary at all.
 */
typedef struct attention_term_effects {
    double variance_share[ATTENTION_TERMS];
    double kl_without[ATTENTION_TERMS]; /* bits */
    double shapley[ATTENTION_TERMS];    /* bits */
    double kl_uniform;                  /* mean_i KL(P_i || uniform), bits: the sum of the Shapley values */
} attention_term_effects;

void attention_term_effects_measure(attention_term_effects *effects, const logit_terms *terms);

/* Computes change[i][j] = P_ij - softmax(S_i - term_i)_j, [tokens][tokens]: positive where the term draws attention to
 * a key. 0 in rows and columns that the mask leaves out. */
void attention_term_change(float *change, const logit_terms *terms, size_t term);
