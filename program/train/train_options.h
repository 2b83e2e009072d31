/* Declares the options of `deberta train` and `deberta finetune`. SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "program/frame/options.h"

typedef struct train_options {
    common_options common;
    deberta_trainer_options trainer; /* options of the library, except those that are members here */
    text_list texts, held_out;
    text_list data, freeze, drop; /* options of finetune: labelled examples; tensors to freeze, to drop */
    const char *labels, *config;
    bool new_head, cut;
    const char *gradients;
    bool chain;
    size_t chain_every;
    struct train_segment *segment; /* segment that an audit executes instead of a run; NULL: none */
} train_options;

extern const train_options train_defaults;
extern const option_group train_mlm_groups[], train_rtd_groups[], finetune_sequence_groups[], finetune_token_groups[],
    finetune_choice_groups[], finetune_qa_groups[];

/* Checks that the options make sense together, for one step or for a run. */
void train_options_check(const train_options *options);
/* Returns true if the options ask for a run rather than one step. */
static inline bool train_runs(const train_options *options)
{
    return options->trainer.batches || options->texts.count > 0 || options->data.count > 0;
}
/* Fills the options of the library's trainer. */
deberta_trainer_options train_trainer_options(const train_options *options, deberta_training_task task);
