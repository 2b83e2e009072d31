/* Draws a case: a model, or two, a batch of some task, and the settings of its training. A case is a function of a seed
 * and a number, so that any case repeats alone.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "output/scope.h"
#include "tests/drawn/drawn_model.h"
#include "tests/drawn/exact_loss.h"

typedef struct drawn_task {
    const char *name;
    deberta_training_task task;
    exact_task exact;
    unsigned heads; /* drawn_head of the model */
    bool decodes;   /* after the Enhanced Mask Decoder */
    bool pairs_up;  /* with a generator */
    bool has_sift;
} drawn_task;

extern const size_t drawn_task_count; /* which take turns */

typedef struct drawn_case {
    scope memory; /* of the arrays below */
    uint64_t seed;
    size_t number;
    const drawn_task *task;
    drawn_model model, generator;
    exact_batch batch;           /* of a pair the discriminator's: its ids are those that stand for the generator's */
    exact_batch generator_batch; /* the same texts with what is masked */
    deberta_trainer_options options; /* without files and without `dropout`, which is 0 */
    double dropout;                  /* for other runs of the case; 0: none */
    size_t tokens, longest;

    /* Owned, in rows of the batch. */
    int64_t *ids, *sampled, *types, *positions, *labels, *starts, *ends;
    uint8_t *mask;
    float *targets, *delta;
} drawn_case;

/* first_holes: a first token may be a hole. */
deberta_status drawn_case_make(drawn_case *drawn, uint64_t seed, size_t number, bool first_holes, deberta_error *err);
void drawn_case_free(drawn_case *drawn);

/* model/, generator/, batch.safetensors, and batches.safetensors with an axis of steps, into a folder. */
deberta_status drawn_case_save(const drawn_case *drawn, const char *folder, deberta_error *err);

/* Saves into a new folder models whose weights differ in half of their last bits. */
deberta_status drawn_case_save_nudged(const drawn_case *drawn, const char *folder, uint64_t seed, deberta_error *err);

/* The batch alone, as folder/name; has_steps: with an axis of steps. */
deberta_status drawn_batch_save(const drawn_case *drawn, const char *folder, const char *name, bool has_steps,
                                deberta_error *err);
