/* Computes entropy, distances, curves over the distance and rollout of attention matrices, each in one loop over
 * queries and keys; masked tokens are skipped.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/attention_statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/numbers.h"

static bool kept(const unsigned char *mask, size_t token) { return !mask || mask[token]; }

/* Returns a token's position, counted from that of the first token. */
static size_t position_of(const size_t *positions, size_t token)
{
    return positions ? positions[token] - *positions : token;
}

attention_summary attention_summarize(const float *probabilities, size_t tokens, const size_t *positions,
                                      const unsigned char *mask)
{
    attention_summary sum = {0};
    size_t queries = 0;
    for (size_t i = 0; i < tokens; i++) {
        if (!kept(mask, i)) continue;
        double whole = 0;
        queries++;
        for (size_t j = 0; j < tokens; j++) whole += kept(mask, j) ? (double)probabilities[i * tokens + j] : 0;
        for (size_t j = 0; j < tokens; j++) {
            /* Where a whole row is 0, p is NaN, and so are the means. */
            const double p = kept(mask, j) ? (double)probabilities[i * tokens + j] / whole : 0;
            const double r = (double)position_of(positions, i) - (double)position_of(positions, j);
            if (!(p <= 0)) sum.entropy -= p * log2(p);
            sum.distance += p * fabs(r);
            sum.offset += p * r;
        }
    }
    return (attention_summary){sum.entropy / (double)queries, sum.distance / (double)queries,
                               sum.offset / (double)queries};
}

void attention_centre_rows(float *out, const float *values, size_t tokens, const unsigned char *mask)
{
    for (size_t i = 0; i < tokens; i++) {
        double sum = 0;
        size_t keys = 0;
        for (size_t j = 0; j < tokens; j++) {
            if (!kept(mask, j)) continue;
            sum += (double)values[i * tokens + j];
            keys++;
        }
        for (size_t j = 0; j < tokens; j++)
            out[i * tokens + j] = (float)((double)values[i * tokens + j] - sum / (double)keys);
    }
}

void attention_by_distance_measure(attention_by_distance *curve, const float *values, size_t tokens,
                                   const size_t *positions, const unsigned char *mask, double part)
{
    const size_t reach = position_of(positions, tokens - 1), entries = 2 * reach + 1;
    *curve = (attention_by_distance){.entries = entries};
    double *diagonal = scope_take(&curve->memory, tokens, sizeof *diagonal);
    /* 1 + the token at a position; 0: none */
    size_t *token_at = scope_take(&curve->memory, reach + 1, sizeof *token_at);
    double **const columns[] = {&curve->mean, &curve->median, &curve->low, &curve->high};
    curve->count = scope_take(&curve->memory, entries, sizeof *curve->count);
    for (size_t k = 0; k < sizeof columns / sizeof *columns; k++)
        *columns[k] = scope_take(&curve->memory, entries, sizeof **columns[k]);
    for (size_t i = 0; i < tokens; i++) token_at[position_of(positions, i)] = i + 1;
    for (size_t k = 0; k < entries; k++) {
        double sum = 0;
        size_t count = 0;
        for (size_t i = 0; i < tokens; i++) {
            /* Below position 0 the index wraps to a huge value, so one test refuses both ends. */
            const size_t at = position_of(positions, i) + reach - k;
            if (at > reach || !token_at[at]) continue;
            const size_t j = token_at[at] - 1;
            if (!kept(mask, i) || !kept(mask, j)) continue;
            sum += diagonal[count++] = (double)values[i * tokens + j];
        }
        curve->count[k] = count;
        curve->mean[k] = count ? sum / (double)count : NAN;
        curve->median[k] = quantile(diagonal, count, 0.5);
        curve->low[k] = quantile(diagonal, count, part);
        curve->high[k] = quantile(diagonal, count, 1 - part);
    }
}

void attention_rollout_begin(double *rollout, size_t tokens)
{
    memset(rollout, 0, tokens * tokens * sizeof *rollout);
    for (size_t i = 0; i < tokens; i++) rollout[i * tokens + i] = 1;
}

void attention_rollout_step(double *rollout, const float *const *heads, size_t head_count, size_t tokens,
                            const unsigned char *mask)
{
    double *before = memory_take(tokens * tokens, sizeof *before), *mixing = memory_take(tokens, sizeof *mixing);
    memcpy(before, rollout, tokens * tokens * sizeof *before);
    memset(rollout, 0, tokens * tokens * sizeof *rollout);
    for (size_t i = 0; i < tokens; i++) {
        double sum = 0;
        for (size_t j = 0; j < tokens; j++) {
            mixing[j] = i == j ? 0.5 : 0;
            for (size_t a = 0; a < head_count && kept(mask, i) && kept(mask, j); a++)
                mixing[j] += 0.5 * (double)heads[a][i * tokens + j] / (double)head_count;
            sum += mixing[j];
        }
        for (size_t j = 0; j < tokens; j++)
            for (size_t k = 0; k < tokens; k++) rollout[i * tokens + k] += mixing[j] / sum * before[j * tokens + k];
    }
    free(before);
    free(mixing);
}
