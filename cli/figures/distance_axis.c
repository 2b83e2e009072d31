/* SPDX-License-Identifier: MIT */
#include "cli/figures/distance_axis.h"

#include <string.h>

enum { LONGEST_LINEAR = 40, MOST_EDGES = 30 };

/* Edges on one side, from the middle outwards. Those between rows that serve one distance each are not worth a stroke.
 */
static size_t find_edges(const deberta_model_info *info, deberta_reference rule, ptrdiff_t reach, int side,
                         double *edges)
{
    size_t count = 0;
    for (ptrdiff_t r = 1; r <= reach; r++) {
        const size_t inner = deberta_position_row(info, rule, side * (r - 1)),
                     outer = deberta_position_row(info, rule, side * r);
        const bool wide = (r > 1 && deberta_position_row(info, rule, side * (r - 2)) == inner) ||
                          deberta_position_row(info, rule, side * (r + 1)) == outer;
        if (inner != outer && wide) edges[count++] = side * ((double)r - 0.5);
    }
    return count;
}

/* Keeps so few of the edges of a side that strokes stay apart; returns how many. */
static size_t thin_out(double *edges, size_t count, size_t step)
{
    for (size_t k = 0; k < count; k += step) edges[k / step] = edges[k];
    return (count + step - 1) / step;
}

int distance_axis_make(figure_job *job, size_t reach, bool with_edges, distance_axis *axis)
{
    *axis = (distance_axis){.axis = {.label = "relative distance i \u2212 j",
                                     .scale = reach <= LONGEST_LINEAR ? CHART_WHOLE : CHART_SIGNED_LOG}};
    if (!with_edges || !job->info.relative_rows) return EXIT_OK;
    deberta_model_options model_options;
    fill_model_options(job->options, &model_options);
    const deberta_reference rule = model_options.reference;
    double *edges = figure_job_allocate(job, 2 * reach, sizeof *edges);
    if (!edges) return figure_job_out_of_memory(job);
    const size_t left = find_edges(&job->info, rule, (ptrdiff_t)reach, 1, edges);
    const size_t right = find_edges(&job->info, rule, (ptrdiff_t)reach, -1, edges + left),
                 most = left > right ? left : right;
    axis->edge_step = most > MOST_EDGES ? (most + MOST_EDGES - 1) / MOST_EDGES : 1;
    axis->edge_count = thin_out(edges, left, axis->edge_step);
    const size_t kept = thin_out(edges + left, right, axis->edge_step);
    memmove(edges + axis->edge_count, edges + left, kept * sizeof *edges);
    axis->edge_count += kept;
    axis->edges = edges;
    return EXIT_OK;
}
