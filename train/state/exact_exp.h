/* The exponential in double by +, -, x and / alone, as exact_log.h: for |x| < 700, error below 2 ULP.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>
#include <string.h>

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
