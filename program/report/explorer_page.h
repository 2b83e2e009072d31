/* Builds the page of a report, a single file that needs no other; its links point to files in the same folder.
 *
 * The page is explorer.html, explorer.css and explorer*.js of explorer/, which the build puts into the program,
 * filled with what the commands wrote into the report's folder. SPDX-License-Identifier: MIT */
#pragma once

#include "program/report/explorer_text.h"
#include "program/report/live_parts.h"

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

/* Writes the page from what lies in the folder. */
void explorer_page_write(const common_options *options, const explorer_contents *contents);
const char *explorer_document_name(explorer_document document);
