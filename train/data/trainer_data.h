/* Training data: prepared batches, or batches drawn from texts or from examples. SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "train/data/batch_file.h"
#include "train/data/drawn_batches.h"
#include "train/data/examples.h"

/* Exactly one of the three is open. */
typedef struct trainer_data {
    batch_file *file;
    corpus corpus, held_out_corpus;
    drawn_batches *drawn, *held_out;
    example_set examples, held_out_examples;
    example_batches example_batches, held_out_batches;
    bool has_held_out; /* whether there are held-out data */
    batch_source source, held_out_source;
    size_t most_tokens; /* largest number of tokens of a step */
    size_t longest;     /* largest number of tokens of a sequence */
} trainer_data;

/* The properties of the trained model that data must fit. */
typedef struct trainer_target {
    const char *folder, *generator_folder; /* generator: NULL if there is none; both tokenizers must be the same */
    deberta_training_task task;
    const char *vocabulary_folder, *places_folder; /* the model of a pair that has the table of so many rows */
    size_t vocabulary;
    size_t places; /* rows of the position table, if it is used; 0: sequences may have any length */
    size_t labels; /* outputs of the head, for a task with classes */
} trainer_target;

/* Returns the limit of a step in sequences, 0: none. */
size_t trainer_batch_sequences(const deberta_trainer_options *options);

/* Opens the data. They must be zero-initialised. Close them also after a failure. */
deberta_status trainer_data_open(trainer_data *data, const deberta_trainer_options *options,
                                 const trainer_target *target, deberta_error *err);
/* Computes SHA-256 of the data that are read. */
void trainer_data_digest(const trainer_data *data, char digest[65]);
/* Digests the held-out data; "": there are none. */
void trainer_data_digest_held_out(const trainer_data *data, char digest[65]);
void trainer_data_close(trainer_data *data);
