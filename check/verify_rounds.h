/* Rounds of random problems, on which each kernel of every tier is compared with scalar's bits and with float64. Only
 * for verify_kernels.c and its parts.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CHECK_VERIFY_ROUNDS_H
#define CHECK_VERIFY_ROUNDS_H

#include "check/verify.h"
#include "core/kernels.h"

enum { ROWS = 40, COLUMNS = 8 * PANEL, DEPTH = 160, WIDTH = 1000, FLOATS = 1 << 16, TIERS = DEBERTA_ISA_COUNT };

/* What the numbers of a problem are like. */
typedef enum inputs { ORDINARY, HUGE, TIES, SUBNORMAL, CONSTANT, INPUTS } inputs;

typedef struct verify_rounds {
    kernels tables[TIERS];
    bool present[TIERS];
    uint64_t state;
    inputs inputs;
    float *a, *b, *extra; /* inputs, anywhere in their memory */
    float *out[TIERS];    /* one output a tier; [SCALAR] is the base. Aligned differently on each */
    float *memory[3 + TIERS];
    int32_t *table;
    verify_errors errors[TIERS];
    size_t values[TIERS], differing[TIERS];
} verify_rounds;

#define EACH_TIER(t)                                                                                                   \
    for (int t = 0; t < TIERS; t++)                                                                                    \
        if (k->present[t])

/* What it wrote there. */
#define TESTED(t, at) ((double)k->out[t][at])

/* An exact value with the sizes of the terms that it is made of. */
typedef struct exact_sum {
    double value, terms;
} exact_sum;

/* A number below the limit. */
size_t rounds_below(verify_rounds *k, size_t limit);
/* From 1 to the limit. Half of the sizes lie at the end of somebody's tile, or one beside it. */
size_t rounds_size(verify_rounds *k, size_t limit);
float rounds_number(verify_rounds *k);
void rounds_fill(verify_rounds *k, float *x, size_t n);
/* Pointers of the next round: everything lies at another address, and on each tier at another. */
void rounds_shift(verify_rounds *k);
/* The outputs of all tiers begin alike, so that what a kernel must not touch is compared as well. */
void rounds_start(verify_rounds *k, size_t n);
/* A copy of that beginning, for a kernel that works in place. */
void rounds_keep(const verify_rounds *k, float *copy, size_t n);
/* Counts what other bits the tiers have than scalar. */
void rounds_compare(verify_rounds *k, size_t n);

#endif
