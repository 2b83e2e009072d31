/* SPDX-License-Identifier: MIT */
#include "cli/train/train_options.h"

#include <stdio.h>
#include <string.h>

#define MOST_STEPS  1000000000
#define MOST_BETA   0.999999 /* a moment that forgets nothing has a correction of 0 */
#define LEAST_EPSILON 1e-30   /* less may be 0 in float32 */
#define MOST_TOKENS 16777216

/* The library checks them again: what it accepts stands in include/deberta.h. */
enum { MOST_SHARDS = 64, MOST_NGRAM = 16, MOST_LAYERS = 256 };

static const char *const head_words[] = {"auto", "mlm", "mlm_emd", NULL};
static const char *const optimizer_words[] = {"adamw", "xadam", NULL};
static const char *const sharing_words[] = {"gdes", "es", "none", NULL};
static const char *const masking_words[] = {"ngram", "uniform", NULL};
static const char *const dtype_words[] = {"f32", "f16", NULL};
static const char *const sequence_words[] = {"documents", "lines", NULL};
static const char *const perturb_words[] = {"normalized", "raw", NULL};
static const char *const schedule_words[] = {"linear", "microsoft", "constant", NULL};

const train_options train_defaults = {
    .trainer = DEBERTA_TRAINER_DEFAULTS,
};

/* Rows that all tasks have: data, then the recipe of a run. */
#define TRAIN_OPTIONS(STEPS_NEED)                                                                                      \
    {"batch",                                                                                                          \
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
         .needs = "batch",                                                                                             \
         .role = OPTION_OUTPUT},                                                                                       \
        {"batches",                                                                                                    \
         0,                                                                                                            \
         "FILE",                                                                                                       \
         "a run: the same with a leading axis of steps, used round and round",                                         \
         TEXT_AT(train_options, trainer.batches),                                                                      \
         .needs = "steps"},                                                                                            \
        {"steps",                                                                                                      \
         0,                                                                                                            \
         "N",                                                                                                          \
         "updates of the run; the trained model and log.jsonl go to the folder --out",                                 \
         SIZE_AT(train_options, trainer.steps, 1, MOST_STEPS),                                                         \
         .needs = STEPS_NEED},                                                                                         \
        {"checkpoint-every",                                                                                           \
         0,                                                                                                            \
         "N",                                                                                                          \
         "steps after which a checkpoint is written (default: only where a run stops)",                                \
         SIZE_AT(train_options, trainer.checkpoint_every, 1, MOST_STEPS),                                              \
         .needs = "steps"},                                                                                            \
        {"keep",                                                                                                       \
         0,                                                                                                            \
         "N",                                                                                                          \
         "the latest checkpoints, older ones are removed (default 2)",                                                 \
         SIZE_AT(train_options, trainer.keep, 1, MOST_STEPS),                                                          \
         .needs = "steps"},                                                                                            \
        {"skip-bad",                                                                                                   \
         0,                                                                                                            \
         "N",                                                                                                          \
         "pass over up to N steps whose loss or gradient is not finite (default 0)",                                   \
         SIZE_AT(train_options, trainer.skip_bad, 0, MOST_STEPS),                                                      \
         .needs = "steps"},                                                                                            \
        {"stop-at",                                                                                                    \
         0,                                                                                                            \
         "N",                                                                                                          \
         "write a checkpoint after step N and stop; the schedule stays that of all steps",                             \
         SIZE_AT(train_options, trainer.stop_at, 1, MOST_STEPS),                                                       \
         .needs = "steps"},                                                                                            \
        {"resume",                                                                                                     \
         0,                                                                                                            \
         NULL,                                                                                                         \
         "go on from the latest checkpoint of the folder --out",                                                       \
         FLAG_AT(train_options, resume),                                                                               \
         .needs = "steps"},                                                                                            \
        {"save-dtype",                                                                                                 \
         0,                                                                                                            \
         "NAME",                                                                                                       \
         "of the trained model: f32 (default) or f16",                                                                 \
         CHOICE_AT(train_options, trainer.save_dtype, dtype_words),                                                    \
         .needs = "steps"},                                                                                            \
        {"freeze", 0, "WHAT",                                                                                          \
         "leave as it is: embeddings, encoder, layers:0-3, or a tensor's name with * and ?; may be repeated",          \
         TEXTS_AT(train_options, freeze)},                                                                             \
        {"dropout", 0, "P", "dropped at all places (default: at each what config.json says)",                          \
         NUMBER_AT(train_options, trainer.dropout, 0, 0.99)},                                                          \
        {"shards", 0, "N", "parts that sums over tokens are cut into, a power of two (default 16)",                    \
         SIZE_AT(train_options, trainer.shards, 1, MOST_SHARDS)},                                                      \
        {"micro-tokens", 0, "N", "compute so many tokens of a step at a time, whole shards: less memory, same bits",   \
         SIZE_AT(train_options, trainer.micro_tokens, 1, MOST_TOKENS)},                                                \
        {"recompute", 0, NULL, "keep only the inputs of layers, each of which runs twice: less memory, same bits",     \
         FLAG_AT(train_options, recompute)},                                                                           \
        {"optimizer", 0, "NAME", "adamw (default) or xadam, Microsoft's",                                              \
         CHOICE_AT(train_options, trainer.optimizer, optimizer_words)},                                                \
        {"learning-rate", 0, "RATE", "at its peak (default 1e-4)",                                                     \
         NUMBER_AT(train_options, trainer.learning_rate, 0, 1e6)},                                                     \
        {"schedule", 0, "NAME", "linear (default), microsoft or constant",                                             \
         CHOICE_AT(train_options, trainer.schedule, schedule_words)},                                                  \
        {"warmup", 0, "N", "steps in which the rate rises from 0 (default 0)",                                         \
         SIZE_AT(train_options, trainer.warmup, 0, MOST_STEPS)},                                                       \
        {"weight-decay", 0, "D", "of all but biases and norms (default 0.01)",                                         \
         NUMBER_AT(train_options, trainer.weight_decay, 0, 1)},                                                        \
        {"beta1", 0, "B", "decay of the first moment, below 1 (default 0.9)", NUMBER_AT(train_options, trainer.beta1, 0, MOST_BETA)},   \
        {"beta2", 0, "B", "decay of the second moment, below 1 (default 0.999)",                                                \
         NUMBER_AT(train_options, trainer.beta2, 0, MOST_BETA)},                                                               \
        {"epsilon", 0, "E", "added to the root of the second moment, above 0 (default 1e-6)",                                   \
         NUMBER_AT(train_options, trainer.epsilon, LEAST_EPSILON, 1)},                                                             \
        {"clip", 0, "NORM", "largest norm of the gradients (default 1; 0: any)",                                       \
         NUMBER_AT(train_options, trainer.clip, 0, 1e30)},                                                             \
    {                                                                                                                  \
        "layer-decay", 0, "D", "a layer's rate is D times that of the layer above (default 1)",                        \
            NUMBER_AT(train_options, trainer.layer_decay, 0, 1)                                                        \
    }

/* Of pre-training from texts. */
#define TEXT_OPTIONS                                                                                                   \
    {"text",                                                                                                           \
     0,                                                                                                                \
     "FILE",                                                                                                           \
     "a run on these texts, one a line, documents between empty lines; may be repeated",                               \
     TEXTS_AT(train_options, texts),                                                                                   \
     .needs = "steps",                                                                                                 \
     .not_with = "batch batches"},                                                                                     \
        {"sequence-tokens",                                                                                            \
         0,                                                                                                            \
         "N",                                                                                                          \
         "length of sequences with their frame (default 512, or what the model has places for)",                       \
         SIZE_AT(train_options, trainer.sequence_tokens, 3, MOST_TOKENS),                                              \
         .needs = "text"},                                                                                             \
        {"batch-sequences",                                                                                            \
         0,                                                                                                            \
         "N",                                                                                                          \
         "sequences of a step (default 16, if there is no --batch-tokens)",                                            \
         SIZE_AT(train_options, trainer.batch_sequences, 1, MOST_TOKENS),                                              \
         .needs = "text"},                                                                                             \
        {"batch-tokens",                                                                                               \
         0,                                                                                                            \
         "N",                                                                                                          \
         "a step ends before the sequence that would exceed N tokens",                                                 \
         SIZE_AT(train_options, trainer.batch_tokens, 3, MOST_TOKENS),                                                 \
         .needs = "text"},                                                                                             \
        {"sequences",                                                                                                  \
         0,                                                                                                            \
         "OF",                                                                                                         \
         "documents (default): their lines are joined, then cut; lines: each is one, what does not fit left out",      \
         CHOICE_AT(train_options, by_line, sequence_words),                                                            \
         .needs = "text"},                                                                                             \
        {"mask-probability",                                                                                           \
         0,                                                                                                            \
         "P",                                                                                                          \
         "share of the tokens that are to be guessed (default 0.15)",                                                  \
         NUMBER_AT(train_options, trainer.mask_probability, 0.01, 0.9),                                                \
         .needs = "text"},                                                                                             \
        {"eval",                                                                                                       \
         0,                                                                                                            \
         "FILE",                                                                                                       \
         "held-out texts, whose loss is logged at the end; may be repeated",                                           \
         TEXTS_AT(train_options, held_out),                                                                            \
         .needs = "text"},                                                                                             \
    {                                                                                                                  \
        "eval-every", 0, "N", "log it every N steps as well",                                                          \
            SIZE_AT(train_options, trainer.eval_every, 1, MOST_STEPS), .needs = "eval"                                 \
    }

/* Rows of labelled data. */
#define FINETUNE_OPTIONS(DATA_HELP, LABELS_HELP)                                                                       \
    {"data", 0, "FILE", DATA_HELP, TEXTS_AT(train_options, data), .needs = "steps", .not_with = "batch batches"},      \
        {"eval",                                                                                                       \
         0,                                                                                                            \
         "FILE",                                                                                                       \
         "held-out data, measured at the end; the best model is kept in best/; may be repeated",                       \
         TEXTS_AT(train_options, held_out),                                                                            \
         .needs = "data"},                                                                                             \
        {"eval-every",                                                                                                 \
         0,                                                                                                            \
         "N",                                                                                                          \
         "measure it every N steps as well",                                                                           \
         SIZE_AT(train_options, trainer.eval_every, 1, MOST_STEPS),                                                    \
         .needs = "eval"},                                                                                             \
        {"patience",                                                                                                   \
         0,                                                                                                            \
         "N",                                                                                                          \
         "end the run when N measurements in a row were no better than the best",                                      \
         SIZE_AT(train_options, trainer.patience, 1, MOST_STEPS),                                                      \
         .needs = "eval-every"},                                                                                       \
        {"new-head",                                                                                                   \
         0,                                                                                                            \
         NULL,                                                                                                         \
         "a head that begins anew; names of its labels are those in the data",                                         \
         FLAG_AT(train_options, new_head),                                                                             \
         .needs = "data"},                                                                                             \
        {"sequence-tokens",                                                                                            \
         0,                                                                                                            \
         "N",                                                                                                          \
         "longer texts are refused (default 512, or what the model has places for)",                                   \
         SIZE_AT(train_options, trainer.sequence_tokens, 3, MOST_TOKENS),                                              \
         .needs = "data"},                                                                                             \
        {"cut", 0, NULL, "cut longer texts instead", FLAG_AT(train_options, cut), .needs = "data"},                    \
        {"batch-sequences",                                                                                            \
         0,                                                                                                            \
         "N",                                                                                                          \
         "texts, or questions, of a step (default 16, if there is no --batch-tokens)",                                 \
         SIZE_AT(train_options, trainer.batch_sequences, 1, MOST_TOKENS),                                              \
         .needs = "data"},                                                                                             \
        {"batch-tokens",                                                                                               \
         0,                                                                                                            \
         "N",                                                                                                          \
         "a step ends before the text that would exceed N tokens",                                                     \
         SIZE_AT(train_options, trainer.batch_tokens, 3, MOST_TOKENS),                                                 \
         .needs = "data"},                                                                                             \
    {                                                                                                                  \
        "labels", 0, "NAMES", LABELS_HELP, TEXT_AT(train_options, labels), .needs = "data batch batches"               \
    }

#define SIFT_ROWS                                                                                                      \
    {"sift", 0, "W", "scale-invariant fine-tuning: weight of the distance to a moved input",                           \
     NUMBER_AT(train_options, trainer.sift_weight, 0, 1e9)},                                                           \
    {                                                                                                                  \
        "perturb", 0, "HOW", "what is moved: normalized embeddings (default), or raw, as they are",                    \
            CHOICE_AT(train_options, perturb, perturb_words), .needs = "sift"                                          \
    }
#define TEXT_DATA "a run on lines of label, tab, text, perhaps tab, second text, or objects (.jsonl); may be repeated"

const option finetune_named_options_table[] = {
    FINETUNE_OPTIONS(TEXT_DATA, "a new head with these labels, or so many; 1: a regression"),
    SIFT_ROWS,
    TRAIN_OPTIONS("batches data"),
    {.name = NULL},
};

const option finetune_token_options_table[] = {
    FINETUNE_OPTIONS("a run on lines of word, tab, label, an empty one between sentences, or objects (.jsonl)",
                     "a new head with these labels, or so many"),
    SIFT_ROWS,
    TRAIN_OPTIONS("batches data"),
    {.name = NULL},
};

const option finetune_choice_options_table[] = {
    FINETUNE_OPTIONS("a run on lines of the right one's number, tab, text, and all choices behind tabs, or objects",
                     "1: a new head, a score for each choice"),
    SIFT_ROWS,
    TRAIN_OPTIONS("batches data"),
    {.name = NULL},
};

const option finetune_qa_options_table[] = {
    FINETUNE_OPTIONS("a run on objects (.jsonl): question, context, text of the answer, start; may be repeated",
                     "2: a new head, of the first and the last token"),
    TRAIN_OPTIONS("batches data"),
    {.name = NULL},
};

const option train_mlm_options_table[] = {
    {"config", 0, "FOLDER",
     "a new model in place of MODEL: a folder with config.json, for --text also a tokenizer, no weights",
     TEXT_AT(train_options, config), .needs = "text batches"},
    {"new-head", 0, NULL, "a head that begins anew, also where the model has none", FLAG_AT(train_options, new_head),
     .not_with = "config"},
    {"head", 0, "NAME", "mlm or mlm_emd; auto (default) is mlm_emd where the model has it",
     CHOICE_AT(train_options, trainer.head, head_words)},
    TEXT_OPTIONS,
    {"masking", 0, "NAME", "ngram (default), Microsoft's, or uniform",
     CHOICE_AT(train_options, trainer.masking, masking_words), .needs = "text"},
    {"max-ngram", 0, "N", "words of the longest masked stretch (default 1: pieces, one by one)",
     SIZE_AT(train_options, trainer.max_ngram, 1, MOST_NGRAM), .needs = "text"},
    TRAIN_OPTIONS("batches text"),
    {.name = NULL},
};

const option train_rtd_options_table[] = {
    {"generator", 0, "MODEL", "train this masked language model as well, whose draws are what is to be found out",
     TEXT_AT(train_options, trainer.generator)},
    {"head", 0, "NAME", "of the generator: mlm or mlm_emd; auto (default) is mlm_emd where the model has it",
     CHOICE_AT(train_options, trainer.head, head_words), .needs = "generator"},
    {"sharing", 0, "NAME",
     "tables of words and positions: gdes (default), the generator's + a difference; es, one; none",
     CHOICE_AT(train_options, trainer.sharing, sharing_words), .needs = "generator"},
    {"coupled", 0, NULL, "both losses at the same weights; without it the generator's update comes first",
     FLAG_AT(train_options, coupled), .needs = "generator"},
    {"new-head", 0, NULL, "a head that begins anew, also where MODEL has none", FLAG_AT(train_options, new_head)},
    {"rtd-weight", 0, "W", "of the loss (default 50)", NUMBER_AT(train_options, trainer.rtd_weight, 0, 1e9)},
    TEXT_OPTIONS,
    TRAIN_OPTIONS("batches text"),
    {.name = NULL},
};

int train_options_check(const train_options *o)
{
    const deberta_trainer_options *t = &o->trainer;
    if (!o->config == !o->common.argument_count)
        return say_usage(&o->common, o->config ? "expected MODEL or --config FOLDER, found both"
                                               : "expected MODEL, or --config FOLDER for a new one");
    if (!t->batch && !train_runs(o))
        return say_usage(&o->common, "expected --batch FILE, or %s --steps N --out FOLDER",
                         option_exists(&o->common, &o->data) ? "--data FILE" : "--batches FILE");
    if (o->texts.count && !t->generator && option_exists(&o->common, &t->generator))
        return say_usage(&o->common, "--text needs --generator MODEL, whose draws are what is to be found out");
    if (o->labels && o->new_head)
        return option_wrong(&o->common, &o->labels, "this makes a new head already: leave --new-head out");
    if (train_runs(o) && !options_out(&o->common)) return say_usage(&o->common, "--steps needs --out FOLDER");
    if (t->shards & (t->shards - 1)) return option_wrong(&o->common, &t->shards, "%zu is no power of two", t->shards);
    if (t->masking == DEBERTA_MASKING_UNIFORM && option_given(&o->common, &t->max_ngram))
        return option_wrong(&o->common, &t->max_ngram, "uniform masking has no n-grams");
    if (t->generator && t->sharing == DEBERTA_SHARING_ES && !o->coupled)
        return option_wrong(&o->common, &t->sharing, "es, one table for both losses, needs --coupled");
    if (t->warmup > 0 && t->warmup > t->steps)
        return option_wrong(&o->common, &t->warmup, "%zu steps of warm-up, but %zu steps", t->warmup, t->steps);
    return EXIT_OK;
}

/* "layers:2-4" as one pattern a layer; "embeddings" and "encoder" as all of them; anything else as it is. */
static void add_freeze(const train_options *o, const char *text, const char **patterns, size_t *count)
{
    size_t first = 0, last = 0;
    int end = 0;
    if (sscanf(text, "layers:%zu-%zu%n", &first, &last, &end) != 2 || text[end]) {
        end = 0;
        last = sscanf(text, "layers:%zu%n", &first, &end) == 1 && !text[end] ? first : 0;
        if (!end || text[end]) end = 0;
    }
    if (strcmp(text, "embeddings") == 0 || strcmp(text, "encoder") == 0)
        patterns[(*count)++] = options_text(&o->common, "%s.*", text);
    else if (!end)
        patterns[(*count)++] = text;
    for (size_t layer = first; end && layer <= last && layer - first < MOST_LAYERS; layer++)
        patterns[(*count)++] = options_text(&o->common, "encoder.layer.%zu.*", layer);
}

static void take_freeze(const train_options *o, deberta_trainer_options *t)
{
    const char **patterns = options_take(&o->common, o->freeze.count * MOST_LAYERS + 1, sizeof *patterns);
    for (size_t i = 0; i < o->freeze.count; i++) add_freeze(o, o->freeze.items[i], patterns, &t->freeze_count);
    t->freeze = patterns;
}

deberta_trainer_options train_trainer_options(const train_options *o, deberta_training_task task)
{
    deberta_trainer_options t = o->trainer;
    t.task = task;
    t.model = o->config ? o->config : o->common.arguments[0];
    t.begin = o->config != NULL;
    t.perturb_raw = o->perturb;
    t.by_line = o->by_line;
    if (o->new_head) t.new_labels = 1; /* of labelled data so many as there are */
    take_freeze(o, &t);
    t.texts = o->texts.items;
    t.text_count = o->texts.count;
    t.held_out = o->held_out.items;
    t.held_out_count = o->held_out.count;
    t.reference = (deberta_reference)o->common.reference;
    t.seed = option_given(&o->common, &o->common.seed) ? o->common.seed : 0;
    t.folder = train_runs(o) ? options_out(&o->common) : NULL;
    t.resume = o->resume;
    t.coupled = o->coupled;
    t.recompute = o->recompute;
    t.isa = o->common.isa;
    t.threads = o->common.threads;
    t.memory_limit_bytes = o->common.memory_limit_bytes;
    return t;
}
