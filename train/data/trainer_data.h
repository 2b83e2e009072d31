/* Training data: prepared batches, or batches drawn from texts or from examples. SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "train/data/batch_file.h"
#include "train/data/drawn_batches.h"
#include "train/data/examples.h"

/* One of the three is open. */
typedef struct trainer_data {
    batch_file *file;
    corpus corpus, held_out_corpus;
    drawn_batches *drawn, *held_out;
    example_set examples, held_out_examples;
    example_batches example_batches, held_out_batches;
    bool has_held_out; /* something is evaluated */
    batch_source source, held_out_source;
    size_t most_tokens; /* of a step */
    size_t longest;     /* tokens of a sequence at most */
} trainer_data;

/* The model that is trained, as far as data must fit it. */
typedef struct trainer_target {
    const char *folder, *generator_folder; /* generator: NULL if there is none; its tokenizer must be the same */
    deberta_training_task task;
    size_t vocabulary;
    size_t places; /* of the position table, where it is read; 0: sequences may have any length */
    size_t labels; /* outputs of the head, for a task with classes */
} trainer_target;

/* The limit of a step in sequences, 0: none. */
size_t trainer_batch_sequences(const deberta_trainer_options *options);

/* Close it also after a failure. Zero-initialised at first. */
deberta_status trainer_data_open(trainer_data *data, const deberta_trainer_options *options,
                                 const trainer_target *target, deberta_error *err);
/* SHA-256 of what is read. */
void trainer_data_digest(const trainer_data *data, char digest[65]);
void trainer_data_close(trainer_data *data);
