/* --out of a command that both prints and draws: pictures by their suffixes, everything else is where the text goes.
 *
 * SPDX-License-Identifier: MIT */
#ifndef COMMAND_OUTPUT_PATHS_H
#define COMMAND_OUTPUT_PATHS_H

#include "command/options.h"

enum { OUTPUT_PATHS_MOST = 16 }; /* .most_outputs of such a command */

typedef struct output_paths {
    const char *figures[OUTPUT_PATHS_MOST]; /* .png, .svg, .pdf */
    size_t figure_count;
    const char *text; /* NULL: standard output */
} output_paths;

/* False after saying that there are two texts, or a picture in a program without figures. */
bool output_paths_read(const common_options *options, output_paths *paths);

#if HAVE_VIZ
#include "viz/figure.h"

/* Draws `what` into the pictures, with the command line as provenance. EXIT_OK or an exit code, after saying why. */
typedef deberta_status (*output_drawing)(const void *what, const figure_style *style, const char *const *paths,
                                         size_t path_count, deberta_error *err);
int output_paths_draw(const common_options *options, const output_paths *paths, output_drawing draw, const void *what,
                      const char *title, const char *note);
#endif

#endif
