/* A figure of bench results in the making: its panels, what they point to, and the series that results belong to.
 * Shared by bench_figures.c, which makes figures, and the files that fill them (bench_fill_...).
 *
 * Results of one file that are alike but for length and number of layers are a group: one tier, engine, number of
 * threads. A group
 * keeps its colour, marker and dash in all panels of a figure.
 *
 * SPDX-License-Identifier: MIT */
#ifndef PROGRAM_BENCH_BENCH_DRAWING_H
#define PROGRAM_BENCH_BENCH_DRAWING_H

#include "bench/trends.h"
#include "program/bench/bench_files.h"
#include "viz/attention_figure.h"
#include "viz/chart_columns.h"

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
    attention_figure grid; /* drawn instead of panels if it has panels of its own */
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
/* Whose colour and dash the series has. */
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
void bench_fill_grid(bench_drawing *drawing);
void bench_fill_breakdown(bench_drawing *drawing);
void bench_fill_roofline(bench_drawing *drawing);

#endif
