/* --out of a command that both prints and draws: pictures by their suffixes, everything else is where the text goes.
 *
 * SPDX-License-Identifier: MIT */
#ifndef PROGRAM_FRAME_OUTPUT_PATHS_H
#define PROGRAM_FRAME_OUTPUT_PATHS_H

#include "program/frame/options.h"
#include "viz/figure.h"

enum { OUTPUT_PATHS_MOST = 16 }; /* .most_outputs of such a command */

typedef struct output_paths {
    const char *figures[OUTPUT_PATHS_MOST]; /* .png, .svg, .pdf */
    size_t figure_count;
    const char *text; /* NULL: standard output */
} output_paths;

/* False after saying that there are two texts, or a picture in a program without figures. */
bool output_paths_read(const common_options *options, output_paths *paths);

/* Draws `what` into files whose names end in .png, .svg or .pdf. */
typedef deberta_status (*output_drawing)(const void *what, const figure_style *style, const char *const *paths,
                                         size_t path_count, deberta_error *err);
/* Calls it for the pictures, the command line added as provenance. EXIT_OK or an exit code, after saying why. In a
 * program without figures it does nothing: pictures were refused when the options were read. */
int output_draw(const common_options *options, const char *const *paths, size_t path_count, output_drawing draw,
                const void *what, const figure_style *style);
#if HAVE_VIZ
#define DRAWING(function) (function)
#else
#define DRAWING(function) NULL
#endif

#endif
