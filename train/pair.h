/* A generator and a discriminator of replaced tokens trained together, their tables shared by difference (GDES): the
 * discriminator's word and position tables are the generator's plus a difference of its own, which alone learns from
 * the discriminator's loss.
 *
 * SPDX-License-Identifier: MIT */
#ifndef TRAIN_PAIR_H
#define TRAIN_PAIR_H

#include "train/training.h"

enum { PAIR_TABLES = 2 }; /* words, positions */

typedef struct shared_table {
    const parameter *generator;
    parameter *discriminator; /* what the discriminator reads: the generator's + difference */
    parameter *difference;
} shared_table;

typedef struct training_pair {
    training generator, discriminator;
    shared_table tables[PAIR_TABLES];
    size_t table_count;
} training_pair;

typedef struct pair_report {
    step_report generator, discriminator;
    double loss; /* the generator's + weight times the discriminator's */
} pair_report;

/* Both learners and their options are set; finds the tables, and makes those that the discriminator reads. The pair
 * stays where it is. */
deberta_status pair_open(training_pair *pair, deberta_error *err);

/* Gradients of both losses at the weights as they are, of batch number `step`. */
deberta_status pair_gradients(training_pair *pair, size_t step, pair_report *report, deberta_error *err);

/* The generator's gradients, clipping and update; then the discriminator's, on tables from behind that update. */
deberta_status pair_step(training_pair *pair, pair_report *report, deberta_error *err);

/* Before the discriminator is saved: its tables as they are now. */
void pair_share_tables(training_pair *pair);

#endif
