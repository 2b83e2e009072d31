/* The page of a report: one file that needs nothing else, but for links to what lies in the same folder.
 *
 * The page is explorer.html, explorer.css and explorer*.js of explorer/, which the build puts into the program,
 * filled with what the commands wrote into the report's folder. SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#include "program/frame/input/input.h"
#include "program/frame/options.h"

/* One text of a report: what the page shows of it. */
typedef struct explorer_text {
    const input_batch *input;
    size_t row;                           /* of the input */
    const char *data, *figure, *document; /* paths: safetensors as `encode` writes them, PNG, PDF */
} explorer_text;

/* Puts the attention of every layer and head into the page, one element each (id "cells-<text>-<layer>-<head>",
 * base64), and returns what the page must know to read them. `budget_bytes` is what all of them may take, before
 * base64. */
deberta_status explorer_text_put(const explorer_text *text, size_t index, size_t budget_bytes, FILE *out,
                                 json_t **about, deberta_error *err);

/* The head whose tokens look hardest at single other tokens: the page opens on it (explorer_guide.js). */
deberta_status explorer_text_telling_head(const explorer_text *text, size_t *layer, size_t *head, deberta_error *err);

/* A page that computes: the modules of WebAssembly and the files of the model, inside it.
 *
 * The page holds each file deflated (RFC 1950), then base64, in elements of at most 64 kB of the class "module-<tier>"
 * or "file-<number>". A worker of the page unpacks them, takes the fastest module that the browser can run, opens the
 * model and answers with what explorer_text.c writes of a text (wasm/module_text.c): the same heads, the same cells.
 * explorer_live.js is the page's side, live_worker.js the worker's. For one text the page also has the SHA-256 of the
 * hidden states that this program computed; the worker computes it again and the page says whether they are equal. */
typedef struct live_parts {
    bool wanted;         /* --live */
    bool without_model;  /* --no-model: the reader opens the folder */
    const char *modules; /* --modules, then the folder that has them; NULL: none */
} live_parts;

/* Looks for modules and checks that the model can go into a page. EXIT_OK, also where there are no modules and none
 * were asked for by name, which a note says; or an exit code after saying why. */
int live_parts_find(const common_options *options, live_parts *live);
/* What the page must know of them: modules, files, precision. */
json_t *live_parts_describe(const common_options *options, const live_parts *live);
/* The elements. Those of the model are most of the page, and come last in it: what it shows first needs none of them.
 */
deberta_status live_parts_put_modules(const common_options *options, const live_parts *live, FILE *out,
                                      deberta_error *err);
deberta_status live_parts_put_model(const common_options *options, const live_parts *live, FILE *out,
                                    deberta_error *err);

/* What other commands write as JSON, and what their charts are drawn from: "info" for info.json. */
typedef enum explorer_document {
    DOCUMENT_INFO,
    DOCUMENT_VERIFY,
    DOCUMENT_RECEPTIVE_FIELD,
    DOCUMENT_LENGTHS,
    DOCUMENT_LAYERS,
    DOCUMENT_TRAINING, /* a chart alone: the log that it is drawn from lies elsewhere */
    DOCUMENT_COUNT
} explorer_document;

typedef struct explorer_step {
    const char *title;
    const char *command; /* as one would type it */
    bool failed;         /* the command ran, and what it checked did not hold */
} explorer_step;

typedef struct explorer_contents {
    const char *folder, *model;
    const char *page; /* the file */
    bool is_alone;    /* it is all that stays: the folder goes when the page is written */
    live_parts live;
    const char *printed_layers, *printed_heads; /* what the figures show: lists of numbers */
    explorer_text *texts;
    size_t text_count;
    explorer_step *steps;
    size_t step_count;
    bool has_document[DOCUMENT_COUNT]; /* of this run; what else lies in the folder is not shown */
} explorer_contents;

/* Writes the page from what lies in the folder. EXIT_OK or an exit code, after saying why. */
int explorer_page_write(const common_options *options, const explorer_contents *contents);
const char *explorer_document_name(explorer_document document);

/* What a report has made so far, so that one that fails can take it away again. */
enum { MOST_MADE_FILES = 256 }; /* far more than a report has; of folders nested deeper than that some stay */

typedef struct made_files {
    const char *paths[MOST_MADE_FILES]; /* borrowed, in the order in which they were made */
    size_t count;
} made_files;

/* Before a file is written, or behind the making of a folder: what is there already was somebody else's. */
void made_files_expect(made_files *made, const char *path);
void made_files_add(made_files *made, const char *path);
/* The latest first. What cannot be removed, as a folder that holds something else, stays. */
void made_files_remove(made_files *made);

/* The steps of a report: other commands, each with the options that one would type. */
typedef enum skipped { SKIP_LATENCY, SKIP_VERIFY, SKIP_RECEPTIVE_FIELD, SKIP_COUNT } skipped;
enum { EXPLORER_MOST_TEXTS = 16, EXPLORER_MOST_STEPS = 2 * EXPLORER_MOST_TEXTS + 8 };

typedef struct report_options {
    reading_options reading;
    const char *layers, *heads;         /* of the printed figure; both NULL: the head that the page opens on */
    const char *lengths, *sweep_layers; /* size lists; sweep_layers NULL: chosen by the model */
    size_t reps;
    const char *training_log; /* NULL: that of the model's folder, if it has one */
    bool skip[SKIP_COUNT];
    live_parts live;
} report_options;

typedef struct explorer_job {
    const report_options *o;
    const common_options *options; /* the first of its members */
    explorer_contents contents;
    input_batch input;
    explorer_text texts[EXPLORER_MOST_TEXTS];
    explorer_step steps[EXPLORER_MOST_STEPS];
    made_files made;
    size_t layers;
    bool has_relative_positions;
} explorer_job;

/* Runs them in the folder, which is there, and keeps their lines for the page. EXIT_OK or the first exit code that is
 * no failed check, after saying why. */
int explorer_steps_run(explorer_job *job);
