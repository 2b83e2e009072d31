/* Declares the steps that commands over texts share: open model and tokenizer, read texts, encode them in batches,
 * answer in order.
 *
 * A command declares its needs and two functions: one looks at a tokenized text (and may refuse it), the other
 * describes the logits of a text, as text or, with --json, as one object a line. A text that could not be answered
 * has a line with "error" there. It is reported with its place, the others continue, and the exit code is EXIT_INPUT.
 *
 * A command that writes rows of a corpus gives `keep` and `write` instead. Its rows can be those of a shard, or
 * resume an interrupted run; in a shard, lines can do so too.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/corpus/corpus_shard.h"
#include "program/frame/input/text_batches.h"
#include "program/frame/progress.h"
#include "program/frame/text_output.h"

typedef struct task_text {
    text_record record;
    deberta_tokens *tokens;
    json_t *answer; /* with --json: the answer as an object */
    FILE *out;      /* without --json: stream into `shown` for the answer, opened by task_text_out */
    char *shown;
    size_t shown_bytes;
    size_t label; /* free for the command */
    bool skipped; /* true: the split function found that the line is no text */
} task_text;

typedef struct task_run {
    const common_options *options;
    text_batches batches;
    text_stream stream;
    const char *out; /* path of the answers: --out, unless `begin` changes it */
    text_output output;
    corpus_shard shard;       /* shard, if one is asked for */
    bool to_rows;             /* true: answers are rows of a corpus or shard, and `output` is only their stream */
    corpus_output rows;       /* `begin` sets the members that corpus_output_open needs */
    corpus_progress progress; /* progress that is on disk, or about to be */
    bool finished, stopped;   /* finished: the shard was complete already; stopped: the program was asked to stop */
    bool any_length;          /* set by `begin`: no text is too long */
    task_text *texts;         /* [count] texts of one window of the input, in order */
    size_t count, tokens;     /* tokens of the window, and what `look` adds to end it sooner */
    size_t pieces, encoded;   /* pieces of the window, and how many of them are encoded */
    size_t printed;
    progress_bar bar;
    double began;
    uint64_t window_begin_bytes, skipped_bytes;
    const struct task_command *command;
    void *context; /* state of the command */
} task_run;

/* A batch whose results are in the session: text k is sequence k, and its tokens begin at starts[k]. */
typedef struct task_batch {
    deberta_session *session;
    const deberta_model *model;
    task_text **texts; /* [count] */
    size_t count;
    const size_t *starts; /* [count + 1] */
} task_batch;

typedef struct task_command {
    text_stream_names names;
    deberta_task task;        /* head of describe, which the checkpoint must hold */
    const char *without_head; /* what a message about another head adds; NULL: nothing */
    /* Called after the model is opened; refuses it if anything is wrong. May be NULL. */
    void (*begin)(task_run *run);
    /* Splits a line into its text and its other fields before it is tokenized; may spoil the record. May be NULL. */
    deberta_status (*split)(task_run *run, task_text *text, deberta_error *err);
    /* Looks at a tokenized text. It may spoil the record, or answer it itself, and then the text is in no batch. May be
     * NULL. */
    deberta_status (*look)(task_run *run, task_text *text, deberta_error *err);
    bool answers_alone; /* true: `look` answers every text */
    /* Answers one text from its rows of logits: one for each token, or with DEBERTA_TASK_SEQUENCE one. out: stream
     * for the text form; NULL: fill the object. Memory taken from the options is freed after the batch. */
    deberta_status (*describe)(task_run *run, task_text *text, const float *logits, FILE *out, deberta_error *err);
    /* Answers a batch, instead of describe. */
    deberta_status (*answer)(task_run *run, const task_batch *batch, deberta_error *err);
    bool silent; /* true: answers are not printed one by one */
    /* For rows, instead of both. `arrange` lays out the window's pieces and returns how many; their indices are free
     * for the command, and memory taken from the options lives until the window is written. `keep` keeps the results
     * of a batch, with the run as context. `write` writes the rows of one text, also of one with a problem. */
    size_t (*arrange)(task_run *run, text_piece **pieces);
    text_batch_callback keep;
    deberta_status (*write)(task_run *run, const task_text *text, deberta_error *err);
    /* Returns the settings that a resumed run must share with the first; NULL: corpus_shard_settings. */
    deberta_status (*settle)(task_run *run, json_t **settings, deberta_error *err);
    /* Called after the last text; may be NULL. For rows, out is NULL and the rows are complete. */
    deberta_status (*finish)(task_run *run, FILE *out, deberta_error *err);
} task_command;

/* Opens the model, and reads, answers and prints all texts. Returns the exit code. The options begin with
 * reading_options. */
int task_run_all(const common_options *options, const task_command *command, void *context);

/* Ends the program if the checkpoint lacks the head, and names the heads it has. advice: NULL, or the message's end. */
void task_require(const common_options *options, const text_batches *batches, deberta_task task, const char *advice);
/* Returns the head for masked tokens: that of --mlm-decoder, whose member of the command's struct this is, or by
 * default the Enhanced Mask Decoder if the model has one. */
deberta_task task_mlm_head(const common_options *options, const text_batches *batches, const int *decoder);
/* The following functions are for callbacks of a command. */
/* Returns what is wrong unless id2label names all of the classifier's labels and no other, or none at all
 * and num_labels counts them, if it is there: NULL. */
const char *task_labels_lack(const common_options *options, const deberta_model *model, size_t labels);
/* Ends the program unless the names in id2label fit the rows of the classifier; called by `begin`. */
void task_run_check_labels(const task_run *run, size_t labels);

/* Returns true if config.json says that the model is one for multiple choice. */
bool task_run_chooses(const task_run *run);

/* Returns the label's name, or "LABEL_<k>" if the config has none. Lives as long as the batch. */
const char *task_run_label(const task_run *run, size_t label);
/* Opens the stream of the answer's text form; *out is NULL with --json. */
void task_text_out(const task_run *run, task_text *text, FILE **out);
/* Calls deberta_task_logits for the batch, with stride = width of the head. Logits that are not finite are an error
 * (DEBERTA_E_FORMAT): they come from damaged weights, and a ranking of them would be meaningless. */
deberta_status task_run_logits(const task_batch *batch, deberta_task task, const size_t *positions, size_t count,
                               float *logits, deberta_error *err);
/* Chooses the `top` largest of [count] values, best first; for top 0 all in their order. Returns how many. */
size_t task_run_choose(const task_run *run, size_t top, const double *values, size_t count, size_t **chosen);

/* names of the values of --mlm-decoder */
extern const char *const mlm_decoder_names[];
#define TASK_MLM_DECODER_ROW(S)                                                                                        \
    "mlm-decoder", 0, "NAME",                                                                                          \
        "head: emd, the Enhanced Mask Decoder (default where there is one), or plain, on the last layer, as "          \
        "transformers has it",                                                                                         \
        CHOICE_AT(S, mlm_decoder, mlm_decoder_names)

/* Row of --top, at most `most`, for that member of a command's struct. */
#define TASK_TOP_ROW(S, most, help)                                                                                    \
    {                                                                                                                  \
        "top", 0, "N", help, SIZE_AT(S, top, 1, most)                                                                  \
    }
