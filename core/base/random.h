/* Random numbers that are the same everywhere for a seed: splitmix64. For choosing tokens and sentences, not for keys.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* *state is the seed at first. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* 0 ... count - 1, for counts below 2^32: the high half of a product is uniform enough. */
static inline size_t random_below(uint64_t *state, size_t count)
{
    return (size_t)(((random_next(state) >> 32) * (uint64_t)count) >> 32);
}

/* [0, 1) */
static inline double random_fraction(uint64_t *state) { return (double)(random_next(state) >> 11) * 0x1p-53; }
