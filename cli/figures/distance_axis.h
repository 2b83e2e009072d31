/* The axis of curves over the distance i - j, with the edges of the model's buckets.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CLI_FIGURES_DISTANCE_AXIS_H
#define CLI_FIGURES_DISTANCE_AXIS_H

#include "cli/figures/figure_job.h"
#include "viz/chart.h"

typedef struct distance_axis {
    chart_axis axis;     /* linear where few distances are shown, else signed logarithmic */
    const double *edges; /* between distances of different table rows, where one of these rows serves several */
    size_t edge_count,
        edge_step; /* on each side every edge_step-th is there, counted from the middle: more would merge */
} distance_axis;

/* For |i - j| <= reach. Edges only if wanted and if the model has a relative table. */
int distance_axis_make(figure_job *job, size_t reach, bool with_edges, distance_axis *axis);

#endif
