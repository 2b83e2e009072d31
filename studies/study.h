/* What studies share: how they are asked and how they answer.
 *
 * A study prints short tables for people (--format table, md), all of what it found as JSON (--format json, --json), or
 * its data, one row an observation, as CSV (--format csv). --data writes the same CSV into a file, -o draws the figure.
 * A study fills study_findings and calls study_finish; it opens no file and knows no format.
 *
 * SPDX-License-Identifier: MIT */
#ifndef STUDIES_STUDY_H
#define STUDIES_STUDY_H

#include "output/result.h"
#include "command/input/text_stream.h"
#include "command/result_output.h"
#include "viz/attention_figure.h"
#include "viz/chart.h"
#include "analysis/bootstrap.h"

/* The tables are owned; texts and the figure must live until study_finish returns. */
typedef struct study_findings {
    result *tables;     /* NULL before the first */
    result_table *data; /* one row an observation; one of the tables */
    char note[1024];    /* under the tables: what was measured, on how much. May be empty */
    /* At most one of these; both NULL: the study draws nothing. Paths and provenance are added here. */
    const chart_figure *chart;
    const attention_figure *maps;
} study_findings;

/* As result_add_table. */
result_table *study_add_table(study_findings *findings, const char *name, const char *title,
                              const result_column *columns);
/* Begins the data. */
void study_set_data(study_findings *findings, const result_column *columns);
#define STUDY_TEXT_COLUMN(name_)                                                                                       \
    {                                                                                                                  \
        .name = (name_), .type = COLUMN_TEXT                                                                           \
    }
#define STUDY_COUNT_COLUMN(name_)                                                                                      \
    {                                                                                                                  \
        .name = (name_), .type = COLUMN_INTEGER                                                                        \
    }
#define STUDY_REAL_COLUMN(name_)                                                                                       \
    {                                                                                                                  \
        .name = (name_), .type = COLUMN_REAL, .format = "%.6f"                                                         \
    }
/* A text that is not known where it is empty. */
void study_cell_text(result_table *table, const char *text);
/* A layer or a head; below 0: all of them. */
void study_cell_index(result_table *table, long index);
/* value, low and high: three cells. What is no number is not known. */
void study_cell_interval(result_table *data, const bootstrap_interval *found);
void study_findings_free(study_findings *findings);

/* What every study is asked; those that want more begin their struct with it. */
typedef struct study_options {
    reading_options reading;
    const char *data; /* NULL: not written */
    size_t sentences; /* 0: all, up to STUDY_MOST_SENTENCES */
} study_options;
enum { STUDY_MOST_SENTENCES = 100000, STUDY_MOST_OUTPUTS = 8 };

/* Wrong values of the options below, before anything is computed. False after saying so. */
bool study_check_options(const common_options *options);
/* Draws, writes and prints what was asked for. EXIT_OK or an exit code, after saying why. */
int study_finish(const common_options *options, study_findings *findings);

#define STUDY_OPTIONS                                                                                                  \
    {"format",                                                                                                         \
     0,                                                                                                                \
     "NAME",                                                                                                           \
     "table, md (default), csv (the data) or json",                                                                    \
     CHOICE_AT(common_options, format, result_format_names_no_latex),                                                  \
     .role = OPTION_SHOWS},                                                                                            \
        {"data",                                                                                                       \
         0,                                                                                                            \
         "FILE",                                                                                                       \
         "write the data as CSV, one row an observation",                                                              \
         TEXT_AT(study_options, data),                                                                                 \
         .role = OPTION_OUTPUT},                                                                                       \
    {                                                                                                                  \
        "out", 'o', "FILE", "draw the figure: .png, .svg, .pdf; may be repeated", TEXTS_AT(common_options, outs),      \
            .role = OPTION_OUTPUT                                                                                      \
    }
#endif
