/* Computes plain habits of a head from its attention probabilities: the share of neighbours, of the query itself, of
 * the first and the last key.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/attention_habits.h"

#include <math.h>
#include <stdbool.h>

/* Returns the largest probability of an ordinary key other than the query, or -1 if there is none. */
static double strongest_ordinary(const float *row, size_t query, size_t tokens, const unsigned char *special)
{
    double most = -1;
    for (size_t j = 0; j < tokens; j++)
        if (j != query && !(special && special[j])) most = fmax(most, (double)row[j]);
    return most;
}

/* Returns the mean over `count` queries; 0 / 0 is NaN. */
static double mean(double sum, size_t count) { return sum / (double)count; }

attention_habits attention_habits_measure(const float *probabilities, size_t tokens, const unsigned char *special)
{
    attention_habits sum = {0};
    size_t words = 0;
    for (size_t i = 0; i < tokens; i++) {
        const float *row = probabilities + i * tokens;
        if (i > 0) sum.left += (double)row[i - 1];
        if (i + 1 < tokens) sum.right += (double)row[i + 1];
        sum.itself += (double)row[i];
        sum.first += (double)row[0];
        sum.last += (double)row[tokens - 1];
        const double strongest = strongest_ordinary(row, i, tokens, special);
        const bool counts = strongest >= 0 && !(special && special[i]);
        if (counts) sum.word += strongest;
        words += counts;
    }
    const size_t neighbours = tokens > 0 ? tokens - 1 : 0;
    return (attention_habits){mean(sum.left, neighbours), mean(sum.right, neighbours), mean(sum.itself, tokens),
                              mean(sum.first, tokens),    mean(sum.last, tokens),      mean(sum.word, words)};
}
