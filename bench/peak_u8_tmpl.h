/* The body of every peak_u8_<part>.c, which defines before:
 *
 *     PEAK_NAME      the object of peak.h
 *     PEAK_VECTOR    the type of a register
 *     PEAK_DOT       a function (sum, a, b): sum with products of a and b added
 *     PEAK_PRODUCTS  how many products that is
 *     PEAK_CHAINS    CHAINS_12 or CHAINS_24 independent chains
 *     PEAK_REGISTER  the letter of a vector register in inline assembly
 *
 * As far as the compiler knows, b and the sum change without an instruction after every step: it would else multiply
 * once, and leave sums in memory. Sums wrap around.
 *
 * SPDX-License-Identifier: MIT */
#include "bench/peak.h"

#include <stdint.h>
#include <string.h>

static PEAK_VECTOR filled(int value)
{
    PEAK_VECTOR vector;
    memset(&vector, value, sizeof vector);
    return vector;
}

static float run(size_t rounds)
{
    PEAK_VECTOR a = filled(3), b = filled(5);
#define START(i) PEAK_VECTOR chain##i = filled(i);
    PEAK_CHAINS(START)
    for (size_t round = 0; round < rounds; round++) {
#define STEP(i)                                                                                                        \
    chain##i = PEAK_DOT(chain##i, a, b);                                                                               \
    __asm__("" : "+" PEAK_REGISTER(b), "+" PEAK_REGISTER(chain##i));
        PEAK_CHAINS(STEP)
    }
    PEAK_VECTOR all = filled(0);
    int32_t lane;
#define JOIN(i) all ^= chain##i;
    PEAK_CHAINS(JOIN)
    memcpy(&lane, &all, sizeof lane);
    return (float)lane;
}

#define COUNT(i) +1
const peak_kernel PEAK_NAME = {.run = run, .flops_per_round = (size_t)(0 PEAK_CHAINS(COUNT)) * PEAK_PRODUCTS * 2};
