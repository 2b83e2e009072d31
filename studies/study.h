/* What studies share: how they are asked, the frame that runs them, and how they answer.
 *
 * A study prints short tables for people (--format table, md), all of what it found as JSON (--format json, --json), or
 * its data, one row an observation, as CSV (--format csv). --data writes the same CSV into a file, -o draws the figure.
 * A study is a struct that begins with a `study`, and a study_kind; it fills tables, data, chart and note, opens no
 * file and knows no format. Its memory comes from options_take. What fails for want of memory alone ends the program,
 * as that does: nothing is written before all is known.
 *
 * SPDX-License-Identifier: MIT */
#ifndef STUDIES_STUDY_H
#define STUDIES_STUDY_H

#include "analysis/bootstrap.h"
#include "program/frame/result_output.h"
#include "output/result.h"
#include "studies/study_texts.h"
#include "viz/attention_figure.h"
#include "viz/chart_columns.h"

/* What every study is asked; those that want more begin their struct with it. */
typedef struct study_options {
    reading_options reading;
    const char *data; /* NULL: not written */
    size_t sentences; /* 0: all, up to STUDY_MOST_SENTENCES */
} study_options;
enum { STUDY_MOST_SENTENCES = 100000, STUDY_MOST_OUTPUTS = 8, STUDY_MOST_MODELS = 2 };

/* Models that stand side by side: the first one's tokenizer makes the ids of all. */
typedef struct studied_model {
    const char *name; /* the last part of its path: what columns and legends call it */
    deberta_model *model;
    deberta_model_info info;
} studied_model;

typedef struct study {
    const common_options *options;
    /* Of a study of sentences, opened before its work: */
    study_texts texts;
    studied_model models[STUDY_MOST_MODELS]; /* the arguments; the first is that of the texts */
    size_t model_count;
    double *parts, *wholes; /* [sentences] for study_sentence_ratio */
    /* What was found: */
    result *tables;      /* NULL before the first */
    result_table *data;  /* one row an observation; one of the tables */
    const char *note;    /* under the tables: what was measured, on how much */
    bool lacks_interval; /* something was measured on one unit alone */
    /* At most one of these; neither: the study draws nothing. Provenance is added. */
    chart_columns chart;
    const attention_figure *maps;
    figure_style style; /* of the chart */
} study;

/* A study of the program: its command, and what it does. */
typedef struct study_kind {
    command command;                                  /* STUDY_COMMAND */
    size_t size;                                      /* of the study's struct, which begins with zeros */
    bool of_sentences;                                /* the models and texts of the command line are opened */
    int (*open)(study *);                             /* EXIT_OK or an exit code, after saying why; NULL: none */
    deberta_status (*work)(study *, deberta_error *); /* measures, fills tables and figure */
    void (*close)(study *);                           /* also after a failure; NULL: none */
} study_kind;

/* Runs the kind that has this command: checks the options, opens, works, draws, writes, prints, closes. */
int study_run(const common_options *options);

/* sum of parts / sum of wholes over `count` units, as bootstrap_ratio, drawn with --seed. Of one unit without an
 * interval, which is said under the tables. */
bootstrap_interval study_ratio(study *s, const double *parts, const double *wholes, size_t count);
/* Of study.parts and study.wholes, over the sentences. */
bootstrap_interval study_sentence_ratio(study *s);
/* "1000 resamples, seed 1", for a note. */
const char *study_resamples(const study *s);

/* As result_add_table. */
result_table *study_add_table(study *s, const char *name, const char *title, const result_column *columns);
/* Begins the data. */
void study_set_data(study *s, const result_column *columns);
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
/* The last three columns of most data. */
#define STUDY_INTERVAL_COLUMNS STUDY_REAL_COLUMN("value"), STUDY_REAL_COLUMN("low"), STUDY_REAL_COLUMN("high")
/* A text that is not known where it is empty. */
void study_cell_text(result_table *table, const char *text);
/* A layer or a head; below 0: all of them. */
void study_cell_index(result_table *table, long index);
/* "0.31 (0.28-0.34)" by a format that takes value, low and high, these from " (" on; left out where there is none. */
enum { STUDY_ESTIMATE_BYTES = 120 };
const char *study_estimate(const char *format, const bootstrap_interval *found, char text[STUDY_ESTIMATE_BYTES]);
void study_cell_estimate(result_table *table, const char *format, const bootstrap_interval *found);
/* value, low and high: three cells. What is no number is not known. */
void study_cell_interval(result_table *data, const bootstrap_interval *found);
/* A point of the chart's last series with its interval. */
void study_add_point(study *s, double x, const bootstrap_interval *found);

/* Options: the table `options` of the file, which fills an S; then .summary, .example, .claims. */
#define STUDY_COMMAND(word, arguments_, least, most, S, ...)                                                           \
    .command = {.name = "study " word,                                                                                 \
                .arguments = arguments_,                                                                               \
                .min_arguments = least,                                                                                \
                .max_arguments = most,                                                                                 \
                .options = options,                                                                                    \
                .size = sizeof(S),                                                                                     \
                .most_outputs = STUDY_MOST_OUTPUTS,                                                                    \
                .run = study_run,                                                                                      \
                __VA_ARGS__}
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
        "out", 'o', "PATH", "draw the figure: .png, .svg, .pdf; may be repeated", TEXTS_AT(common_options, outs),      \
            .role = OPTION_OUTPUT                                                                                      \
    }
#define STUDY_TEXTS_OPTIONS                                                                                            \
    {"file", 'f', "FILE", "sentences, one a line; - is standard input; may be repeated",                               \
     TEXTS_AT(reading_options, files)},                                                                                \
        {"text", 0, "TEXT", "a sentence; may be repeated", TEXTS_AT(reading_options, texts)},                          \
        {"sentences", 0, "N", "only the first N of them", SIZE_AT(study_options, sentences, 1, STUDY_MOST_SENTENCES)}, \
    {                                                                                                                  \
        "max-tokens", 0, "N", "cut longer ones to N tokens, frame included. Nothing is cut otherwise",                 \
            PARSED_AT(reading_options, max_tokens, token_limit_parse)                                                  \
    }
#endif
