/* Figures of bench results. SPDX-License-Identifier: MIT */
#ifndef PROGRAM_BENCH_BENCH_FIGURES_H
#define PROGRAM_BENCH_BENCH_FIGURES_H

#include "program/bench/bench_files.h"
#include "viz/figure.h"

struct bench_drawing; /* bench_drawing.h */

/* A kind of figure. fill adds to the drawing as far as the results hold what the figure shows; `needs` says what that
 * is, in the words of the command line. */
typedef struct bench_figure_kind {
    const char *name, *shows, *needs;
    void (*fill)(struct bench_drawing *drawing);
    bool is_curve; /* among the panels of the figure that is drawn if none is asked for */
} bench_figure_kind;

extern const bench_figure_kind bench_figure_kinds[]; /* ends with name NULL */

/* What one can ask for: the curves, each kind, all of them, a list. NULL-terminated. */
enum { BENCH_FIGURE_ALL = 9, BENCH_FIGURE_LIST };
extern const char *const bench_figure_names[];
/* NULL for what is no single kind. */
const bench_figure_kind *bench_figure_kind_of(int name);
/* Whether several files are drawn: in one chart of latency, which the curves then are. */
bool bench_figure_takes_files(int name);
/* Whether the results hold what the kind shows. Where they do and the figure has no room on its page, that is an error,
 * DEBERTA_E_ARGUMENT. */
deberta_status bench_figures_can_draw(const common_options *options, const bench_files *files,
                                      const bench_figure_kind *kind, const figure_style *style, bool *can,
                                      deberta_error *err);

/* Draws one kind, or for NULL the curves: latency against length and layers, memory, speed-up, as far as the results
 * vary in them; where nothing varies, the breakdown. DEBERTA_E_ARGUMENT with what is missing if there is nothing to
 * draw, and of several files where one holds no curve of latency or no length that another has. */
deberta_status bench_figures_draw(const common_options *options, const bench_files *files,
                                  const bench_figure_kind *kind, const figure_style *style, const char *const *paths,
                                  size_t path_count, deberta_error *err);

#endif
