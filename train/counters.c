/* SPDX-License-Identifier: MIT */
#include "train/counters.h"

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

double counter_drawing(counter_key key, uint32_t place, uint32_t sequence)
{
    const uint32_t counter[COUNTER_WORDS] = {0, place, sequence, (uint32_t)SITE_DRAWING << COUNTER_SITE_SHIFT};
    uint32_t words[COUNTER_WORDS];
    philox4x32(counter, key, words);
    return words[0] * 0x1p-32 + words[1] * 0x1p-64;
}

/* A number of 64 bits times count, of 32, shifted down by 64. */
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
