/* The steps of a report: other commands, each with the options that one would type.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/report/explorer_page.h"
#include "program/report/made_files.h"

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
