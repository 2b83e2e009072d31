/* `--figure entropy`: how spread the attention of each head is, and how far it reaches. SPDX-License-Identifier: MIT */
#include <math.h>

#include "cli/figures/figure_kinds.h"
#include "cli/figures/head_map.h"
#include "analysis/attention_statistics.h"

static int run(figure_job *job)
{
    double *entropy = head_numbers(job), *distance = head_numbers(job), *offset = head_numbers(job);
    attention_panel panels[3];
    const unsigned char *mask;
    attention_figure figure;
    int status = figure_job_encode(job);
    if (status == EXIT_OK) status = head_mask(job, &mask);
    if (status == EXIT_OK && (!entropy || !distance || !offset)) status = figure_job_out_of_memory(job);
    for (size_t k = 0; k < head_count(job) && status == EXIT_OK; k++) {
        const float *matrix;
        status = figure_job_matrix(job, &job->capture, &job->view, head_layer(job, k), head_number(job, k),
                                   DEBERTA_PROBABILITIES, &matrix);
        if (status != EXIT_OK) break;
        const attention_summary summary = attention_summarize(matrix, job->view.count, head_positions(job), mask);
        entropy[k] = summary.entropy;
        distance[k] = summary.distance;
        offset[k] = summary.offset;
    }
    if (status != EXIT_OK) return status;
    figure_job_note(job, "Means over %zu %s; attention spread evenly has an entropy of %.2f bits. ", job->view.count,
                    job->view.count == 1 ? "query" : "queries", log2((double)job->view.count));
    figure_job_caption(job, "Entropy of the attention of each head, and the distance and direction it looks. ");
    status = head_map_figure(job, &figure);
    figure.panels = panels;
    figure.grid_columns = 3;
    /* colour bars stand in the order of the kinds: panels too, so that each is above its own */
    figure.units[HEATMAP_SIGNED] = figure_job_text(job, "mean i \u2212 j (%s; > 0: to the left)", head_unit(job));
    figure.units[HEATMAP_POSITIVE] = figure_job_text(job, "mean |i \u2212 j| (%s)", head_unit(job));
    figure.units[HEATMAP_RANGE] = "entropy (bits)";
    if (status == EXIT_OK) status = head_map_panel(job, &panels[0], "direction", HEATMAP_SIGNED, offset);
    if (status == EXIT_OK) status = head_map_panel(job, &panels[1], "distance", HEATMAP_POSITIVE, distance);
    if (status == EXIT_OK) status = head_map_panel(job, &panels[2], "entropy", HEATMAP_RANGE, entropy);
    if (status == EXIT_OK) status = head_map_column(job, "entropy_bits", entropy);
    if (status == EXIT_OK) status = head_map_column(job, "mean_distance", distance);
    if (status == EXIT_OK) status = head_map_column(job, "mean_offset", offset);
    return status == EXIT_OK ? figure_job_finish(job, attention_layout, &figure) : status;
}

static const char *const options[] = {"scale", "palette", "signed-palette", "annotate", "letters", "layout", NULL};

const figure_kind figure_entropy = {
    .name = "entropy",
    .summary = "entropy, mean distance and direction of the attention of each head",
    .layers = "all",
    .heads = "all",
    .components = "probs",
    .options = options,
    .run = run,
};
