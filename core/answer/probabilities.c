/* Converts the logits of a head to probabilities by softmax, and ranks values. The softmax of attention is in
 * simd/tmpl/row_tmpl.h.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "include/deberta_unstable.h"

void deberta_softmax(double *probabilities, const float *logits, size_t count)
{
    double largest = -INFINITY, sum = 0;
    for (size_t k = 0; k < count; k++) largest = fmax(largest, logits[k]);
    for (size_t k = 0; k < count; k++) sum += probabilities[k] = exp(logits[k] - largest);
    for (size_t k = 0; k < count; k++) probabilities[k] /= sum;
}

double deberta_sigmoid(double logit) { return 1 / (1 + exp(-logit)); }

/* Keeps a sorted list of the best values so far; nearly every value of a large vocabulary is below its last one. */
size_t deberta_rank(size_t *ranked, size_t top, const double *values, size_t count)
{
    size_t held = 0;
    for (size_t k = 0; k < count; k++) {
        if (held == top && (top == 0 || !(values[k] > values[ranked[held - 1]]))) continue;
        size_t place = held < top ? held++ : held - 1;
        for (; place > 0 && values[k] > values[ranked[place - 1]]; place--) ranked[place] = ranked[place - 1];
        ranked[place] = k;
    }
    return held;
}
