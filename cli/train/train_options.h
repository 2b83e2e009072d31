/* Options of `deberta train` and `deberta finetune`. SPDX-License-Identifier: MIT */
#ifndef CLI_TRAIN_TRAIN_OPTIONS_H
#define CLI_TRAIN_TRAIN_OPTIONS_H

#include "command/options.h"
#include "train/training.h"

typedef enum train_head { TRAIN_HEAD_AUTO, TRAIN_HEAD_MLM, TRAIN_HEAD_MLM_EMD } train_head;

typedef struct train_options {
    common_options common;
    const char *batch, *batches, *gradients, *generator;
    text_list texts, held_out;
    size_t steps, warmup, shards, sequence_tokens, batch_sequences, batch_tokens, max_ngram, seed, checkpoint_every,
        keep, stop_at, eval_every;
    bool resume;
    double dropout, rtd_weight, sift;
    double learning_rate, weight_decay, beta1, beta2, epsilon, clip, layer_decay;
    int head, optimizer, schedule, sharing, masking;
} train_options;

extern const train_options train_defaults;
extern const option train_options_table[], train_mlm_options_table[], train_rtd_options_table[],
    train_sift_options_table[];

/* Whether the options make sense together: one step, or a run. EXIT_OK or the exit code, after saying why. */
int train_options_check(const train_options *options);
/* Whether it is a run rather than one step. */
static inline bool train_runs(const train_options *options) { return options->batches || options->texts.count > 0; }
/* The limit of a step in sequences, 0: none. */
size_t train_batch_sequences(const train_options *options);
optimizer_options train_recipe(const train_options *options);

#endif
