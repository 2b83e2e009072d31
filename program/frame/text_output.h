/* Writes results to standard output, to a file that appears whole, or to a device. SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "core/io/atomic_file.h"
#include "output/result.h"
#include "program/frame/options.h"
#include "viz/figure.h"

/* Text output to --out PATH (atomically: temporary name, then rename; a device or a pipe is written to as it is) or to
 * stdout. */
typedef struct text_output {
    FILE *file;
    const char *path;   /* NULL for stdout */
    atomic_file *whole; /* NULL for stdout and for a device */
} text_output;
/* path NULL or "-": stdout; borrowed until the output is closed or discarded. */
void text_output_open(const common_options *options, const char *path, text_output *output);
void text_output_close(const common_options *options, text_output *output);
void text_output_discard(text_output *output);
/* Ends the program as `must` does, but first discards the output. */
void text_output_must(const common_options *options, text_output *output, deberta_status status,
                      const deberta_error *error);

/* Prints and releases. */
void print_json(const common_options *options, json_t *object);
void print_json_to(const common_options *options, const char *path, json_t *object); /* path: as above */
/* Writes the object into an open file, on one line (results that come one a text); releases it. False if memory ran out
 * for the object or its text; closing the file reports what cannot be written. */
void write_json_line(FILE *out, json_t *object);

/* A name of a model for the metadata of a file, which is UTF-8: what is none becomes U+FFFD, and a note says so. Lives
 * as long as the options; NULL if memory ran out. */
const char *metadata_name(const common_options *options, const char *name);

/* Bytes for people: "344 MB". */
void format_bytes(char text[32], double bytes);

/* Format and destination of a command's result: --format and --json. */
extern const char *const result_format_names[];

/* Format that --format or --json selects; without them, by the suffix of --out. */
result_format result_format_read(const common_options *options);

/* The result into a file, or for path NULL to stdout, and frees it. */
void finish_result(const common_options *options, const char *path, result *r, result_format format);
/* Prints into an output that was opened before the result was computed, so that nobody waits for minutes to hear that a
 * folder does not exist. */
void finish_result_in(const common_options *options, text_output *output, result *r, result_format format);
/* finish_result of a command that has text and, with --json, JSON, into --out. */
void finish_text_or_json(const common_options *options, result *r);

#define RESULT_FORMAT_OPTIONS                                                                                          \
    {                                                                                                                  \
        "format", 0, "NAME", "table (default), md, csv, json or latex (booktabs); without it, what --out ends in",     \
            CHOICE_AT(common_options, format, result_format_names), .role = OPTION_SHOWS                               \
    }

/* --out of a command that both prints and draws: pictures by their suffixes, everything else is where the text goes. */
enum { OUTPUT_PATHS_MOST = 16 }; /* .most_outputs of such a command */

typedef struct output_paths {
    const char *figures[OUTPUT_PATHS_MOST]; /* .png, .svg, .pdf */
    size_t figure_count;
    const char *text; /* NULL: standard output */
} output_paths;

/* Refuses two texts, a picture in a program without figures, and options of style (in the command's struct, or NULL)
 * where there is no picture. */
void output_paths_read(const common_options *options, const figure_style *style, output_paths *paths);

/* Draws `what` into files whose names end in .png, .svg or .pdf. */
typedef deberta_status (*output_drawing)(const void *what, const figure_style *style, const char *const *paths,
                                         size_t path_count, deberta_error *err);
/* Calls it for the pictures, with the style that the options ask for, a title where they have none, a note (NULL: none)
 * and the command line as provenance. In a program without figures it draws nothing: pictures were refused when the
 * options were read. */
void output_draw(const common_options *options, const output_paths *paths, output_drawing draw, const void *what,
                 const figure_style *style, const char *title, const char *note);
#if HAVE_VIZ
#define DRAWING(function) (function)
#else
#define DRAWING(function) NULL
#endif
