/* Summarises attention matrices: entropy, distance, curves over the distance, rollout.
 *
 * Matrices are [tokens][tokens], query first. A mask ([tokens] or NULL: all kept) names with 0 the tokens that are
 * neither queries nor keys. Distances are r = i - j: positive for a key to the left of its query. positions ([tokens],
 * ascending, or NULL: 0, 1, 2 ...) are the values of i and j where a matrix is a part of a larger one.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/status.h"
#include "output/scope.h"

/* Means over the queries of a matrix of probabilities. p_ij is divided by the sum of its row over the kept keys, which
 * is not 1 where the matrix is a part of a larger one. */
typedef struct attention_summary {
    double entropy;  /* -sum_j p_ij log2 p_ij, bits: 0 for one key, log2(n) for all alike */
    double distance; /* sum_j p_ij |i - j|, tokens */
    double offset;   /* sum_j p_ij (i - j), tokens: positive to the left */
} attention_summary;

attention_summary attention_summarize(const float *probabilities, size_t tokens, const size_t *positions,
                                      const unsigned char *mask);

/* Computes out = values minus the mean of each row over the kept keys, on which alone a softmax depends. out may be
 * values. */
void attention_centre_rows(float *out, const float *values, size_t tokens, const unsigned char *mask);

/* Statistics of each diagonal of a matrix. Entry k is the distance k - reach, where reach is that of the last token
 * from the first: tokens - 1 without positions. 2 reach + 1 entries. */
typedef struct attention_by_distance {
    scope memory; /* memory of the arrays; to be freed */
    size_t entries;
    size_t *count;
    double *mean, *median, *low, *high; /* NaN where count is 0 */
} attention_by_distance;

/* Computes the statistics of each diagonal; low and high are the quantiles `part` and 1 - part. */
void attention_by_distance_measure(attention_by_distance *curve, const float *values, size_t tokens,
                                   const size_t *positions, const unsigned char *mask, double part);

/* Runs one step of attention rollout (Abnar & Zuidema 2020, "Quantifying attention flow in transformers"): rollout
 * becomes (0.5 A + 0.5 I) rollout, with A the mean of the heads' probabilities of the next layer, its rows
 * renormalised. Begin with attention_rollout_begin, then go through the layers from 0. Row i is the mixture of the
 * input's tokens in token i of the layer, if the model had only attention and residual connections. */
void attention_rollout_begin(double *rollout, size_t tokens); /* Sets rollout to the identity matrix. */
void attention_rollout_step(double *rollout, const float *const *heads, size_t head_count, size_t tokens,
                            const unsigned char *mask);
