/* Small numeric functions: sizes, hashes, random draws, sorting, and locale-independent numbers in files.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <locale.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Sizes: the smaller, the larger, in units, in powers of two. */

static inline size_t minimum(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t maximum(size_t a, size_t b) { return a > b ? a : b; }
static inline size_t ceiling_divide(size_t a, size_t b) { return a / b + (a % b != 0); }
static inline size_t round_up(size_t a, size_t unit) { return ceiling_divide(a, unit) * unit; }

/* The least k with count <= 2^k: levels of a binary tree over so many. */
static inline size_t tree_levels(size_t count)
{
    size_t levels = 0;
    while ((size_t)1 << levels < count) levels++;
    return levels;
}

/* FNV-1a over bytes: for tables, names and the division of items, not against anybody's will. */

static const uint64_t hash_of_nothing = 0xcbf29ce484222325u;

/* Goes on with the hash of what stood before. */
static inline uint64_t hash_bytes(uint64_t hash, const char *bytes, size_t count)
{
    for (size_t k = 0; k < count; k++) hash = (hash ^ (unsigned char)bytes[k]) * 0x100000001b3u;
    return hash;
}

/* Random numbers that are the same everywhere for a seed: splitmix64. For choosing tokens and sentences, not for keys.
 */

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

/* Numbers in order. */

static inline int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static inline void sort_doubles(double *values, size_t count) { qsort(values, count, sizeof *values, compare_doubles); }

/* Numbers in files have a point, whatever the host program's locale writes: printf and strtod between begin and end are
 * those of the locale "C", in this thread alone. */

typedef struct plain_numbers {
    locale_t plain, before;
} plain_numbers;

/* Where there is no memory for a locale, numbers stay the host's. */
static inline plain_numbers plain_numbers_begin(void)
{
    plain_numbers numbers = {.plain = newlocale(LC_ALL_MASK, "C", (locale_t)0)};
    if (numbers.plain) numbers.before = uselocale(numbers.plain);
    return numbers;
}

static inline void plain_numbers_end(plain_numbers numbers)
{
    if (!numbers.plain) return;
    uselocale(numbers.before);
    freelocale(numbers.plain);
}
