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

/* The files of one drawing: their results and names. */
typedef struct bench_files {
    const bench_results *results; /* [count] */
    const char *const *names;
    size_t count;
} bench_files;

/* Returns the results of all files, in order, under the environment sheet of the first. The options own the array;
 * the files own what the results point to. */
const bench_results *bench_files_join(const common_options *options, const bench_files *files);

/* Checks that several files can share a chart of latency over length: each must have a curve, and a length in common
 * with another. needs: what a file without a curve lacks, for the message. Fails with DEBERTA_E_ARGUMENT. */
deberta_status bench_files_check(const bench_files *files, const char *needs, deberta_error *err);

typedef struct bench_group {
    const bench_result *first;
    const char *name; /* facets that distinguish it from other groups: "avx2, 1 thread" */
    /* look of its series: a colour for each engine, a dash for each number of threads where that varies */
    size_t look, dash;
    bool listed; /* true: an earlier panel's legend lists it */
} bench_group;

typedef struct bench_drawing {
    const common_options *options; /* owner of all memory but the chart's */
    const bench_results *results;  /* results of all files; the sheet is the first file's */
    const bench_files *files;
    bool names_files; /* true: names include the file, because no other facet distinguishes groups of different
                       * files */
    bench_group *groups;
    size_t group_count;
    chart_columns chart;   /* panels of the figure */
    size_t panel_count;    /* number of panels that have series */
    attention_figure grid; /* drawn instead of panels if it has panels */
    const char *note;      /* note under the figure; NULL: none */
} bench_drawing;

/* Notes under the figure what was measured where, as far as it is the same for all results. */
void bench_name_machine(bench_drawing *drawing);
/* Adds another sentence under the figure. */
void bench_add_note(bench_drawing *drawing, const char *sentence);

/* Returns true if two results belong to one file and differ only along the axes, a sum of trend_axis. */
bool bench_same_series(const bench_drawing *drawing, const bench_result *a, const bench_result *b, unsigned axes);
/* Returns true if the files name different processors. */
bool bench_machines_vary(const bench_drawing *drawing);

/* Finds the groups of all results that have measurements. */
void bench_find_groups(bench_drawing *drawing);
/* Returns the name of a group for the legend of the current panel; NULL if an earlier panel of the figure lists
 * it. */
const char *bench_legend_name(const bench_drawing *drawing, bench_group *group);
/* Returns the group that gives the series its colour and dash. */
const bench_group *bench_group_of(const bench_drawing *drawing, const chart_series *series);

/* Collects the results of a group along one axis, ascending, at the most frequent value of the other axis (the
 * largest of several). members: room for all results. */
size_t bench_slice(const bench_drawing *drawing, const bench_group *group, trend_axis axis,
                   const bench_result **members);

/* Returns a name such as "n = 16, avx2": the length, and other facets that distinguish the result. */
const char *bench_point_name(bench_drawing *drawing, const bench_result *result);
/* Returns "12 layers" or "1 layer". */
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

/* A kind of figure. `fill` adds to the drawing whatever the results allow; `needs` says what it requires, in the
 * words of the command line. */
typedef struct bench_figure_kind {
    const char *name, *shows, *needs;
    void (*fill)(struct bench_drawing *drawing);
    bool is_curve; /* true: one of the panels of the default figure */
} bench_figure_kind;

extern const bench_figure_kind bench_figure_kinds[]; /* ends with name NULL */

/* Names of figures: the curves, each kind, all of them, a list; NULL-terminated. */
enum { BENCH_FIGURE_ALL = 10, BENCH_FIGURE_LIST };
extern const char *const bench_figure_names[];
/* Returns the kind of a name; NULL for names that are no single kind. */
const bench_figure_kind *bench_figure_kind_of(int name);
/* Returns true if several files can be drawn, which only the chart of latency allows. */
bool bench_figure_takes_files(int name);
/* Checks that the results hold the values of the kind. A figure with values but no room on its page is an error too,
 * DEBERTA_E_ARGUMENT. */
deberta_status bench_figures_can_draw(const common_options *options, const bench_files *files,
                                      const bench_figure_kind *kind, const figure_style *style, bool *can,
                                      deberta_error *err);

/* Draws one kind, or for NULL the curves: latency against length and layers, memory, and speed-up, as far as the
 * results vary in them; where nothing varies, it draws the breakdown. Fails with DEBERTA_E_ARGUMENT, naming what is
 * missing, if there is nothing to draw, or if one of several files has no curve of latency or no length in common
 * with another. */
deberta_status bench_figures_draw(const common_options *options, const bench_files *files,
                                  const bench_figure_kind *kind, const figure_style *style, const char *const *paths,
                                  size_t path_count, deberta_error *err);
