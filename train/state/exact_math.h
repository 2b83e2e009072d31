/* Computes exponentials and logarithms of single numbers with the same bits everywhere.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>
#include <string.h>

/* Computes the exponential in double by +, -, x and / alone: for |x| < 700, error below 2 ULP. */

static inline double exact_exp(double x)
{
    /* x = k ln 2 + r, |r| <= ln 2 / 2; exp r by its series. */
    static const double inverse = 0x1.71547652b82fep+0, high = 0x1.62e42fee00000p-1, low = 0x1.a39ef35793c76p-33;
    const double scaled = x * inverse;
    const int64_t k = (int64_t)(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
    const double r = x - (double)k * high - (double)k * low;
    double sum = 1;
    for (int n = 16; n >= 1; n--) sum = 1 + sum * r / n;
    const uint64_t bits = (uint64_t)(k + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return sum * power;
}

/* Computes the natural logarithm in double by +, -, x and / alone: the same bits everywhere, which a C library's log
 * does not guarantee. For finite x > 0; error below 2 ULP. */

static inline double exact_log(double x)
{
    /* x = m 2^e with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.1716. */
    static const double ln2_high = 0x1.62e42fee00000p-1, ln2_low = 0x1.a39ef35793c76p-33,
                        root_half = 0x1.6a09e667f3bcdp-1;
    int exponent = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        exponent -= 54;
    }
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    exponent += (int)(bits >> 52) - 1022;
    bits = (bits & 0x000fffffffffffffu) | 0x3fe0000000000000u;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m < root_half) {
        m *= 2;
        exponent--;
    }
    const double s = (m - 1) / (m + 1), z = s * s;
    double p = 1.0 / 25;
    for (int k = 23; k >= 3; k -= 2) p = p * z + 1.0 / k;
    return exponent * ln2_high + (2 * s + (2 * s * z * p + exponent * ln2_low));
}
