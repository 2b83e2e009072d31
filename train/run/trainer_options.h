/* Describes each of the trainer's options once: its name on the command line, its range, its part in the recipe of a
 * run, its help. These lists generate the rows of `deberta train` and `finetune` (program/train), the ranges that the
 * library checks, and the recipe as JSON, which --resume compares. The public header has types and defaults.
 *
 * A row is X(type, member, name, value, low, high, words, key, needs, help):
 *
 *     type         COUNT (size_t), NUMBER (double), CHOICE (an enumeration, or an int), SWITCH (an int that is 0 or 1),
 *                  or PATH
 *     low, high    range of a count or a number; the default may lie outside where it means "not given". high of a
 *                  choice: its last value
 *     words        of a choice, one for each value
 *     key          in the recipe, NULL: no bit depends on it
 *     needs        options of the program, one of which must be given
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include <jansson.h>

#include "include/deberta_training.h"

#define TRAINER_MOST_STEPS  1000000000
#define TRAINER_MOST_TOKENS 16777216
#define TRAINER_MOST_BETA   0.999999 /* A moment that forgets nothing would have a correction of 0. */

enum { TRAINER_MOST_SHARDS = 64, TRAINER_MOST_NGRAM = 16 };

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NO_WORDS   ((const char *const *)0)

/* clang-format off */

/* Rows of options that the program has as commands and as common options. */
#define TRAINER_TASK(X)                                                                                                \
    X(CHOICE, task, "task", "NAME", 0, DEBERTA_TRAIN_QA, WORDS("mlm", "rtd", "sequence", "choice", "token", "qa"),     \
      "task", NULL, "what is trained")                                                                                 \
    X(CHOICE, reference, "reference", "NAME", 0, DEBERTA_REFERENCE_HF, WORDS("auto", "microsoft", "hf"), "reference", NULL,    \
      "distances beyond the table")

#define TRAINER_SEED(X)                                                                                                \
    X(COUNT, seed, "seed", "N", 0, UINT32_MAX, NO_WORDS, "seed", NULL, "of all that is drawn: order, masks, dropout")

/* ------------------------------------------------------------------------------------ what is trained on, and how much */

#define TRAINER_BATCHES(X)                                                                                             \
    X(COUNT, batch_sequences, "batch-sequences", "N", 1, TRAINER_MOST_TOKENS, NO_WORDS, "batch-sequences",             \
      "file examples", "sequences, or examples, of a step (default 16, if there is no --batch-tokens)")                \
    X(COUNT, batch_tokens, "batch-tokens", "N", 3, TRAINER_MOST_TOKENS, NO_WORDS, "batch-tokens",                      \
      "file examples", "a step ends before the sequence that would exceed N tokens")

#define TRAINER_LENGTHS(X)                                                                                             \
    X(COUNT, sequence_tokens, "sequence-tokens", "N", 3, TRAINER_MOST_TOKENS, NO_WORDS, NULL, "file examples",         \
      "length of sequences with their frame: texts are cut up, longer examples refused (default 512, or what the "     \
      "model has places for); short ones are fast")

#define TRAINER_TEXTS(X)                                                                                               \
    X(CHOICE, by_line, "sequences", "OF", 0, 1, WORDS("documents", "lines"), NULL, "file",                             \
      "documents: their lines are joined, then cut; lines: each is one, what does not fit left out")

#define TRAINER_EVALUATION(X)                                                                                          \
    X(COUNT, eval_every, "eval-every", "N", 1, TRAINER_MOST_STEPS, NO_WORDS, NULL, "eval",                             \
      "measure held-out data every N steps as well")

#define TRAINER_PATIENCE(X)                                                                                            \
    X(COUNT, patience, "patience", "N", 1, TRAINER_MOST_STEPS, NO_WORDS, NULL, "eval-every",                           \
      "end the run when N measurements in a row were no better than the best")

#define TRAINER_MASKING(X)                                                                                             \
    X(CHOICE, masking, "masking", "NAME", 0, DEBERTA_MASKING_UNIFORM, WORDS("ngram", "uniform"), "masking", "file",    \
      "ngram, Microsoft's, or uniform")                                                                                \
    X(NUMBER, mask_probability, "mask-probability", "P", 0.001, 0.999, NO_WORDS, "mask-probability", "file",           \
      "share of the tokens that are to be guessed")                                                                    \
    X(COUNT, max_ngram, "max-ngram", "N", 1, TRAINER_MOST_NGRAM, NO_WORDS, "max-ngram", "file",                        \
      "words of the longest masked stretch; 1: pieces, one by one")

/* --------------------------------------------------------------------------------------------------------------- steps */

#define TRAINER_HEAD(X)                                                                                                \
    X(CHOICE, head, "head", "NAME", 0, DEBERTA_TRAIN_HEAD_MLM_EMD, WORDS("auto", "mlm", "mlm_emd"), NULL, "generator", \
      "of the masked language model: mlm or mlm_emd; auto is mlm_emd where it has that")

#define TRAINER_GENERATOR(X)                                                                                           \
    X(PATH, generator, "generator", "MODEL", 0, 0, NO_WORDS, NULL, NULL,                                               \
      "train this masked language model as well, whose draws are what is to be found out")

#define TRAINER_RTD(X)                                                                                                 \
    X(NUMBER, rtd_weight, "rtd-weight", "W", 0, 1e9, NO_WORDS, "rtd-weight", NULL,                                     \
      "of the discriminator's loss; the paper has 50, Microsoft's program 10")

#define TRAINER_SIFT(X)                                                                                                \
    X(NUMBER, sift_weight, "sift", "W", 0, 1e9, NO_WORDS, "sift", NULL,                                                \
      "scale-invariant fine-tuning: weight of the distance to a moved input")                                          \
    X(CHOICE, perturb_raw, "perturb", "HOW", 0, 1, WORDS("normalized", "raw"), "perturb", "sift",                      \
      "what is moved: normalized embeddings, or raw, as they are")                                                     \
    X(NUMBER, sift_step, "sift-step", "E", 0, 1e9, NO_WORDS, "sift-step", "sift",                                      \
      "how far a token is moved, in its largest component")                                                            \
    X(NUMBER, sift_start, "sift-start", "E", 0, 1e9, NO_WORDS, "sift-start", "sift",                                   \
      "standard deviation of what is added to it first, cut at twice that")

#define TRAINER_PAIR(X)                                                                                                \
    X(CHOICE, sharing, "sharing", "NAME", 0, DEBERTA_SHARING_NONE, WORDS("gdes", "es", "none"), "sharing",             \
      "generator", "tables of words and positions: gdes, the generator's + a difference; es, one; none")               \
    X(SWITCH, coupled, "coupled", NULL, 0, 1, NO_WORDS, "coupled", "generator",                                        \
      "both losses at the same weights; without it the generator's update comes first")

#define TRAINER_SUMS(X)                                                                                                \
    X(COUNT, shards, "virtual-shards", "N", 1, TRAINER_MOST_SHARDS, NO_WORDS, "shards", NULL,                          \
      "parts that sums over tokens are cut into, a power of two")

#define TRAINER_FILES(X)                                                                                               \
    X(PATH, batch, "one-batch", "FILE", 0, 0, NO_WORDS, NULL, NULL,                                                    \
      "one step: ids and labels, safetensors; gradients, no update")                                                   \
    X(PATH, batches, "batches", "FILE", 0, 0, NO_WORDS, NULL, "steps",                                                 \
      "a run: the same with a leading axis of steps, used round and round")

/* ------------------------------------------------------------------------------------------------------------- updates */

#define TRAINER_STEPS(X)                                                                                               \
    X(COUNT, steps, "steps", "N", 1, TRAINER_MOST_STEPS, NO_WORDS, "steps", "file examples batches",                   \
      "updates of the run; the trained model and log.jsonl go to the folder --out")

#define TRAINER_UPDATES(X)                                                                                             \
    X(CHOICE, optimizer, "optimizer", "NAME", 0, DEBERTA_XADAM, WORDS("adamw", "xadam"), "optimizer", NULL,            \
      "adamw, or xadam, Microsoft's")                                                                                  \
    X(CHOICE, schedule, "schedule", "NAME", 0, DEBERTA_SCHEDULE_CONSTANT, WORDS("linear", "microsoft", "constant"),    \
      "schedule", NULL, "of the rate: linear, microsoft or constant")                                                  \
    X(COUNT, warmup, "warmup", "N", 0, TRAINER_MOST_STEPS, NO_WORDS, "warmup", NULL,                                   \
      "steps in which the rate rises from 0")                                                                          \
    X(NUMBER, learning_rate, "learning-rate", "RATE", 0, 1e6, NO_WORDS, "learning-rate", NULL, "at its peak")          \
    X(NUMBER, weight_decay, "weight-decay", "D", 0, 1, NO_WORDS, "weight-decay", NULL, "of all but biases and norms")  \
    X(NUMBER, beta1, "beta1", "B", 0, TRAINER_MOST_BETA, NO_WORDS, "beta1", NULL, "decay of the first moment")         \
    X(NUMBER, beta2, "beta2", "B", 0, TRAINER_MOST_BETA, NO_WORDS, "beta2", NULL, "decay of the second moment")        \
    X(NUMBER, epsilon, "epsilon", "E", 1e-30, 1, NO_WORDS, "epsilon", NULL, "added to the root of the second moment")  \
    X(NUMBER, clip, "clip", "NORM", 0, 1e30, NO_WORDS, "clip", NULL, "largest norm of the gradients; 0: any")          \
    X(NUMBER, layer_decay, "layer-decay", "D", 0, 1, NO_WORDS, "layer-decay", NULL,                                    \
      "a layer's rate is D times that of the layer above")

#define TRAINER_DROPOUT(X)                                                                                             \
    X(NUMBER, dropout, "dropout", "P", 0, 0.99, NO_WORDS, NULL, NULL,                                                  \
      "dropped at all places (default: at each what config.json says)")

/* --------------------------------------------------------------------------------------------- a run; nothing in the bits */

#define TRAINER_RUN(X)                                                                                                 \
    X(SWITCH, resume, "resume", NULL, 0, 1, NO_WORDS, NULL, "steps",                                                   \
      "go on from the latest checkpoint of the folder --out, or begin in an empty one")                  \
    X(NUMBER, checkpoint_minutes, "checkpoint-minutes", "M", 0, 1e6, NO_WORDS, NULL, "steps",                          \
      "write a checkpoint, about a second a GB, when M minutes are over; 0: only where the run stops")                 \
    X(COUNT, checkpoint_every, "checkpoint-every", "N", 1, TRAINER_MOST_STEPS, NO_WORDS, NULL, "steps",                \
      "write one every N steps instead; no checkpoint changes a bit of the result")                                    \
    X(COUNT, keep, "keep", "N", 1, TRAINER_MOST_STEPS, NO_WORDS, NULL, "steps",                                        \
      "the latest checkpoints, older ones are removed")                                                                \
    X(COUNT, keep_every, "keep-every", "N", 1, TRAINER_MOST_STEPS, NO_WORDS, NULL, "steps",                            \
      "write checkpoints of multiples of step N as well, and keep them: audits start there")                                                                \
    X(COUNT, stop_at, "stop-at", "N", 1, TRAINER_MOST_STEPS, NO_WORDS, NULL, "steps",                                  \
      "write a checkpoint after step N and stop; the schedule stays that of all steps")                                \
    X(COUNT, skip_bad, "bad-steps", "N", 0, TRAINER_MOST_STEPS, NO_WORDS, NULL, "steps",                               \
      "pass over up to N steps whose loss or gradient is not finite")                                                  \
    X(CHOICE, save_dtype, "save-dtype", "NAME", 0, DEBERTA_FLOAT16, WORDS("f32", "f16"), NULL, "steps",                \
      "of the trained model: f32 or f16")

#define TRAINER_MEMORY(X)                                                                                              \
    X(COUNT, micro_tokens, "micro-tokens", "N", 1, TRAINER_MOST_TOKENS, NO_WORDS, NULL, NULL,                          \
      "compute so many tokens of a step at a time, whole shards: less memory, same bits")                              \
    X(SWITCH, recompute, "recompute", NULL, 0, 1, NO_WORDS, NULL, NULL,                                                \
      "keep only the inputs of layers, each of which runs twice: less memory, same bits")

/* The rows keep the original order of recipes, because a recipe is also compared as text. */
#define TRAINER_OPTIONS(X)                                                                                             \
    TRAINER_TASK(X) TRAINER_RTD(X) TRAINER_SIFT(X) TRAINER_PAIR(X) TRAINER_SUMS(X) TRAINER_STEPS(X)                    \
    TRAINER_UPDATES(X) TRAINER_SEED(X) TRAINER_MASKING(X) TRAINER_BATCHES(X) TRAINER_LENGTHS(X) TRAINER_TEXTS(X)       \
    TRAINER_EVALUATION(X) TRAINER_PATIENCE(X) TRAINER_HEAD(X) TRAINER_GENERATOR(X) TRAINER_FILES(X)                    \
    TRAINER_DROPOUT(X) TRAINER_RUN(X) TRAINER_MEMORY(X)

/* clang-format on */

/* Fails if an option is outside its range. */
deberta_status trainer_options_check(const deberta_trainer_options *options, deberta_error *err);
/* Sets the members of a recipe for which the list has keys; *lost as in json_add_member. */
void trainer_options_describe(json_t *recipe, const deberta_trainer_options *options, bool *lost);
/* Returns the command line's name of the option with this key, or the key itself. */
const char *trainer_option_of_key(const char *key);
