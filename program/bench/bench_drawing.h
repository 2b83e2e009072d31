/* A figure of bench results in the making: its panels, what they point to, and the series that results belong to.
 * Shared by bench_figures.c, which makes figures, and the files that fill them (bench_fill_...).
 *
 * Results of one file that are alike but for length and number of layers are a group: one tier, engine, number of
 * threads. A group
 * keeps its colour, marker and dash in all panels of a figure.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "bench/trends.h"
#include "program/frame/options.h"
#include "viz/attention_figure.h"
#include "viz/chart_columns.h"

/* The files of one drawing: results and the names of their files. */
typedef struct bench_files {
    const bench_results *results; /* [count] */
    const char *const *names;
    size_t count;
} bench_files;

/* The results of all files, in their order, under the sheet of the first. Memory of the options; what results own stays
 * the files'. */
const bench_results *bench_files_join(const common_options *options, const bench_files *files);

/* Whether several files can share a chart of latency over length: each has a curve, and a length that another has.
 * needs: what a file without a curve lacks. DEBERTA_E_ARGUMENT. */
deberta_status bench_files_check(const bench_files *files, const char *needs, deberta_error *err);

typedef struct bench_group {
    const bench_result *first;
    const char *name;  /* what tells it from the other groups: "avx2, 1 thread" */
    size_t look, dash; /* of its series: a colour an engine, a dash a number of threads where that varies */
    bool listed;       /* in the legend of an earlier panel */
} bench_group;

typedef struct bench_drawing {
    const common_options *options; /* whose memory all of this is but the chart's */
    const bench_results *results;  /* of all files; the sheet is the first one's */
    const bench_files *files;
    bool names_files; /* in names: no other facet tells two groups of different files apart */
    bench_group *groups;
    size_t group_count;
    chart_columns chart;   /* the panels */
    size_t panel_count;    /* that have series */
    attention_figure grid; /* drawn instead of panels if it has panels */
    const char *note;      /* under the figure; NULL: none */
} bench_drawing;

/* Under the figure: what was measured where, as far as it is the same for all results. */
void bench_name_machine(bench_drawing *drawing);
/* Another sentence under the figure. */
void bench_add_note(bench_drawing *drawing, const char *sentence);

/* Whether two results are of one file and of the same work but for the axes, a sum of trend_axis. */
bool bench_same_series(const bench_drawing *drawing, const bench_result *a, const bench_result *b, unsigned axes);
/* Whether the files are of processors with different names. */
bool bench_machines_vary(const bench_drawing *drawing);

/* Finds the groups of results that are not empty. */
void bench_find_groups(bench_drawing *drawing);
/* Name of a group for the legend of the panel that is begun; NULL where an earlier panel of the figure lists it. */
const char *bench_legend_name(const bench_drawing *drawing, bench_group *group);
/* The group that gives the series its colour and dash. */
const bench_group *bench_group_of(const bench_drawing *drawing, const chart_series *series);

/* The results of a group along one axis, ascending, at the value of the other axis that has most of them (of several,
 * the largest). members: room for all results. */
size_t bench_slice(const bench_drawing *drawing, const bench_group *group, trend_axis axis,
                   const bench_result **members);

/* "n = 16, avx2": the length, and what else tells the result from the others. */
const char *bench_point_name(bench_drawing *drawing, const bench_result *result);
/* "12 layers", "1 layer" */
const char *bench_count_text(bench_drawing *drawing, size_t count, const char *what);

void bench_fill_latency(bench_drawing *drawing);
void bench_fill_layers(bench_drawing *drawing);
void bench_fill_memory(bench_drawing *drawing);
void bench_fill_speedup(bench_drawing *drawing);
void bench_fill_error(bench_drawing *drawing);
void bench_fill_bars(bench_drawing *drawing);
void bench_fill_grid(bench_drawing *drawing);
void bench_fill_breakdown(bench_drawing *drawing);
void bench_fill_roofline(bench_drawing *drawing);

/* Figures of bench results. */
struct bench_drawing; /* bench_drawing.h */

/* A kind of figure. fill adds to the drawing as far as the results hold what the figure shows; `needs` says what that
 * is, in the words of the command line. */
typedef struct bench_figure_kind {
    const char *name, *shows, *needs;
    void (*fill)(struct bench_drawing *drawing);
    bool is_curve; /* among the panels of the figure that is drawn if none is asked for */
} bench_figure_kind;

extern const bench_figure_kind bench_figure_kinds[]; /* ends with name NULL */

/* Names of figures: the curves, each kind, all of them, a list. NULL-terminated. */
enum { BENCH_FIGURE_ALL = 10, BENCH_FIGURE_LIST };
extern const char *const bench_figure_names[];
/* NULL for what is no single kind. */
const bench_figure_kind *bench_figure_kind_of(int name);
/* Whether several files are drawn: in one chart of latency, which the curves then are. */
bool bench_figure_takes_files(int name);
/* Whether the results hold the values of the kind. A figure that has them but no room on its page is an error,
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
