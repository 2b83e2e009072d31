/* Generates uniform and normal numbers and shuffles by Philox from a key and a counter. SPDX-License-Identifier: MIT */
#include "train/state/counters.h"

#include <math.h>

#include "train/state/exact_math.h"

enum { ROUNDS = 10 };

void philox4x32(const uint32_t counter[COUNTER_WORDS], counter_key key, uint32_t words[COUNTER_WORDS])
{
    uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3];
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t first = (uint64_t)0xD2511F53u * a, second = (uint64_t)0xCD9E8D57u * c;
        a = (uint32_t)(second >> 32) ^ b ^ key.seed;
        b = (uint32_t)second;
        c = (uint32_t)(first >> 32) ^ d ^ key.step;
        d = (uint32_t)first;
        key.seed += 0x9E3779B9u;
        key.step += 0xBB67AE85u;
    }
    words[0] = a;
    words[1] = b;
    words[2] = c;
    words[3] = d;
}

static uint32_t next_word(counter_draws *draws)
{
    const uint64_t block = draws->drawn / COUNTER_WORDS;
    const uint32_t counter[COUNTER_WORDS] = {(uint32_t)block, (uint32_t)(block >> 32), draws->place,
                                             (uint32_t)draws->site << COUNTER_SITE_SHIFT};
    if (draws->drawn % COUNTER_WORDS == 0) philox4x32(counter, draws->key, draws->words);
    return draws->words[draws->drawn++ % COUNTER_WORDS];
}

double counter_fraction(counter_draws *draws) { return next_word(draws) * 0x1p-32; }

size_t counter_below(counter_draws *draws, size_t count)
{
    return (size_t)((uint64_t)next_word(draws) * (uint64_t)count >> 32);
}

/* Returns p(r) / q(r), with eight coefficients each, from the constant on; q begins with 1. */
static double ratio(const double p[8], const double q[8], double r)
{
    double above = p[7], below = q[7];
    for (int i = 6; i >= 0; i--) {
        above = above * r + p[i];
        below = below * r + q[i];
    }
    return above / below;
}

double counter_normal(uint32_t word)
{
    static const double a[8] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                3.3430575583588128105e+4, 2.5090809287301226727e+3};
    static const double b[8] = {1,
                                4.2313330701600911252e+1,
                                6.8718700749205790830e+2,
                                5.3941960214247511077e+3,
                                2.1213794301586595867e+4,
                                3.9307895800092710610e+4,
                                2.8729085735721942674e+4,
                                5.2264952788528545610e+3};
    static const double c[8] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static const double d[8] = {1,
                                2.05319162663775882187e0,
                                1.67638483018380384940e0,
                                6.89767334985100004550e-1,
                                1.48103976427480074590e-1,
                                1.51986665636164571966e-2,
                                5.47593808499534494600e-4,
                                1.05075007164441684324e-9};
    const double p = (word + 0.5) * 0x1p-32, q = p - 0.5, most = 4;
    if (fabs(q) <= 0.425) return q * ratio(a, b, 0.180625 - q * q);
    const double r = sqrt(-exact_log(q < 0 ? p : 1 - p));
    const double z = r <= 5 ? ratio(c, d, r - 1.6) : most;
    return copysign(fmin(z, most), q);
}

double counter_drawing(counter_key key, uint32_t place, uint32_t sequence)
{
    const uint32_t counter[COUNTER_WORDS] = {0, place, sequence, (uint32_t)SITE_DRAWING << COUNTER_SITE_SHIFT};
    uint32_t words[COUNTER_WORDS];
    philox4x32(counter, key, words);
    return words[0] * 0x1p-32 + words[1] * 0x1p-64;
}

/* Returns a number of 64 bits times a count of 32 bits, shifted right by 64. */
static size_t scaled(uint32_t high, uint32_t low, uint64_t count)
{
    return (size_t)((high * count + (low * count >> 32)) >> 32);
}

void counter_shuffle(size_t *order, size_t count, counter_key key)
{
    for (size_t i = 0; i < count; i++) order[i] = i;
    for (size_t i = count; i-- > 1;) {
        const uint32_t counter[COUNTER_WORDS] = {(uint32_t)(i / 2), (uint32_t)((uint64_t)i / 2 >> 32), 0,
                                                 (uint32_t)SITE_SHUFFLING << COUNTER_SITE_SHIFT};
        uint32_t words[COUNTER_WORDS];
        philox4x32(counter, key, words);
        const size_t j = scaled(words[2 * (i % 2)], words[2 * (i % 2) + 1], (uint64_t)i + 1), other = order[j];
        order[j] = order[i];
        order[i] = other;
    }
}
