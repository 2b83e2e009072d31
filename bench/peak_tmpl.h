/* The body of every peak_<isa>.c, which defines before:
 *
 *     PEAK_NAME      the object of peak.h
 *     PEAK_VECTOR    the type of a register
 *     PEAK_CHAINS    CHAINS_12 or CHAINS_24 independent chains: more than latency times throughput of the multiply-add
 * (4 x 2 on x86, 4 x 4 on the widest Arm cores), and no more than there are registers beside the two constants
 *
 * Vectors are the compiler's own, not intrinsics, and the multiply-add is written a * m + c: these files alone are
 * compiled with -ffp-contract=fast. The chains are single variables, because gcc leaves an array of them in memory.
 *
 * SPDX-License-Identifier: MIT */
#include "bench/peak.h"

enum { PEAK_LANES = sizeof(PEAK_VECTOR) / sizeof(float) };

static PEAK_VECTOR filled(float value)
{
    PEAK_VECTOR vector;
    for (size_t i = 0; i < PEAK_LANES; i++) ((float *)&vector)[i] = value;
    return vector;
}

/* a = 0.999 a + 0.001 tends to 1: no overflow, no subnormals, which some processors are slow at. No chain starts there,
 * or the compiler would see that it stays. */
static float run(size_t rounds)
{
    PEAK_VECTOR factor = filled(0.999f), term = filled(0.001f), sum = filled(0);
#define START(i) PEAK_VECTOR chain##i = filled((float)((i) + 2));
    PEAK_CHAINS(START)
    for (size_t round = 0; round < rounds; round++) {
#define STEP(i) chain##i = chain##i * factor + term;
        PEAK_CHAINS(STEP)
    }
#define ADD(i) sum += chain##i;
    PEAK_CHAINS(ADD)
    return ((float *)&sum)[0];
}

#define COUNT(i) +1
const peak_kernel PEAK_NAME = {.run = run, .flops_per_round = (size_t)(0 PEAK_CHAINS(COUNT)) * PEAK_LANES * 2};
