/* Random problems are filled here, kept, and compared between tiers. SPDX-License-Identifier: MIT */
#include "check/verify_rounds.h"

#include <string.h>

#include "core/base/random.h"

size_t rounds_below(verify_rounds *k, size_t limit) { return random_below(&k->state, limit); }
static double rounds_uniform(verify_rounds *k) { return random_fraction(&k->state) * 2 - 1; }

size_t rounds_size(verify_rounds *k, size_t limit)
{
    size_t tile = PANEL;
    if (rounds_below(k, 2)) return 1 + rounds_below(k, limit);
    const int tier = (int)rounds_below(k, TIERS);
    if (k->present[tier] && rounds_below(k, 2)) tile = k->tables[tier].tile_rows;
    const size_t edge = limit < tile ? limit : tile * (1 + rounds_below(k, limit / tile)),
                 size = edge + rounds_below(k, 3) - 1;
    return size < 1 ? 1 : size > limit ? limit : size;
}

/* Ordinary ones are mostly of unit size, some large, some tiny: what activations look like. */
float rounds_number(verify_rounds *k)
{
    const double u = rounds_uniform(k);
    switch (k->inputs) {
    case HUGE: return (float)(rounds_below(k, 2) ? u * 1e15 : u * 2);
    case TIES: return u < 0 ? -1.0f : 1.0f;
    case SUBNORMAL: return (float)(rounds_below(k, 2) ? u * 1e-38 : u * 2);
    default: return (float)(rounds_below(k, 50) == 0 ? u * 30 : rounds_below(k, 50) == 0 ? u * 1e-4 : u * 2);
    }
}

void rounds_fill(verify_rounds *k, float *x, size_t n)
{
    const float same = rounds_number(k);
    for (size_t i = 0; i < n; i++) x[i] = k->inputs == CONSTANT ? same : rounds_number(k);
}

void rounds_shift(verify_rounds *k)
{
    float **const inputs[3] = {&k->a, &k->b, &k->extra};
    for (size_t m = 0; m < 3; m++) *inputs[m] = k->memory[m] + rounds_below(k, PANEL);
    for (int t = 0; t < TIERS; t++)
        if (k->present[t]) k->out[t] = k->memory[3 + t] + rounds_below(k, PANEL);
}

void rounds_start(verify_rounds *k, size_t n)
{
    rounds_fill(k, k->out[DEBERTA_ISA_SCALAR], n);
    for (int t = 0; t < TIERS; t++)
        if (k->present[t] && t != DEBERTA_ISA_SCALAR) memcpy(k->out[t], k->out[DEBERTA_ISA_SCALAR], n * sizeof(float));
}

void rounds_keep(const verify_rounds *k, float *copy, size_t n)
{
    memcpy(copy, k->out[DEBERTA_ISA_SCALAR], n * sizeof *copy);
}

void rounds_compare(verify_rounds *k, size_t n)
{
    const float *base = k->out[DEBERTA_ISA_SCALAR];
    for (int t = 0; t < TIERS; t++) {
        if (!k->present[t]) continue;
        k->values[t] += n;
        for (size_t i = 0; i < n; i++) k->differing[t] += memcmp(&k->out[t][i], &base[i], sizeof(float)) != 0;
    }
}
