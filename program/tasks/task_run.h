/* Declares the steps that commands over texts share: open model and tokenizer, read texts, encode them in batches,
 * answer in order.
 *
 * A command says what it needs and gives two functions: look at a tokenized text (and perhaps refuse it), and describe
 * what the logits say of one, for a person or, with --json, as an object, of which each is a line. A text that could
 * not be answered has a line with "error" there. It is reported with its place, the others go on, and the exit code is
 * EXIT_INPUT.
 *
 * A command that writes rows of a corpus gives `keep` and `write` instead. Its rows can be those of a shard or go on
 * where an interrupted run has ended; so can the lines of the others, in a shard.
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
    json_t *answer; /* with --json: the object */
    FILE *out;      /* else, once task_text_out was asked for it: where the answer for a person goes, into shown */
    char *shown;
    size_t shown_bytes;
    size_t label; /* the command's own */
    bool skipped; /* its split function found that the line is no text */
} task_text;

typedef struct task_run {
    const common_options *options;
    text_batches batches;
    text_stream stream;
    const char *out; /* where answers go: --out, unless `begin` has something else in mind */
    text_output output;
    corpus_shard shard;       /* if one is asked for */
    bool to_rows;             /* answers go to the rows of a corpus, or of a shard; the output is only their stream */
    corpus_output rows;       /* `begin` sets what corpus_output_open needs */
    corpus_progress progress; /* done, and on the disk or about to be */
    bool finished, stopped;   /* the shard was there; the program was told to stop */
    bool any_length;          /* `begin` says so: no text is too long */
    task_text *texts;         /* [count] of one window of the input, in order */
    size_t count, tokens;     /* tokens: those of the window, and what `look` adds to end it sooner */
    size_t pieces, encoded;   /* of the window; encoded so far */
    size_t printed;
    progress_bar bar;
    double began;
    uint64_t window_begin_bytes, skipped_bytes;
    const struct task_command *command;
    void *context; /* the command's own */
} task_run;

/* A batch whose results are in the session: text k is sequence k and its tokens begin at starts[k]. */
typedef struct task_batch {
    deberta_session *session;
    const deberta_model *model;
    task_text **texts; /* [count] */
    size_t count;
    const size_t *starts; /* [count + 1] */
} task_batch;

typedef struct task_command {
    text_stream_names names;
    deberta_task task; /* of describe: the checkpoint must hold its head */
    /* The model is open: refuses it, if anything is wrong with it; may be NULL. */
    void (*begin)(task_run *run);
    /* Takes apart what a line holds besides its text, before that is tokenized; may spoil the record; may be NULL. */
    deberta_status (*split)(task_run *run, task_text *text, deberta_error *err);
    /* May be NULL. May spoil the record, or answer it by itself (`answers_alone`): then it is in no batch. */
    deberta_status (*look)(task_run *run, task_text *text, deberta_error *err);
    bool answers_alone; /* `look` does */
    /* Answers one text from its rows of logits: one a token, or of DEBERTA_TASK_SEQUENCE one. out: for a person; NULL:
     * the object. What it takes of the options is freed after the batch. */
    deberta_status (*describe)(task_run *run, task_text *text, const float *logits, FILE *out, deberta_error *err);
    /* Instead of describe: answers a batch. */
    deberta_status (*answer)(task_run *run, const task_batch *batch, deberta_error *err);
    bool silent; /* answers are not printed one by one */
    /* Instead of both, for rows: lays out the window's pieces and returns how many (their indices are the command's
     * own, and what it takes of the options lives until the window is written); keeps the results of a batch, whose
     * context is the run; writes the rows of one text, also of one with a problem. */
    size_t (*arrange)(task_run *run, text_piece **pieces);
    text_batch_callback keep;
    deberta_status (*write)(task_run *run, const task_text *text, deberta_error *err);
    /* Says what a run must share with the one that it goes on from; NULL: corpus_shard_settings. */
    deberta_status (*settle)(task_run *run, json_t **settings, deberta_error *err);
    /* Is called after the last text; may be NULL. Rows have ended then, and out is NULL. */
    deberta_status (*finish)(task_run *run, FILE *out, deberta_error *err);
} task_command;

/* Opens the model, reads, answers and prints everything from the first text to the last. The exit code. The options
 * begin with reading_options. */
int task_run_all(const common_options *options, const task_command *command, void *context);

/* The checkpoint must hold the head; if not, it says which it has. */
void task_require(const common_options *options, const text_batches *batches, deberta_task task);
/* The head for what is masked: of --mlm-decoder, whose member of the command's struct this is; if it was not given, the
 * Enhanced Mask Decoder where there is one. */
deberta_task task_mlm_head(const common_options *options, const text_batches *batches, const int *decoder);
/* For `begin`. */
/* The names in id2label must fit the rows of the classifier. */
void task_run_check_labels(const task_run *run, size_t labels);

/* The label's name, or "LABEL_<k>" where the config has none. Lives as long as the batch. */
const char *task_run_label(const task_run *run, size_t label);
/* Opens the output of the answer for a person; *out is NULL with --json. */
void task_text_out(const task_run *run, task_text *text, FILE **out);
/* deberta_task_logits for the batch, stride = width of the head; values that are no numbers are an error
 * (DEBERTA_E_FORMAT): they come from damaged weights, and no ranking of them means anything. */
deberta_status task_run_logits(const task_batch *batch, deberta_task task, const size_t *positions, size_t count,
                               float *logits, deberta_error *err);
/* The `top` best of [count] values, best first; of top 0 all in their order. Returns how many. */
size_t task_run_choose(const task_run *run, size_t top, const double *values, size_t count, size_t **chosen);

/* --mlm-decoder */
extern const char *const mlm_decoder_names[];
#define TASK_MLM_DECODER_ROW(S)                                                                                        \
    "mlm-decoder", 0, "NAME",                                                                                          \
        "head: emd, the Enhanced Mask Decoder (default where there is one), or plain, on the last layer",              \
        CHOICE_AT(S, mlm_decoder, mlm_decoder_names)

/* --top, at most `most`, into that member of a command's struct. */
#define TASK_TOP_ROW(S, most, help)                                                                                    \
    {                                                                                                                  \
        "top", 0, "N", help, SIZE_AT(S, top, 1, most)                                                                  \
    }
