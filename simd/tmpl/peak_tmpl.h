/* Implements the float32 chains of a peak_<isa>.c, which defines before:
 *
 *     PEAK_NAME      the object of peak.h
 *     PEAK_VECTOR    the type of a register
 *     PEAK_CHAINS    CHAINS_12 or CHAINS_24 independent chains: more than latency times throughput of the multiply-add
 *                    (4 x 2 on x86, 4 x 4 on the widest Arm cores), and no more than the registers that the two
 *                    constants leave
 *
 * Vectors are the compiler's own, not intrinsics, and the multiply-add is written a * m + c: these files alone are
 * compiled with -ffp-contract=fast. The chains are single variables, because gcc leaves an array of them in memory.
 *
 * SPDX-License-Identifier: MIT */
#include "simd/peak.h"

enum { PEAK_LANES = sizeof(PEAK_VECTOR) / sizeof(float) };

static PEAK_VECTOR filled_floats(float value)
{
    PEAK_VECTOR vector;
    for (size_t i = 0; i < PEAK_LANES; i++) ((float *)&vector)[i] = value;
    return vector;
}

/* a = 0.999 a + 0.001 tends to 1, without overflow and without subnormals, which are slow on some processors. No chain
 * starts at 1; otherwise the compiler would see that it stays there. */
static float run_floats(size_t rounds)
{
    PEAK_VECTOR factor = filled_floats(0.999f), term = filled_floats(0.001f), sum = filled_floats(0);
#define FLOATS_START(i) PEAK_VECTOR chain##i = filled_floats((float)((i) + 2));
    PEAK_CHAINS(FLOATS_START)
    for (size_t round = 0; round < rounds; round++) {
#define FLOATS_STEP(i) chain##i = chain##i * factor + term;
        PEAK_CHAINS(FLOATS_STEP)
    }
#define FLOATS_ADD(i) sum += chain##i;
    PEAK_CHAINS(FLOATS_ADD)
    return ((float *)&sum)[0];
}

#define FLOATS_COUNT(i) +1
const peak_kernel PEAK_NAME = {.run = run_floats,
                               .flops_per_round = (size_t)(0 PEAK_CHAINS(FLOATS_COUNT)) * PEAK_LANES * 2};
