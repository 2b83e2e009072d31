/* Defines the tables of `deberta train` and `deberta finetune`: rows made of the trainer's list, and rows of options
 * outside the library, in the order of importance.
 *
 * SPDX-License-Identifier: MIT */
#include "program/train/train_options.h"
#include "train/run/trainer_options.h"

#define AT_COUNT(member, low_, high_, words)  SIZE_AT(train_options, trainer.member, low_, high_)
#define AT_NUMBER(member, low_, high_, words) NUMBER_AT(train_options, trainer.member, low_, high_)
#define AT_CHOICE(member, low_, high_, words) CHOICE_AT(train_options, trainer.member, words)
#define AT_SWITCH(member, low_, high_, words) SWITCH_AT(train_options, trainer.member)
#define AT_PATH(member, low_, high_, words)   TEXT_AT(train_options, trainer.member)

#define ROW(type_, member_, name_, value_, low_, high_, words_, key_, needs_, help_)                                   \
    {name_, 0, value_, help_, AT_##type_(member_, low_, high_, words_), .needs = needs_, .tells_default = true},

#define NO_MORE                                                                                                        \
    {                                                                                                                  \
        .name = NULL                                                                                                   \
    }

/* clang-format off: rows that are macros are taken for a long expression */

/* -------------------------------------------------------------------------------------------------------------- data */

#define EVAL_ROW                                                                                                       \
    {                                                                                                                  \
        "eval", 0, "FILE",                                                                                             \
            "held-out data, measured at the end; of labelled data the best model is in best/; may be repeated",        \
            TEXTS_AT(train_options, held_out), .needs = "file examples"                                                \
    }

static const option text_rows[] = {
    {"file", 'f', "FILE",
     "a run on these texts, one a line, documents between empty lines, or objects (.jsonl); may be repeated",
     TEXTS_AT(train_options, texts), .needs = "steps", .not_with = "one-batch batches"},
    EVAL_ROW,
    TRAINER_EVALUATION(ROW) TRAINER_LENGTHS(ROW) TRAINER_BATCHES(ROW) TRAINER_TEXTS(ROW) TRAINER_MASKING(ROW) NO_MORE,
};

/* CUT_ROW is for all but questions, whose long contexts become windows. */
#define CUT_ROW {"cut", 0, NULL, "cut longer examples instead", FLAG_AT(train_options, cut), .needs = "examples"},
#define LABELLED_ROWS(EXAMPLES_HELP, ...)                                                                              \
    {                                                                                                                  \
        {"examples",                                                                                                   \
         0,                                                                                                            \
         "FILE",                                                                                                       \
         EXAMPLES_HELP,                                                                                                \
         TEXTS_AT(train_options, data),                                                                                \
         .needs = "steps",                                                                                             \
         .not_with = "one-batch batches"},                                                                             \
            EVAL_ROW,                                                                                                  \
            TRAINER_EVALUATION(ROW) TRAINER_PATIENCE(ROW) TRAINER_LENGTHS(ROW) __VA_ARGS__ TRAINER_BATCHES(ROW)        \
                NO_MORE,                                                                                               \
    }

#define TEXT_DATA "a run on lines of label, tab, text, perhaps tab, second text, or objects (.jsonl); may be repeated"

static const option named_rows[] = LABELLED_ROWS(TEXT_DATA, CUT_ROW),
                    word_rows[] = LABELLED_ROWS(
                        "a run on lines of word, tab, label, an empty one between sentences, or objects (.jsonl)",
                        CUT_ROW),
                    choice_rows[] = LABELLED_ROWS(
                        "a run on lines of the right one's number, tab, text, and all choices after tabs, or objects",
                        CUT_ROW),
                    question_rows[] = LABELLED_ROWS(
                        "a run on objects (.jsonl): question, context, text of the answer, start; may be repeated", );

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
            NO_MORE,                                                                                                    \
    }

static const option named_head_rows[] = MODEL_ROWS("a new head with these labels, or so many; 1: a regression"),
                    word_head_rows[] = MODEL_ROWS("a new head with these labels, or so many"),
                    choice_head_rows[] = MODEL_ROWS("1: a new head, a score for each choice"),
                    question_head_rows[] = MODEL_ROWS("2: a new head, of the first and the last token");

#define NEW_HEAD_ROW                                                                                                   \
    {                                                                                                                  \
        "new-head", 0, NULL, "a head that begins anew, also where the model has none",                                 \
            FLAG_AT(train_options, new_head), .not_with = "config"                                                     \
    }

static const option mlm_model_rows[] = {
    {"config", 0, "FOLDER",
     "a new model in place of MODEL: a folder with config.json, for --file also a tokenizer, no weights",
     TEXT_AT(train_options, config), .needs = "file batches"},
    NEW_HEAD_ROW,
    TRAINER_HEAD(ROW) NO_MORE,
};

static const option pair_rows[] = {
    TRAINER_GENERATOR(ROW) NEW_HEAD_ROW,
    TRAINER_HEAD(ROW) TRAINER_RTD(ROW) TRAINER_PAIR(ROW) NO_MORE,
};

/* ------------------------------------------------------------------------------------------------- run, updates, memory */

static const option run_rows[] = {
    TRAINER_STEPS(ROW) TRAINER_RUN(ROW){
        "freeze", 0, "WHAT",
        "leave as it is: embeddings, encoder, layers:0-3, or a tensor's name with * and ?; may be repeated",
        TEXTS_AT(train_options, freeze)},
    {"chain", 0, NULL,
     "record digests of the training's state in chain.jsonl, which `verify --audit` compares with steps executed again",
     FLAG_AT(train_options, chain), .needs = "steps"},
    {"chain-every", 0, "N", "steps between its records", SIZE_AT(train_options, chain_every, 1, TRAINER_MOST_STEPS),
     .needs = "chain", .tells_default = true},
    {"drop", 0, "TENSOR", "leave out of the model: a tensor's name with * and ?; may be repeated",
     TEXTS_AT(train_options, drop)},
    NO_MORE,
};

static const option update_rows[] = {TRAINER_UPDATES(ROW) TRAINER_DROPOUT(ROW) NO_MORE};
static const option memory_rows[] = {TRAINER_MEMORY(ROW) NO_MORE};

/* Rows for batches made elsewhere, and for rarely used options. */
#define EXPERT_ROWS                                                                                                    \
    TRAINER_FILES(ROW){"gradients",                                                                                    \
                       0,                                                                                              \
                       "OUT",                                                                                          \
                       "write the loss and all gradients, safetensors",                                                \
                       TEXT_AT(train_options, gradients),                                                              \
                       .needs = "one-batch",                                                                           \
                       .role = OPTION_OUTPUT},                                                                         \
        TRAINER_SUMS(ROW) NO_MORE

static const option expert_rows[] = {EXPERT_ROWS}, class_expert_rows[] = {TRAINER_SIFT(ROW) EXPERT_ROWS};

/* clang-format on */

/* ------------------------------------------------------------------------------------------------------------ groups */

#define TRAIN_GROUPS(DATA, MODEL_TITLE, MODEL, EXPERTS)                                                                \
    {                                                                                                                  \
        {DATA, 0, "data"}, {run_rows, 0, "run"}, {MODEL, 0, MODEL_TITLE}, {update_rows, 0, "optimiser"},               \
            {memory_rows, 0, "memory"}, {EXPERTS, 0, "for experts"}, {NULL, 0, NULL},                                  \
    }

const option_group train_mlm_groups[] = TRAIN_GROUPS(text_rows, "model", mlm_model_rows, expert_rows);
const option_group train_rtd_groups[] = TRAIN_GROUPS(text_rows, "models", pair_rows, expert_rows);
const option_group finetune_sequence_groups[] = TRAIN_GROUPS(named_rows, "head", named_head_rows, class_expert_rows);
const option_group finetune_token_groups[] = TRAIN_GROUPS(word_rows, "head", word_head_rows, class_expert_rows);
const option_group finetune_choice_groups[] = TRAIN_GROUPS(choice_rows, "head", choice_head_rows, class_expert_rows);
const option_group finetune_qa_groups[] = TRAIN_GROUPS(question_rows, "head", question_head_rows, expert_rows);
