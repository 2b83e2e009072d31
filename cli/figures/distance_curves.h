/* Statistics at every distance for each chosen head and component: columns of the data, and panels of curves with
 * ribbons. What is measured, on one text or many, is the kind's affair.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CLI_FIGURES_DISTANCE_CURVES_H
#define CLI_FIGURES_DISTANCE_CURVES_H

#include "cli/figures/distance_axis.h"
#include "viz/chart.h"

typedef enum distance_statistic {
    DISTANCE_COUNT,
    DISTANCE_MEAN,
    DISTANCE_MEDIAN,
    DISTANCE_LOW,
    DISTANCE_HIGH,
    DISTANCE_STATISTICS
} distance_statistic;

typedef struct distance_curves {
    bool mean;                       /* the curve; else the median. From --statistic */
    double part;                     /* of the values that the ribbon leaves out on each side. From --ribbon */
    size_t reach, entries;           /* distances -reach ... reach of one head */
    double *layer, *head, *distance; /* [heads][entries], as all columns */
    double *column[DEBERTA_COMPONENT_COUNT][DISTANCE_STATISTICS]; /* count: the same for all components */
} distance_curves;

/* The options that kinds with such curves take. */
#define DISTANCE_CURVES_OPTIONS "components", "statistic", "ribbon", "center", "letters", "layout"

/* Reads the options and allocates; layer, head and distance are filled in. fallback: DISTANCE_MEAN or _MEDIAN. */
int distance_curves_open(figure_job *job, size_t reach, distance_statistic fallback, distance_curves *curves);
/* A line for each head and distance. */
int distance_curves_add_data(figure_job *job, const distance_curves *curves);

/* Panels of the chosen heads: the terms and their sum in one, the probabilities in the next. Notes say what the curves
 * are and `over` what they were taken: "pairs of tokens". The style is copied last. */
int distance_curves_chart(figure_job *job, const distance_curves *curves, bool with_edges, const char *over,
                          chart_figure *chart);

#endif
