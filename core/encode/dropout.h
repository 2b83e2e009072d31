/* Dropout of a forward pass in training, and of its backward pass. The mask is a function of counters alone
 * (docs/training.md), so both passes compute it instead of storing masks.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/kernels.h"

/* Bit positions of the parts of a counter's last word. */
enum { DROPOUT_SITE_SHIFT = 26, DROPOUT_PASS_SHIFT = 24, DROPOUT_LAYER_SHIFT = 12 };

/* Sites of dropout, which are the highest bits of a counter's last word. */
typedef enum dropout_site {
    DROPOUT_EMBEDDINGS = 0,
    DROPOUT_TABLE = 1,
    DROPOUT_PROBABILITIES = 2,
    DROPOUT_ATTENTION = 3,
    DROPOUT_FEED_FORWARD = 4,
    DROPOUT_CONVOLUTION = 5,
    DROPOUT_POOLER = 6,
    DROPOUT_CLASSIFIER = 7,
} dropout_site;

/* Dropout probabilities, below 1. */
typedef struct dropout_rates {
    double hidden, attention, pooler, classifier;
} dropout_rates;

/* Parameters of a step. */
typedef struct dropout_plan {
    dropout_rates rates;
    uint32_t seed, step;
    uint32_t model;            /* 0, or 32 << 26 for a generator; added to every last word */
    const dropout_row *tokens; /* [tokens]: place in the sequence, number of the sequence; site: pass << 24 */
} dropout_plan;

typedef struct dropout_place {
    dropout_site site;
    size_t layer, pass, head;
    const size_t *tokens; /* token of each row; NULL: row i is token i */
} dropout_place;

/* Drops rows [first, first + count) of x, which points to the first of them. It does nothing where the probability is
 * 0. */
void dropout_rows(const kernels *table, const dropout_plan *plan, const dropout_place *place, float *x, size_t ld,
                  size_t columns, size_t first, size_t count);

/* Drops probabilities of `rows` neighbouring queries, the first of them token `token`, and of keys [key, key + keys) of
 * its sequence; key is a multiple of 4. */
void dropout_probabilities(const kernels *table, const dropout_plan *plan, const dropout_place *place, float *x,
                           size_t ld, size_t token, size_t rows, size_t key, size_t keys);

/* Drops the relative table of a layer, in natural order. */
void dropout_table(const kernels *table, const dropout_plan *plan, size_t layer, float *x, size_t ld, size_t columns,
                   size_t rows);
