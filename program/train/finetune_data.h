/* Reads labelled examples from files, as ids, and measures on held-out ones: the input that `deberta finetune
 * --examples` gives to the library.
 *
 *     finetune_data        opens the files, has the labels        finetune_lists    examples and labels in memory
 *     finetune_texts       texts, pairs and choices               finetune_tags     words with labels
 *     finetune_answers     questions, cut into windows            score_*           measures
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/train/finetune_lists.h"
#include "program/train/train_options.h"

typedef struct finetune_data {
    const train_options *options;
    finetune_reader reader;
    example_list train, held_out;
    deberta_scorer scorer;
} finetune_data;

/* Reads the files (without files: new labels alone) and adds examples, labels and scorer to the trainer's options.
 * Close it after the trainer. */
void finetune_data_open(finetune_data *data, const train_options *options, deberta_trainer_options *trainer);
void finetune_data_close(finetune_data *data);
