/* SPDX-License-Identifier: MIT */
#include "cli/figures/distance_axis.h"

#include "core/model/positions.h"

enum { LONGEST_LINEAR = 40 };

/* The first distance of a new table row stands beside the edge; edges between rows that serve one distance each are not
 * worth a stroke. */
static size_t find_edges(const position_rule *rule, ptrdiff_t reach, double *edges)
{
    size_t count = 0;
    for (ptrdiff_t r = -reach + 1; r <= reach; r++) {
        const size_t left = position_row(rule, r - 1), right = position_row(rule, r);
        if (left == right) continue;
        if (position_row(rule, r - 2) == left || position_row(rule, r + 1) == right) edges[count++] = (double)r - 0.5;
    }
    return count;
}

int distance_axis_make(figure_job *job, size_t reach, bool with_edges, distance_axis *axis)
{
    *axis = (distance_axis){.axis = {.label = "relative distance i \u2212 j",
                                     .scale = reach <= LONGEST_LINEAR ? CHART_WHOLE : CHART_SIGNED_LOG}};
    if (!with_edges || !job->info.relative_rows) return EXIT_OK;
    deberta_model_options model_options;
    if (!run_model_options(job->options, &model_options)) return EXIT_USAGE;
    const position_rule rule = {.span = job->info.relative_rows / 2,
                                .buckets = job->info.position_buckets,
                                .max_distance = job->info.max_relative_positions,
                                .clamp_distance = model_options.reference == DEBERTA_REFERENCE_MICROSOFT};
    double *edges = figure_job_allocate(job, 2 * reach, sizeof *edges);
    if (!edges) return figure_job_out_of_memory(job);
    axis->edge_count = find_edges(&rule, (ptrdiff_t)reach, edges);
    axis->edges = edges;
    return EXIT_OK;
}
