/* A row of logits tells its largest, and the logarithm of the sum of its exponentials. SPDX-License-Identifier: MIT */
#include "analysis/logits.h"

#include <math.h>

size_t logits_largest(const float *logits, size_t width)
{
    size_t largest = 0;
    for (size_t v = 1; v < width; v++)
        if (logits[v] > logits[largest]) largest = v;
    return largest;
}

double logits_log_sum(const float *logits, size_t width)
{
    double largest = -INFINITY, sum = 0;
    for (size_t v = 0; v < width; v++) largest = fmax(largest, (double)logits[v]);
    for (size_t v = 0; v < width; v++) sum += exp((double)logits[v] - largest);
    return largest + log(sum);
}
