/* Declares the parts that build the page of a report. The page is a single file that needs no other; its links point
 * to files in the same folder.
 *
 * It consists of explorer.html, explorer.css and explorer*.js, which the build puts into the program, filled with the
 * output of the commands in the report's folder.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "program/frame/input/input.h"
#include "program/frame/options.h"

/* One text of a report that the page shows (explorer_text.c). */
typedef struct explorer_text {
    const input_batch *input;
    size_t row;                           /* row of the input */
    const char *data, *figure, *document; /* paths: safetensors as `encode` writes them, PNG, PDF */
    /* answers of the model (explorer_without.c), which the page takes over; NULL: none */
    json_t *answers;
    double multiplications; /* about those of one encode with its answer; 0: there is no answer */
    /* what `attribute` says of the text (explorer_attribution.c) */
    const char *attribution;      /* path of its JSON */
    const char *attribution_head; /* --head; NULL: left out */
    const char *no_attribution;   /* why it is left out, as the end of a sentence */
} explorer_text;

/* Puts the attention of every layer and head into the page, one element each (id "cells-<text>-<layer>-<head>",
 * base64), and returns the JSON that describes them. budget_bytes: most bytes of all of them, before base64. */
json_t *explorer_text_put(const common_options *options, const explorer_text *text, size_t index, size_t budget_bytes,
                          FILE *out);

/* Finds the head whose tokens attend most strongly to single other tokens, with which the page opens
 * (explorer_guide.js). */
void explorer_text_telling_head(const common_options *options, const explorer_text *text, size_t *layer, size_t *head);

/* Most multiplications for all texts of a page, of their answers and of their attributions each: about two seconds of
 * one core. */
#define EXPLORER_MOST_MULTIPLICATIONS 1e11

/* Computes the answers to the texts with all terms and without some (explorer_without.c): fills `answers` and
 * `multiplications` of every text: {"full": answer, "layers": [L + 1 of them], "without": {"c2p@3": answer}}, each as
 * in explorer_answer.h. "layers" is missing and "without" is shorter if they would take long; NULL if the model has no
 * head that answers. Returns why the page shows none of its labels, or NULL. */
const char *explorer_answers_compute(const common_options *options, explorer_text *texts, size_t count);

enum { EXPLORER_ATTRIBUTION_STEPS = 32 };

/* Sets attribution_head or no_attribution of every text, whose answers are there. How long an attribution takes is
 * judged by the sizes of model and text, so that the same command makes the same page anywhere. */
void explorer_attributions_choose(const common_options *options, explorer_text *texts, size_t count);

/* A page that computes (live_parts.c). It contains the modules of WebAssembly and the files of the model.
 *
 * The page holds each file deflated (RFC 1950), then base64, in elements of at most 64 kB of the class
 * "module-<tier>" or "file-<number>". A worker of the page unpacks them, takes the fastest module that the browser
 * can run, opens the model and answers with the JSON that explorer_text.c writes for a text (wasm/module_text.c): the
 * same heads, the same cells. explorer_live.js is the page's side, live_worker.js the worker's. For one text the page
 * also has the SHA-256 of the hidden states that this program computed; the worker computes it again and the page
 * says whether they are equal. */

typedef struct live_parts {
    bool wanted;         /* true with --live */
    bool without_model;  /* true with --no-model: the reader opens the folder */
    const char *modules; /* --modules, or else the folder that was found; NULL: none */
} live_parts;

/* Looks for modules and checks that the model can go into a page. If there are no modules and --modules was not
 * given, it prints a note. */
void live_parts_find(const common_options *options, live_parts *live);
/* Describes modules, files and precision for the page. */
json_t *live_parts_describe(const common_options *options, const live_parts *live);
/* Write the elements. The model's are most of the page, and come last in it, because the first view needs none of
 * them. */
void live_parts_put_modules(const common_options *options, const live_parts *live, FILE *out);
void live_parts_put_model(const common_options *options, const live_parts *live, FILE *out);

/* JSON documents of other commands, which the page shows and draws charts from: "info" for info.json. */
typedef enum explorer_document {
    DOCUMENT_INFO,
    DOCUMENT_VERIFY,
    DOCUMENT_RECEPTIVE_FIELD,
    DOCUMENT_LENGTHS,
    DOCUMENT_LAYERS,
    DOCUMENT_TRAINING, /* a chart alone, because its log lies elsewhere */
    DOCUMENT_COUNT
} explorer_document;

typedef struct explorer_step {
    const char *title;
    const char *command; /* command line as typed */
    bool failed;         /* true: the command ran, and its check failed */
} explorer_step;

typedef struct explorer_contents {
    const char *folder, *model;
    const char *page;      /* path of the page */
    const char *command;   /* command line of the report as typed */
    const char *no_labels; /* why the page shows no class and no label of a token; NULL: it shows those it has */
    bool is_alone;         /* true: the folder is removed when the page is written */
    live_parts live;
    const char *printed_layers, *printed_heads; /* lists of the layers and heads in the printed figures */
    explorer_text *texts;
    size_t text_count;
    explorer_step *steps;
    size_t step_count;
    bool has_document[DOCUMENT_COUNT]; /* documents of this run; others in the folder are ignored */
} explorer_contents;

/* Writes the page from the files in the folder. */
void explorer_page_write(const common_options *options, const explorer_contents *contents);
const char *explorer_document_name(explorer_document document);
