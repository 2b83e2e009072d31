/* Declares what builds the page of a report, each part in a file of its name. The page is a single file that needs no
 * other; its links point to files in the same folder.
 *
 * It is explorer.html, explorer.css and explorer*.js of explorer/, which the build puts into the program,
 * filled with what the commands wrote into the report's folder. SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "program/frame/input/input.h"
#include "program/frame/options.h"

/* One text of a report, of which the page has a view (explorer_text.c). */
typedef struct explorer_text {
    const input_batch *input;
    size_t row;                           /* of the input */
    const char *data, *figure, *document; /* paths: safetensors as `encode` writes them, PNG, PDF */
    json_t *answers;                      /* of the model (explorer_without.h); NULL: none. The page takes it */
} explorer_text;

/* Puts the attention of every layer and head into the page, one element each (id "cells-<text>-<layer>-<head>",
 * base64), and returns what the page must know to read them. `budget_bytes` is what all of them may take, before
 * base64. */
json_t *explorer_text_put(const common_options *options, const explorer_text *text, size_t index, size_t budget_bytes,
                          FILE *out);

/* The head whose tokens look hardest at single other tokens: the page opens on it (explorer_guide.js). */
void explorer_text_telling_head(const common_options *options, const explorer_text *text, size_t *layer, size_t *head);

/* A page that computes (live_parts.c): it contains the modules of WebAssembly and the files of the model.
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

/* Looks for modules and checks that the model can go into a page. Where there are no modules and none were asked for by
 * name, a note says so. */
void live_parts_find(const common_options *options, live_parts *live);
/* Describes them for the page: modules, files, precision. */
json_t *live_parts_describe(const common_options *options, const live_parts *live);
/* The elements. Those of the model are most of the page, and come last in it: what it shows first needs none of them.
 */
void live_parts_put_modules(const common_options *options, const live_parts *live, FILE *out);
void live_parts_put_model(const common_options *options, const live_parts *live, FILE *out);

/* JSON documents of other commands, from which their charts are drawn as well: "info" for info.json. */
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
    const char *page;    /* the file */
    const char *command; /* of the report itself, as one would type it */
    bool is_alone;       /* it is all that stays: the folder goes when the page is written */
    live_parts live;
    const char *printed_layers, *printed_heads; /* what the figures show: lists of numbers */
    explorer_text *texts;
    size_t text_count;
    explorer_step *steps;
    size_t step_count;
    bool has_document[DOCUMENT_COUNT]; /* of this run; what else lies in the folder is not shown */
} explorer_contents;

/* Writes the page from what lies in the folder. */
void explorer_page_write(const common_options *options, const explorer_contents *contents);
const char *explorer_document_name(explorer_document document);
