/* The subject of a run, one model or a pair, and one step of it.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "train/step/pair.h"

/* The trained models: one model, or the two of a pair. */
typedef struct run_part {
    const char *name; /* name of its folder; "": no separate one */
    const char *source_folder;
    training *training;
} run_part;

typedef struct run_parts {
    run_part items[2];
    size_t count;
    training_pair *pair;      /* the pair; NULL: one model */
    deberta_dtype save_dtype; /* dtype of models saved for use, not for resuming */
} run_parts;

/* Returns the number of completed updates. */
size_t run_parts_done(const run_parts *parts);
/* Updates all parts. *is_bad: it failed for a loss or a gradient that is not finite; may be NULL. */
deberta_status run_parts_step(const run_parts *parts, deberta_training_step *step, bool *is_bad, deberta_error *err);
/* Skips a bad step: parts that it has not changed count it. */
void run_parts_skip(const run_parts *parts, size_t step);
/* Held-out losses: of the model, or of the generator and the discriminator. */
typedef struct run_held_out {
    double loss; /* for a pair, the generator's + weight times the discriminator's */
    held_out_report all, discriminator;
} run_held_out;

deberta_status run_parts_evaluate(const run_parts *parts, const batch_source *held_out, run_held_out *report,
                                  deberta_error *err);
/* Computes the gradients of the next step without an update. */
deberta_status run_parts_gradients(const run_parts *parts, deberta_training_step *step, deberta_error *err);
