/* What is trained on: prepared batches, or batches drawn from texts. SPDX-License-Identifier: MIT */
#ifndef CLI_TRAIN_TRAIN_DATA_H
#define CLI_TRAIN_TRAIN_DATA_H

#include "cli/train/train_options.h"
#include "train/batch_file.h"
#include "train/drawn_batches.h"

/* One of the two is open. */
typedef struct train_data {
    batch_file *file;
    corpus corpus, held_out_corpus;
    drawn_batches *drawn, *held_out; /* held_out: NULL if nothing is evaluated */
    batch_source source, held_out_source;
    size_t most_tokens; /* of a step */
} train_data;

/* The model that is trained, as far as data must fit it. */
typedef struct train_target {
    const char *folder;
    step_task task;
    size_t vocabulary;
    size_t places; /* of the position table, where it is read; 0: sequences may have any length */
} train_target;

/* Close it also after a failure. Zero-initialised at first. */
deberta_status train_data_open(train_data *data, const train_options *options, const train_target *target,
                               deberta_error *err);
/* SHA-256 of what is read. */
void train_data_digest(const train_data *data, char digest[65]);
void train_data_close(train_data *data);

#endif
