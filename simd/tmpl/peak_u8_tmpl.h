/* Implements the products of bytes of a peak_<isa>.c, which defines before:
 *
 *     PEAK_BYTES_NAME      the object of peak.h
 *     PEAK_BYTES_VECTOR    the type of a register
 *     PEAK_DOT       a function (sum, a, b): sum with products of a and b added
 *     PEAK_PRODUCTS  the number of these products
 *     PEAK_BYTES_CHAINS    CHAINS_12 or CHAINS_24 independent chains
 *     PEAK_REGISTER  the letter of a vector register in inline assembly
 *
 * Empty assembly makes the compiler assume that b and the sum change after every step; otherwise it would multiply
 * once, and leave sums in memory. Sums wrap around.
 *
 * SPDX-License-Identifier: MIT */
#include "simd/peak.h"

#include <stdint.h>
#include <string.h>

static PEAK_BYTES_VECTOR filled_bytes(int value)
{
    PEAK_BYTES_VECTOR vector;
    memset(&vector, value, sizeof vector);
    return vector;
}

static float run_bytes(size_t rounds)
{
    PEAK_BYTES_VECTOR a = filled_bytes(3), b = filled_bytes(5);
#define BYTES_START(i) PEAK_BYTES_VECTOR chain##i = filled_bytes(i);
    PEAK_BYTES_CHAINS(BYTES_START)
    for (size_t round = 0; round < rounds; round++) {
#define BYTES_STEP(i)                                                                                                  \
    chain##i = PEAK_DOT(chain##i, a, b);                                                                               \
    __asm__("" : "+" PEAK_REGISTER(b), "+" PEAK_REGISTER(chain##i));
        PEAK_BYTES_CHAINS(BYTES_STEP)
    }
    PEAK_BYTES_VECTOR all = filled_bytes(0);
    int32_t lane;
#define BYTES_JOIN(i) all ^= chain##i;
    PEAK_BYTES_CHAINS(BYTES_JOIN)
    memcpy(&lane, &all, sizeof lane);
    return (float)lane;
}

#define BYTES_COUNT(i) +1
const peak_kernel PEAK_BYTES_NAME = {.run = run_bytes,
                                     .flops_per_round = (size_t)(0 PEAK_BYTES_CHAINS(BYTES_COUNT)) * PEAK_PRODUCTS * 2};
