/* Small numeric functions: sizes, hashes, random draws, sorting, quantiles, and locale-independent numbers in files.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <locale.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Arithmetic on sizes: minimum, maximum, division and rounding to multiples, powers of two. */

static inline size_t minimum(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t maximum(size_t a, size_t b) { return a > b ? a : b; }
static inline size_t ceiling_divide(size_t a, size_t b) { return a / b + (a % b != 0); }
static inline size_t round_up(size_t a, size_t unit) { return ceiling_divide(a, unit) * unit; }

/* Returns the least k with count <= 2^k: the levels of a binary tree with `count` leaves. */
static inline size_t tree_levels(size_t count)
{
    size_t levels = 0;
    while ((size_t)1 << levels < count) levels++;
    return levels;
}

/* Functions of float32 that compilers vectorize in loops. */

/* Returns the bits of |x|, which are ordered as the numbers are: infinity and NaN are above all others, whatever the
 * order in which a maximum meets them. */
static inline int32_t magnitude_bits(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & INT32_MAX;
}

static inline float magnitude_of_bits(int32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Rounds x, |x| < 2^22, to the nearest integer, ties to even, as rintf does: a sum with this constant has no digits
 * after the point. */
static inline float whole_number(float x)
{
    const float ones = 0x1.8p23f;
    return x + ones - ones;
}

/* FNV-1a, the hash of bytes for hash tables, names and the assignment of items. It does not resist deliberate
 * collisions. */

static const uint64_t hash_of_nothing = 0xcbf29ce484222325u;

/* Continues the hash of the preceding bytes. */
static inline uint64_t hash_bytes(uint64_t hash, const char *bytes, size_t count)
{
    for (size_t k = 0; k < count; k++) hash = (hash ^ (unsigned char)bytes[k]) * 0x100000001b3u;
    return hash;
}

/* splitmix64: a generator whose numbers for a seed are the same on every machine. It chooses tokens and sentences; it
 * is not for cryptography. */

/* Returns the next number; *state is the seed at first. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Draws an integer from 0 ... count - 1, for counts below 2^32, as the high half of a product, which is uniform enough.
 */
static inline size_t random_below(uint64_t *state, size_t count)
{
    return (size_t)(((random_next(state) >> 32) * (uint64_t)count) >> 32);
}

/* Draws a number from [0, 1). */
static inline double random_fraction(uint64_t *state) { return (double)(random_next(state) >> 11) * 0x1p-53; }

/* Sorting of numbers, and quantiles. */

static inline int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static inline void sort_doubles(double *values, size_t count) { qsort(values, count, sizeof *values, compare_doubles); }

/* Returns the q-quantile (0 ... 1) with linear interpolation between neighbours of the sorted sample; NaN of nothing.
 * Sorts the values. */
static inline double quantile(double *values, size_t count, double q)
{
    if (count == 0) return NAN;
    sort_doubles(values, count);
    const double place = q * (double)(count - 1);
    const size_t below = (size_t)place;
    return below + 1 < count ? values[below] + (place - (double)below) * (values[below + 1] - values[below])
                             : values[below];
}

/* Numbers in files have a decimal point, whatever the host program's locale: between begin and end, printf and strtod
 * use the locale "C", in this thread alone. */

typedef struct plain_numbers {
    locale_t plain, before;
} plain_numbers;

/* Switches to the locale "C". If there is no memory for a locale, numbers keep the host's format. */
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
