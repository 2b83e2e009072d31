/* A row of logits tells its largest, and the logarithm of the sum of its exponentials. SPDX-License-Identifier: MIT */
#include "analysis/logits.h"

size_t logits_largest(const float *logits, size_t width)
{
    size_t largest = 0;
    for (size_t v = 1; v < width; v++)
        if (logits[v] > logits[largest]) largest = v;
    return largest;
}
