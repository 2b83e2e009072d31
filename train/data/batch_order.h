/* Assigns items of the data to steps. Every epoch shuffles them anew; a step ends before the item that would exceed its
 * limits, and may span the end of an epoch. A step's items follow from the options and its number alone.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/status.h"

/* Items are runs of `group` sequences, 1 for texts, more for questions with choices. */
typedef struct batch_items {
    const size_t *starts; /* [sequences + 1]: starts of their tokens; must stay */
    size_t sequences, group;
} batch_items;

typedef struct batch_order_options {
    uint32_t seed;
    bool in_order; /* whether data are held out: not shuffled, and no step spans the end of an epoch */
    size_t batch_items, batch_tokens; /* limits of a step, at least one of which is set; 0: none */
} batch_order_options;

/* The position before a step: the completed steps, epochs, and items of the current epoch. */
typedef struct batch_place {
    size_t step, epoch, at;
} batch_place;

typedef struct batch_order {
    batch_items items;
    batch_order_options options;
    batch_place place;              /* place after the current step */
    size_t *order, item_count;      /* order of the items in the place's epoch */
    size_t *members, count, tokens; /* items of the current step, and their tokens */
    size_t members_capacity, longest;
} batch_order;

/* Opens an order. DEBERTA_E_ARGUMENT if an item has more tokens than a step may have. Close it also after a failure. */
deberta_status batch_order_open(batch_order *order, const batch_items *items, const batch_order_options *options,
                                deberta_error *err);
void batch_order_close(batch_order *order);

/* Returns the largest number of tokens of a step. */
size_t batch_order_most_tokens(const batch_order *order);
/* Fills members, count and tokens with those of a step (from 0). False: no memory. */
bool batch_order_go_to(batch_order *order, size_t step);
/* Returns the epochs of the data completed after the current step, as a fraction. */
double batch_order_epoch(const batch_order *order);
