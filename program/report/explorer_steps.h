/* Runs the steps of a report: other commands, each with the options that a user would type.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/report/explorer_parts.h"

/* Parts of a report for --with and --skip. Measuring and verifying take far longer than the rest, so only the
 * receptive field is included by default. */
typedef enum report_part { PART_LATENCY, PART_VERIFY, PART_RECEPTIVE_FIELD, PART_COUNT } report_part;
typedef enum part_choice { PART_BY_DEFAULT, PART_ASKED_FOR, PART_LEFT_OUT } part_choice;
enum { EXPLORER_MOST_TEXTS = 16, EXPLORER_MOST_STEPS = 3 * EXPLORER_MOST_TEXTS + 8 };

typedef struct report_options {
    reading_options reading;
    const char *layers, *heads;         /* printed figure's; both NULL: the head that the page opens on */
    const char *lengths, *sweep_layers; /* lists of sizes; sweep_layers NULL: chosen by the model */
    size_t reps;
    const char *training_log;      /* path; NULL: the log in the model's folder, if it has one */
    part_choice parts[PART_COUNT]; /* the last option that names a part decides */
    live_parts live;
} report_options;

/* Files that a report has made so far, so that a failed report can remove them. */
enum { MOST_MADE_FILES = 256 }; /* far more than a report has; with deeply nested folders some stay */

typedef struct made_files {
    const char *paths[MOST_MADE_FILES]; /* borrowed, in the order in which they were made */
    size_t count;
} made_files;

/* Notes a path before a file is written, or after a folder is made; files that existed before are not the
 * report's. */
void made_files_expect(made_files *made, const char *path);
void made_files_add(made_files *made, const char *path);
/* Removes the files, the latest first. What cannot be removed, such as a folder with other files, stays. */
void made_files_remove(made_files *made);

typedef struct explorer_job {
    const report_options *o;
    const common_options *options; /* options of the report, the first member of its struct */
    explorer_contents contents;
    input_batch input;
    explorer_text texts[EXPLORER_MOST_TEXTS];
    explorer_step steps[EXPLORER_MOST_STEPS];
    made_files made;
    const char *output; /* path given to the current step last */
    size_t layers;
    bool has_relative_positions;
} explorer_job;

/* Runs the steps in the folder, which exists, and keeps their command lines for the page. A failed check alone does
 * not end the program; other errors do. */
void explorer_steps_run(explorer_job *job);
