/* What one encode of a golden case gave, compared with what the files say: errors against the bars of bars.tsv, bits
 * against the checksums of bits.tsv.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "check/mutation.h"
#include "tests/golden/encode_case.h"
#include "tests/golden/golden_bits.h"
#include "tests/golden/pytorch_ratio.h"

typedef enum bits_mode {
    BITS_IGNORED,
    BITS_COMPARED,
    BITS_TAKEN,   /* the file is to be written anew */
    BITS_DAMAGED, /* one bit of each quantity is flipped: every comparison must notice */
} bits_mode;

typedef struct settings {
    const char *folder, *beside, *only;
    const mutation *mutation; /* NULL: none */
    bool tiers[DEBERTA_ISA_COUNT];
    size_t threads;
    bool failures_only, silent;
    bool stand_ins; /* low precision alone, its products by tests/stand_ins */
    bits_mode bits;
    bits_file *frozen; /* bits.tsv; NULL if bits are ignored */
} settings;

typedef struct tally {
    size_t passed, failed, skipped;
    double worst[DEBERTA_ISA_COUNT]; /* ratio to the bar */
    char worst_where[DEBERTA_ISA_COUNT][128];
    pytorch_ratios ratios[DEBERTA_ISA_COUNT];
} tally;

/* One case on one tier with one rule for far distances. */
typedef struct comparison {
    const settings *settings;
    const golden_case *item;
    const char *prefix; /* of the expected tensors: "" or "ms_clamp." */
    deberta_precision precision;
    deberta_isa isa;
    ragged_batch batch;
    collected result;
    tally *tally;
    bool is_pytorchs; /* the bars are of these very expectations, not of the same weights in another format */
} comparison;

/* Counts a failure of the case and says so. */
void fail_case(tally *sum, const settings *s, const char *name, const char *text);
/* Everything that c->result holds: all hidden states, components and tasks. Of low precision the bits of hidden states
 * and tasks, and how far the last hidden states are from the expected ones. */
void compare_case(comparison *c);
