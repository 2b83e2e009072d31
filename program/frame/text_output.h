/* Writes results to standard output, to a file that appears whole, or to a device. SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "core/io/atomic_file.h"
#include "output/result.h"
#include "program/frame/options.h"
#include "viz/figure.h"

/* Text output to --out PATH or to stdout. A file is written under a temporary name and renamed; a device or a pipe is
 * written to directly. */
typedef struct text_output {
    FILE *file;
    const char *path;   /* NULL: stdout */
    atomic_file *whole; /* NULL: stdout or a device */
} text_output;
/* Opens the output. path NULL or "-": stdout; the path is borrowed until the output is closed or discarded. */
void text_output_open(const common_options *options, const char *path, text_output *output);
void text_output_close(const common_options *options, text_output *output);
void text_output_discard(text_output *output);
/* Ends the program as `must` does, but first discards the output. */
void text_output_must(const common_options *options, text_output *output, deberta_status status,
                      const deberta_error *error);

/* Prints the object to stdout, and releases it. */
void print_json(const common_options *options, json_t *object);
void print_json_to(const common_options *options, const char *path, json_t *object); /* path: as above */
/* Writes the object on one line of an open file, and releases it. Without memory the program ends (output/scope.h);
 * closing the file reports write errors. */
void write_json_line(FILE *out, json_t *object);

/* Returns a model's name as UTF-8, for the metadata of a file. Invalid bytes become U+FFFD, and a note says so. Lives
 * as long as the options; NULL if memory ran out. */
const char *metadata_name(const common_options *options, const char *name);

/* Writes bytes in a readable unit: "344 MB". */
void format_bytes(char text[32], double bytes);

/* Names of the formats, for --format. */
extern const char *const result_format_names[];

/* Returns the format of --format or --json or, without these, that of the suffix of --out. */
result_format result_format_read(const common_options *options);

/* Writes the result to a file, or to stdout for path NULL, and frees it. */
void finish_result(const common_options *options, const char *path, result *r, result_format format);
/* Writes the result into an output that was opened before the computation, so that a missing folder is reported at
 * once. */
void finish_result_in(const common_options *options, text_output *output, result *r, result_format format);
/* Calls finish_result for a command that prints text, or JSON with --json, to --out. */
void finish_text_or_json(const common_options *options, result *r);

#define RESULT_FORMAT_OPTIONS                                                                                          \
    {                                                                                                                  \
        "format", 0, "NAME", "table (default), md, csv, json or latex (booktabs); without it, what --out ends in",     \
            CHOICE_AT(common_options, format, result_format_names), .role = OPTION_SHOWS                               \
    }

/* Outputs of a command that both prints and draws: pictures are known by their suffixes, any other path gets the
 * text. */
enum { OUTPUT_PATHS_MOST = 16 }; /* most_outputs of such a command */

typedef struct output_paths {
    const char *figures[OUTPUT_PATHS_MOST]; /* paths ending in .png, .svg or .pdf */
    size_t figure_count;
    const char *text; /* NULL: standard output */
} output_paths;

/* Sorts the paths. It refuses a second text, a picture in a program without figures, and options of style (in the
 * command's struct, or NULL) if there is no picture. */
void output_paths_read(const common_options *options, const figure_style *style, output_paths *paths);

/* Draws `what` into files whose names end in .png, .svg or .pdf. */
typedef deberta_status (*output_drawing)(const void *what, const figure_style *style, const char *const *paths,
                                         size_t path_count, deberta_error *err);
/* Calls `draw` for the pictures, with the style of the options, a title if they give none, a note (NULL: none) and
 * the command line as provenance. In a program without figures it draws nothing, because pictures were refused with
 * the options. */
void output_draw(const common_options *options, const output_paths *paths, output_drawing draw, const void *what,
                 const figure_style *style, const char *title, const char *note);
#if HAVE_VIZ
#define DRAWING(function) (function)
#else
#define DRAWING(function) NULL
#endif
