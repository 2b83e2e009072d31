/* The tables of `deberta train` and `deberta finetune`, in the order in which they matter.
 *
 * SPDX-License-Identifier: MIT */
#include "program/train/train_options.h"

#define MOST_STEPS    1000000000
#define MOST_BETA     0.999999 /* a moment that forgets nothing has a correction of 0 */
#define LEAST_EPSILON 1e-30    /* less may be 0 in float32 */
#define MOST_TOKENS   16777216

/* The library checks them again: what it accepts stands in include/deberta.h. */
enum { MOST_SHARDS = 64, MOST_NGRAM = 16 };

static const char *const head_words[] = {"auto", "mlm", "mlm_emd", NULL};
static const char *const optimizer_words[] = {"adamw", "xadam", NULL};
static const char *const sharing_words[] = {"gdes", "es", "none", NULL};
static const char *const masking_words[] = {"ngram", "uniform", NULL};
static const char *const dtype_words[] = {"f32", "f16", NULL};
static const char *const sequence_words[] = {"documents", "lines", NULL};
static const char *const perturb_words[] = {"normalized", "raw", NULL};
static const char *const schedule_words[] = {"linear", "microsoft", "constant", NULL};

/* -------------------------------------------------------------------------------------------------------------- data */

static const option text_rows[] = {
    {"file", 'f', "FILE", "a run on these texts, one a line, documents between empty lines; may be repeated",
     TEXTS_AT(train_options, texts), .needs = "steps", .not_with = "one-batch batches"},
    {"eval", 0, "FILE", "held-out texts, whose loss is logged at the end; may be repeated",
     TEXTS_AT(train_options, held_out), .needs = "file"},
    {"eval-every", 0, "N", "log it every N steps as well", SIZE_AT(train_options, trainer.eval_every, 1, MOST_STEPS),
     .needs = "eval"},
    {"sequence-tokens", 0, "N",
     "length of sequences with their frame (default 512, or what the model has places for); short ones are fast",
     SIZE_AT(train_options, trainer.sequence_tokens, 3, MOST_TOKENS), .needs = "file"},
    {"batch-sequences", 0, "N", "sequences of a step (default 16, if there is no --batch-tokens)",
     SIZE_AT(train_options, trainer.batch_sequences, 1, MOST_TOKENS), .needs = "file"},
    {"batch-tokens", 0, "N", "a step ends before the sequence that would exceed N tokens",
     SIZE_AT(train_options, trainer.batch_tokens, 3, MOST_TOKENS), .needs = "file"},
    {"sequences", 0, "OF",
     "documents (default): their lines are joined, then cut; lines: each is one, what does not fit left out",
     CHOICE_AT(train_options, by_line, sequence_words), .needs = "file"},
    {"mask-probability", 0, "P", "share of the tokens that are to be guessed (default 0.15)",
     NUMBER_AT(train_options, trainer.mask_probability, 0.01, 0.9), .needs = "file"},
    {.name = NULL},
};

#define LABELLED_ROWS(DATA_HELP)                                                                                       \
    {                                                                                                                  \
        {"examples",                                                                                                   \
         0,                                                                                                            \
         "FILE",                                                                                                       \
         DATA_HELP,                                                                                                    \
         TEXTS_AT(train_options, data),                                                                                \
         .needs = "steps",                                                                                             \
         .not_with = "one-batch batches"},                                                                             \
            {"eval",                                                                                                   \
             0,                                                                                                        \
             "FILE",                                                                                                   \
             "held-out data, measured at the end; the best model is kept in best/; may be repeated",                   \
             TEXTS_AT(train_options, held_out),                                                                        \
             .needs = "examples"},                                                                                     \
            {"eval-every",                                                                                             \
             0,                                                                                                        \
             "N",                                                                                                      \
             "measure it every N steps as well",                                                                       \
             SIZE_AT(train_options, trainer.eval_every, 1, MOST_STEPS),                                                \
             .needs = "eval"},                                                                                         \
            {"patience",                                                                                               \
             0,                                                                                                        \
             "N",                                                                                                      \
             "end the run when N measurements in a row were no better than the best",                                  \
             SIZE_AT(train_options, trainer.patience, 1, MOST_STEPS),                                                  \
             .needs = "eval-every"},                                                                                   \
            {"sequence-tokens",                                                                                        \
             0,                                                                                                        \
             "N",                                                                                                      \
             "longer texts are refused (default 512, or what the model has places for)",                               \
             SIZE_AT(train_options, trainer.sequence_tokens, 3, MOST_TOKENS),                                          \
             .needs = "examples"},                                                                                     \
            {"cut", 0, NULL, "cut longer texts instead", FLAG_AT(train_options, cut), .needs = "examples"},            \
            {"batch-sequences",                                                                                        \
             0,                                                                                                        \
             "N",                                                                                                      \
             "texts, or questions, of a step (default 16, if there is no --batch-tokens)",                             \
             SIZE_AT(train_options, trainer.batch_sequences, 1, MOST_TOKENS),                                          \
             .needs = "examples"},                                                                                     \
            {"batch-tokens",                                                                                           \
             0,                                                                                                        \
             "N",                                                                                                      \
             "a step ends before the text that would exceed N tokens",                                                 \
             SIZE_AT(train_options, trainer.batch_tokens, 3, MOST_TOKENS),                                             \
             .needs = "examples"},                                                                                     \
            {.name = NULL},                                                                                            \
    }

#define TEXT_DATA "a run on lines of label, tab, text, perhaps tab, second text, or objects (.jsonl); may be repeated"

static const option named_rows[] = LABELLED_ROWS(TEXT_DATA),
                    word_rows[] = LABELLED_ROWS(
                        "a run on lines of word, tab, label, an empty one between sentences, or objects (.jsonl)"),
                    choice_rows[] = LABELLED_ROWS(
                        "a run on lines of the right one's number, tab, text, and all choices behind tabs, or objects"),
                    question_rows[] = LABELLED_ROWS(
                        "a run on objects (.jsonl): question, context, text of the answer, start; may be repeated");

/* ------------------------------------------------------------------------------------------------------------- model */

#define MODEL_ROWS(LABELS_HELP)                                                                                         \
    {                                                                                                                   \
        {"new-head",                                                                                                    \
         0,                                                                                                             \
         NULL,                                                                                                          \
         "a head that begins anew; names of its labels are those in the data",                                          \
         FLAG_AT(train_options, new_head),                                                                              \
         .needs = "examples"},                                                                                          \
            {"labels", 0, "NAMES", LABELS_HELP, TEXT_AT(train_options, labels), .needs = "examples one-batch batches"}, \
            {.name = NULL},                                                                                             \
    }

static const option named_head_rows[] = MODEL_ROWS("a new head with these labels, or so many; 1: a regression"),
                    word_head_rows[] = MODEL_ROWS("a new head with these labels, or so many"),
                    choice_head_rows[] = MODEL_ROWS("1: a new head, a score for each choice"),
                    question_head_rows[] = MODEL_ROWS("2: a new head, of the first and the last token");

static const option mlm_model_rows[] = {
    {"config", 0, "FOLDER",
     "a new model in place of MODEL: a folder with config.json, for --file also a tokenizer, no weights",
     TEXT_AT(train_options, config), .needs = "file batches"},
    {"new-head", 0, NULL, "a head that begins anew, also where the model has none", FLAG_AT(train_options, new_head),
     .not_with = "config"},
    {"head", 0, "NAME", "mlm or mlm_emd; auto (default) is mlm_emd where the model has it",
     CHOICE_AT(train_options, trainer.head, head_words)},
    {.name = NULL},
};

static const option pair_rows[] = {
    {"generator", 0, "MODEL", "train this masked language model as well, whose draws are what is to be found out",
     TEXT_AT(train_options, trainer.generator)},
    {"new-head", 0, NULL, "a head that begins anew, also where MODEL has none", FLAG_AT(train_options, new_head)},
    {"head", 0, "NAME", "of the generator: mlm or mlm_emd; auto (default) is mlm_emd where the model has it",
     CHOICE_AT(train_options, trainer.head, head_words), .needs = "generator"},
    {.name = NULL},
};

/* --------------------------------------------------------------------------------------------------------------- run */

static const option run_rows[] = {
    {"steps", 0, "N", "updates of the run; the trained model and log.jsonl go to the folder --out",
     SIZE_AT(train_options, trainer.steps, 1, MOST_STEPS), .needs = "file examples batches"},
    {"resume", 0, NULL, "go on from the latest checkpoint of the folder --out, or begin again where there is none yet",
     FLAG_AT(train_options, resume), .needs = "steps"},
    {"checkpoint-minutes", 0, "M",
     "write a checkpoint, about a second a GB, when M minutes are over (default 10; 0: only where the run stops)",
     NUMBER_AT(train_options, trainer.checkpoint_minutes, 0, 1e6), .needs = "steps"},
    {"checkpoint-every", 0, "N", "write one every N steps instead; no checkpoint changes a bit of the result",
     SIZE_AT(train_options, trainer.checkpoint_every, 1, MOST_STEPS), .needs = "steps"},
    {"keep", 0, "N", "the latest checkpoints, older ones are removed (default 2)",
     SIZE_AT(train_options, trainer.keep, 1, MOST_STEPS), .needs = "steps"},
    {"stop-at", 0, "N", "write a checkpoint after step N and stop; the schedule stays that of all steps",
     SIZE_AT(train_options, trainer.stop_at, 1, MOST_STEPS), .needs = "steps"},
    {"bad-steps", 0, "N", "pass over up to N steps whose loss or gradient is not finite (default 0)",
     SIZE_AT(train_options, trainer.skip_bad, 0, MOST_STEPS), .needs = "steps"},
    {"save-dtype", 0, "NAME", "of the trained model: f32 (default) or f16",
     CHOICE_AT(train_options, trainer.save_dtype, dtype_words), .needs = "steps"},
    {"freeze", 0, "WHAT",
     "leave as it is: embeddings, encoder, layers:0-3, or a tensor's name with * and ?; may be repeated",
     TEXTS_AT(train_options, freeze)},
    {.name = NULL},
};

static const option optimizer_rows[] = {
    {"learning-rate", 0, "RATE", "at its peak (default 1e-4)", NUMBER_AT(train_options, trainer.learning_rate, 0, 1e6)},
    {"warmup", 0, "N", "steps in which the rate rises from 0 (default 0)",
     SIZE_AT(train_options, trainer.warmup, 0, MOST_STEPS)},
    {"dropout", 0, "P", "dropped at all places (default: at each what config.json says)",
     NUMBER_AT(train_options, trainer.dropout, 0, 0.99)},
    {"weight-decay", 0, "D", "of all but biases and norms (default 0.01)",
     NUMBER_AT(train_options, trainer.weight_decay, 0, 1)},
    {"clip", 0, "NORM", "largest norm of the gradients (default 1; 0: any)",
     NUMBER_AT(train_options, trainer.clip, 0, 1e30)},
    {"schedule", 0, "NAME", "linear (default), microsoft or constant",
     CHOICE_AT(train_options, trainer.schedule, schedule_words)},
    {"optimizer", 0, "NAME", "adamw (default) or xadam, Microsoft's",
     CHOICE_AT(train_options, trainer.optimizer, optimizer_words)},
    {"layer-decay", 0, "D", "a layer's rate is D times that of the layer above (default 1)",
     NUMBER_AT(train_options, trainer.layer_decay, 0, 1)},
    {.name = NULL},
};

static const option memory_rows[] = {
    {"micro-tokens", 0, "N", "compute so many tokens of a step at a time, whole shards: less memory, same bits",
     SIZE_AT(train_options, trainer.micro_tokens, 1, MOST_TOKENS)},
    {"recompute", 0, NULL, "keep only the inputs of layers, each of which runs twice: less memory, same bits",
     FLAG_AT(train_options, recompute)},
    {.name = NULL},
};

/* ----------------------------------------------------------------------------------------------------------- experts */

/* Batches that others have made, and what hardly anybody changes. */
#define EXPERT_ROWS                                                                                                    \
    {"one-batch",                                                                                                      \
     0,                                                                                                                \
     "FILE",                                                                                                           \
     "one step: ids and labels, safetensors; gradients, no update",                                                    \
     TEXT_AT(train_options, trainer.batch),                                                                            \
     .not_with = "batches steps"},                                                                                     \
        {"gradients",                                                                                                  \
         0,                                                                                                            \
         "OUT",                                                                                                        \
         "write the loss and all gradients, safetensors",                                                              \
         TEXT_AT(train_options, gradients),                                                                            \
         .needs = "one-batch",                                                                                         \
         .role = OPTION_OUTPUT},                                                                                       \
        {"batches",                                                                                                    \
         0,                                                                                                            \
         "FILE",                                                                                                       \
         "a run: the same with a leading axis of steps, used round and round",                                         \
         TEXT_AT(train_options, trainer.batches),                                                                      \
         .needs = "steps"},                                                                                            \
        {"virtual-shards", 0, "N", "parts that sums over tokens are cut into, a power of two (default 16)",            \
         SIZE_AT(train_options, trainer.shards, 1, MOST_SHARDS)},                                                      \
        {"beta1", 0, "B", "decay of the first moment, below 1 (default 0.9)",                                          \
         NUMBER_AT(train_options, trainer.beta1, 0, MOST_BETA)},                                                       \
        {"beta2", 0, "B", "decay of the second moment, below 1 (default 0.999)",                                       \
         NUMBER_AT(train_options, trainer.beta2, 0, MOST_BETA)},                                                       \
        {"epsilon", 0, "E", "added to the root of the second moment, above 0 (default 1e-6)",                          \
         NUMBER_AT(train_options, trainer.epsilon, LEAST_EPSILON, 1)},                                                 \
    {                                                                                                                  \
        .name = NULL                                                                                                   \
    }

#define MASKING_ROWS                                                                                                   \
    {"masking",                                                                                                        \
     0,                                                                                                                \
     "NAME",                                                                                                           \
     "ngram (default), Microsoft's, or uniform",                                                                       \
     CHOICE_AT(train_options, trainer.masking, masking_words),                                                         \
     .needs = "file"},                                                                                                 \
    {                                                                                                                  \
        "max-ngram", 0, "N", "words of the longest masked stretch (default 1: pieces, one by one)",                    \
            SIZE_AT(train_options, trainer.max_ngram, 1, MOST_NGRAM), .needs = "file"                                  \
    }

static const option mlm_expert_rows[] = {MASKING_ROWS, EXPERT_ROWS};

static const option pair_expert_rows[] = {
    {"rtd-weight", 0, "W", "of the discriminator's loss (default 50, as in the paper; Microsoft's program has 10)",
     NUMBER_AT(train_options, trainer.rtd_weight, 0, 1e9)},
    {"sharing", 0, "NAME",
     "tables of words and positions: gdes (default), the generator's + a difference; es, one; none",
     CHOICE_AT(train_options, trainer.sharing, sharing_words), .needs = "generator"},
    {"coupled", 0, NULL, "both losses at the same weights; without it the generator's update comes first",
     FLAG_AT(train_options, coupled), .needs = "generator"},
    EXPERT_ROWS};

static const option class_expert_rows[] = {
    {"sift", 0, "W", "scale-invariant fine-tuning: weight of the distance to a moved input",
     NUMBER_AT(train_options, trainer.sift_weight, 0, 1e9)},
    {"perturb", 0, "HOW", "what is moved: normalized embeddings (default), or raw, as they are",
     CHOICE_AT(train_options, perturb, perturb_words), .needs = "sift"},
    EXPERT_ROWS};

static const option question_expert_rows[] = {EXPERT_ROWS};

/* ------------------------------------------------------------------------------------------------------------ groups */

#define TRAIN_GROUPS(DATA, MODEL_TITLE, MODEL, EXPERTS)                                                                \
    {                                                                                                                  \
        {DATA, 0, "data"}, {run_rows, 0, "run"}, {MODEL, 0, MODEL_TITLE}, {optimizer_rows, 0, "optimiser"},            \
            {memory_rows, 0, "memory"}, {EXPERTS, 0, "for experts"}, {NULL, 0, NULL},                                  \
    }

const option_group train_mlm_groups[] = TRAIN_GROUPS(text_rows, "model", mlm_model_rows, mlm_expert_rows);
const option_group train_rtd_groups[] = TRAIN_GROUPS(text_rows, "models", pair_rows, pair_expert_rows);
const option_group finetune_sequence_groups[] = TRAIN_GROUPS(named_rows, "head", named_head_rows, class_expert_rows);
const option_group finetune_token_groups[] = TRAIN_GROUPS(word_rows, "head", word_head_rows, class_expert_rows);
const option_group finetune_choice_groups[] = TRAIN_GROUPS(choice_rows, "head", choice_head_rows, class_expert_rows);
const option_group finetune_qa_groups[] = TRAIN_GROUPS(question_rows, "head", question_head_rows, question_expert_rows);
