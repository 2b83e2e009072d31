/* Declares the kinds of figures that `deberta attention` draws, each a command of two words: `deberta attention lines`.
 *
 * CONTRIBUTING.md says how to add one.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/attention/figure_list.h"
#include "program/attention/figure_sheet.h"

typedef struct figure_kind {
    command command; /* first member, by which figure_run finds the kind */
    bool all_rows;   /* true: the figure shows more of the input than --row */
    bool hidden;     /* true: hidden states are captured too */
    /* Encodes, computes, and describes a figure and its numbers; ends with panels_finish or sheet_finish. */
    void (*draw)(figure_source *source, figure_sheet *sheet);
} figure_kind;

#define FIGURE_DECLARE(name) extern const figure_kind figure_##name;
FIGURE_EACH(FIGURE_DECLARE)

/* Option groups of `attention components`, which `deberta attention` without a kind takes too. */
extern const option_group figure_components_groups[];

/* Opens the source, draws the figure, and closes everything. */
void figure_draw(const common_options *options, const figure_kind *kind);
/* Draws the figure whose command the options belong to, and returns the exit code. */
int figure_run(const common_options *options);

#define FIRST_HEAD .layers = "0", .heads = "0"
#define EVERY_HEAD .layers = "all", .heads = "all"

/* Option groups of a kind: `part` selects what is shown, `look` its colours and layout. */
#define FIGURE_GROUPS(part, look)                                                                                      \
    {                                                                                                                  \
        {attention_input_rows, 0, "input"}, {part, 0, "part of it"}, {look, 0, "colours and layout"},                  \
            {attention_page_rows, 0, "page"}, {attention_file_rows, 0, "files"},                                       \
        {                                                                                                              \
            NULL, 0, NULL                                                                                              \
        }                                                                                                              \
    }
/* Description of a kind for --help and the parser, followed by the defaults, members of attention_options. */
#define FIGURE_COMMAND(...) FIGURE_COMMAND_WITHOUT("json seed", __VA_ARGS__)
#define FIGURE_COMMAND_WITHOUT(without_, name_, summary_, example_, groups_, ...)                                      \
    .command = {                                                                                                       \
        .name = "attention " name_,                                                                                    \
        .summary = summary_,                                                                                           \
        .arguments = "MODEL",                                                                                          \
        .most_outputs = FIGURE_MOST_PATHS,                                                                             \
        .writes = WRITES_OWN,                                                                                          \
        .groups = groups_,                                                                                             \
        .size = sizeof(attention_options),                                                                             \
        .defaults = &(const attention_options){ATTENTION_DEFAULTS, __VA_ARGS__},                                       \
        .example = "  deberta attention " name_ " models/demo " example_ "\n",                                         \
        .run = figure_run,                                                                                             \
        .without = without_,                                                                                           \
    }
#define FIGURE_TEXT "--text 'a new store opened'"
