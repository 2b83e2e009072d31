/* Computes fmaf with one rounding. wasi-libc's fmaf changes the rounding mode, which WebAssembly lacks, so it is
 * wrong near the middle between two floats and for subnormal results. Here the product is exact in double, and the
 * sum is rounded to odd, so that only the final rounding to float has an effect.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdint.h>
#include <string.h>

float fmaf(float a, float b, float c)
{
    const double product = (double)a * (double)b, added = (double)c;
    double sum = product + added;
    const double part = sum - product, error = (product - (sum - part)) + (added - part);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (error == error && error != 0 && !(bits & 1)) {
        bits += (error > 0) == (sum > 0) ? 1 : UINT64_MAX;
        memcpy(&sum, &bits, sizeof sum);
    }
    return (float)sum;
}
