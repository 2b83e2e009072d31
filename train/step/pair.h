/* Trains a generator and a discriminator of replaced tokens together (docs/training.md). The generator fills the masked
 * places; the discriminator reads the tokens that it draws.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "train/step/training.h"

typedef struct shared_table {
    parameter *generator;
    parameter *discriminator; /* discriminator's table: the generator's + difference, or a copy of it */
    parameter *difference;    /* NULL: both losses train the one table */
} shared_table;

typedef struct pair_options {
    deberta_sharing sharing;
    bool coupled; /* whether both have one backward pass at the same weights and one norm; else the generator's update
                     comes first */
} pair_options;

typedef struct training_pair {
    training generator, discriminator;
    pair_options options;
    shared_table tables[SHARED_TABLES];
    size_t table_count;
} training_pair;

typedef struct pair_report {
    step_report generator, discriminator;
    double loss; /* loss of the generator + weight times that of the discriminator */
} pair_report;

/* Opens a pair whose learners and options are all set; finds the tables, and makes those that the discriminator reads.
 * The pair must not move. */
deberta_status pair_open(training_pair *pair, deberta_error *err);

/* Computes the gradients of both losses at the current weights, for batch number `step`. */
deberta_status pair_gradients(training_pair *pair, size_t step, pair_report *report, deberta_error *err);

/* Runs one update of both. If it fails for a loss that is not finite, the report of that model says so. */
deberta_status pair_step(training_pair *pair, pair_report *report, deberta_error *err);

typedef struct pair_held_out {
    held_out_report generator, discriminator;
} pair_held_out;

/* Computes both losses of held-out texts; the number of the batch seeds the replacements. */
deberta_status pair_evaluate(training_pair *pair, const batch_source *held_out, pair_held_out *report,
                             deberta_error *err);

/* Sets the discriminator's tables to their current values, before it is saved. */
void pair_share_tables(training_pair *pair);
