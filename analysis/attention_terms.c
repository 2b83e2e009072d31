/* Computes the worth of each term row by row, from softmaxes over sets of terms, in float64.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/attention_terms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "output/scope.h"

static bool kept(const logit_terms *terms, size_t token) { return !terms->mask || terms->mask[token]; }

static double term_at(const logit_terms *terms, size_t term, size_t query, size_t key)
{
    return terms->term[term] ? (double)terms->term[term][query * terms->tokens + key] : 0;
}

/* Computes the natural logarithm of the softmax of the sum of a set of terms, over the kept keys. */
static void log_softmax(const logit_terms *terms, unsigned set, size_t query, double *row)
{
    double largest = -INFINITY, sum = 0;
    for (size_t j = 0; j < terms->tokens; j++) {
        row[j] = 0;
        for (size_t t = 0; t < ATTENTION_TERMS; t++)
            if (set >> t & 1) row[j] += term_at(terms, t, query, j);
        if (kept(terms, j)) largest = fmax(largest, row[j]);
    }
    for (size_t j = 0; j < terms->tokens; j++)
        if (kept(terms, j)) sum += exp(row[j] - largest);
    for (size_t j = 0; j < terms->tokens; j++) row[j] -= largest + log(sum);
}

/* Returns KL(P || Q) in bits from two rows of logarithms; rounding must not make it negative. */
static double divergence(const logit_terms *terms, const double *log_p, const double *log_q)
{
    double sum = 0;
    for (size_t j = 0; j < terms->tokens; j++)
        if (kept(terms, j)) sum += exp(log_p[j]) * (log_p[j] - log_q[j]);
    return fmax(sum, 0) / log(2);
}

/* Adds row i's covariances with the sum; the last one is the variance of the sum. */
static void add_covariances(const logit_terms *terms, size_t query, double covariance[ATTENTION_TERMS + 1])
{
    double mean[ATTENTION_TERMS] = {0};
    size_t keys = 0;
    for (size_t j = 0; j < terms->tokens; j++) {
        if (!kept(terms, j)) continue;
        for (size_t t = 0; t < ATTENTION_TERMS; t++) mean[t] += term_at(terms, t, query, j);
        keys++;
    }
    for (size_t j = 0; j < terms->tokens; j++) {
        if (!kept(terms, j)) continue;
        double apart[ATTENTION_TERMS], sum = 0;
        for (size_t t = 0; t < ATTENTION_TERMS; t++)
            sum += apart[t] = term_at(terms, t, query, j) - mean[t] / (double)keys;
        for (size_t t = 0; t < ATTENTION_TERMS; t++) covariance[t] += apart[t] * sum / (double)keys;
        covariance[ATTENTION_TERMS] += sum * sum / (double)keys;
    }
}

/* Computes the Shapley value of every term from worth[T]. A term joins a set of s others with weight s! (2 - s)! / 3!.
 */
static void shapley(const double worth[ATTENTION_TERM_SETS], double value[ATTENTION_TERMS])
{
    static const double weight[ATTENTION_TERMS] = {2.0 / 6, 1.0 / 6, 2.0 / 6};
    for (size_t t = 0; t < ATTENTION_TERMS; t++) {
        value[t] = 0;
        for (unsigned set = 0; set < ATTENTION_TERM_SETS; set++)
            if (!(set >> t & 1)) value[t] += weight[__builtin_popcount(set)] * (worth[set | 1u << t] - worth[set]);
    }
}

void attention_term_effects_measure(attention_term_effects *effects, const logit_terms *terms)
{
    const size_t n = terms->tokens;
    const unsigned all = ATTENTION_TERM_SETS - 1;
    double covariance[ATTENTION_TERMS + 1] = {0}, lost[ATTENTION_TERM_SETS] = {0}, worth[ATTENTION_TERM_SETS];
    double *log_p = memory_take((2 * n + 1), sizeof *log_p), *log_q = log_p + n;
    size_t queries = 0;
    for (size_t i = 0; i < n; i++) {
        if (!kept(terms, i)) continue;
        queries++;
        add_covariances(terms, i, covariance);
        log_softmax(terms, all, i, log_p);
        for (unsigned set = 0; set < all; set++) {
            log_softmax(terms, set, i, log_q);
            lost[set] += divergence(terms, log_p, log_q);
        }
    }
    free(log_p);
    for (unsigned set = 0; set <= all; set++) worth[set] = (lost[0] - lost[set]) / (double)queries;
    shapley(worth, effects->shapley);
    effects->kl_uniform = worth[all];
    const double variance = covariance[ATTENTION_TERMS];
    for (size_t t = 0; t < ATTENTION_TERMS; t++) {
        effects->variance_share[t] = variance > 0 ? covariance[t] / variance : NAN;
        effects->kl_without[t] = lost[all & ~(1u << t)] / (double)queries;
    }
}

void attention_term_change(float *change, const logit_terms *terms, size_t term)
{
    const size_t n = terms->tokens;
    const unsigned all = ATTENTION_TERM_SETS - 1;
    double *with = memory_take((2 * n + 1), sizeof *with), *without = with + n;
    memset(change, 0, n * n * sizeof *change);
    for (size_t i = 0; i < n; i++) {
        if (!kept(terms, i)) continue;
        log_softmax(terms, all, i, with);
        log_softmax(terms, all & ~(1u << term), i, without);
        for (size_t j = 0; j < n; j++)
            if (kept(terms, j)) change[i * n + j] = (float)(exp(with[j]) - exp(without[j]));
    }
    free(with);
}
