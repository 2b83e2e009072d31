/* SPDX-License-Identifier: MIT */
#include "cli/figures/distance_curves.h"

#include "cli/figures/head_map.h"

enum { WIDE_MM = 120 }; /* room for two charts side by side */

static const char *const statistic_names[DISTANCE_STATISTICS] = {"count", "mean", "median", "low", "high"};

static int read_options(const figure_job *job, distance_statistic fallback, distance_curves *curves)
{
    static const char *const statistics[] = {"median", "mean", NULL};
    size_t statistic;
    if (!options_choice(job->options, "statistic", statistics, fallback == DISTANCE_MEAN, &statistic) ||
        !options_number(job->options, "ribbon", 0.1, &curves->part))
        return EXIT_USAGE;
    if (!(curves->part >= 0 && curves->part <= 0.5))
        return say_usage(job->options, "--ribbon: expected 0 to 0.5, the part left out on each side, found '%s'",
                         options_value(job->options, "ribbon", ""));
    curves->mean = statistic == 1;
    return EXIT_OK;
}

int distance_curves_open(figure_job *job, size_t reach, distance_statistic fallback, distance_curves *curves)
{
    *curves = (distance_curves){.reach = reach, .entries = 2 * reach + 1};
    const int status = read_options(job, fallback, curves);
    if (status != EXIT_OK) return status;
    const size_t lines = head_count(job) * curves->entries;
    bool all = (curves->layer = figure_job_allocate(job, lines, sizeof(double))) != NULL;
    all &= (curves->head = figure_job_allocate(job, lines, sizeof(double))) != NULL;
    all &= (curves->distance = figure_job_allocate(job, lines, sizeof(double))) != NULL;
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
        for (size_t s = 0; s < DISTANCE_STATISTICS && job->components[c]; s++)
            all &= (curves->column[c][s] = figure_job_allocate(job, lines, sizeof(double))) != NULL;
    if (!all) return figure_job_out_of_memory(job);
    for (size_t line = 0; line < lines; line++) {
        const size_t index = line / curves->entries;
        curves->layer[line] = (double)head_layer(job, index);
        curves->head[line] = (double)head_number(job, index);
        curves->distance[line] = (double)(line % curves->entries) - (double)reach;
    }
    return EXIT_OK;
}

int distance_curves_add_data(figure_job *job, const distance_curves *curves)
{
    const size_t lines = head_count(job) * curves->entries;
    deberta_error error = {0};
    bool counted = false;
    deberta_status status = figure_data_add_numbers(&job->data, "layer", curves->layer, lines, &error);
    if (status == DEBERTA_OK) status = figure_data_add_numbers(&job->data, "head", curves->head, lines, &error);
    if (status == DEBERTA_OK) status = figure_data_add_numbers(&job->data, "distance", curves->distance, lines, &error);
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
        for (size_t s = 0; s < DISTANCE_STATISTICS && job->components[c] && status == DEBERTA_OK; s++) {
            if (s == DISTANCE_COUNT && counted) continue;
            counted = true;
            const char *name =
                s == DISTANCE_COUNT
                    ? statistic_names[s]
                    : figure_job_text(job, "%s_%s", deberta_component_name((deberta_component)c), statistic_names[s]);
            if (!name) return figure_job_out_of_memory(job);
            status = figure_data_add_numbers(&job->data, name, curves->column[c][s], lines, &error);
        }
    return status == DEBERTA_OK ? EXIT_OK : say_error(job->options, &error);
}

/* title NULL: without memory; no series: nothing of the kind was chosen. */
static chart_panel make_panel(figure_job *job, const distance_curves *curves, const distance_axis *axis, size_t index,
                              bool probabilities)
{
    static const chart_rule zero = {.vertical = true, .at = 0};
    const size_t first = index * curves->entries;
    chart_series *series = figure_job_allocate(job, DEBERTA_COMPONENT_COUNT, sizeof *series);
    chart_panel panel = {.title = series ? head_title(job, head_layer(job, index), head_number(job, index)) : NULL,
                         .x = axis->axis,
                         .y = {.label = probabilities ? "probability" : job->unit},
                         .series = series,
                         .rules = &zero,
                         .rule_count = 1,
                         .edges = axis->edges,
                         .edge_count = axis->edge_count};
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT && series; c++) {
        if (!job->components[c] || (c == DEBERTA_PROBABILITIES) != probabilities) continue;
        series[panel.series_count++] =
            (chart_series){.name = deberta_component_name((deberta_component)c),
                           .kind = CHART_CURVE,
                           .x = curves->distance + first,
                           .y = curves->column[c][curves->mean ? DISTANCE_MEAN : DISTANCE_MEDIAN] + first,
                           .low = curves->column[c][DISTANCE_LOW] + first,
                           .high = curves->column[c][DISTANCE_HIGH] + first,
                           .count = curves->entries,
                           .look = (size_t)c + 1};
    }
    return panel;
}

static int fill(figure_job *job, const distance_curves *curves, const distance_axis *axis, chart_figure *chart)
{
    chart_panel *panels = figure_job_allocate(job, 2 * head_count(job), sizeof *panels);
    if (!panels) return figure_job_out_of_memory(job);
    chart->panels = panels;
    const bool wide = job->style.width_mm == 0 || job->style.width_mm >= WIDE_MM;
    for (size_t k = 0; k < head_count(job); k++) {
        size_t added = 0;
        for (int probabilities = 0; probabilities < 2; probabilities++) {
            chart_panel *panel = &panels[chart->panel_count + added];
            *panel = make_panel(job, curves, axis, k, probabilities);
            if (!panel->title) return figure_job_out_of_memory(job);
            added += panel->series_count > 0;
        }
        if (!chart->columns && added == 2 && wide) chart->columns = 2; /* a line of the figure is a head */
        chart->panel_count += added;
    }
    return EXIT_OK;
}

int distance_curves_chart(figure_job *job, const distance_curves *curves, bool with_edges, const char *over,
                          chart_figure *chart)
{
    distance_axis axis;
    *chart = (chart_figure){.columns = job->look.columns, .panel_letters = job->look.letters};
    int status = distance_axis_make(job, curves->reach, with_edges, &axis);
    if (status == EXIT_OK) status = fill(job, curves, &axis, chart);
    if (status != EXIT_OK) return status;
    figure_job_note(job, "%s over %s, ribbon: quantiles %g to %g. Positive distances: keys to the left. ",
                    curves->mean ? "Mean" : "Median", over, curves->part, 1 - curves->part);
    if (axis.edge_count && axis.edge_step == 1) figure_job_note(job, "Strokes at the top: bucket edges. ");
    if (axis.edge_step > 1) figure_job_note(job, "Strokes at the top: one in %zu bucket edges. ", axis.edge_step);
    if (!job->look.keep_row_mean) figure_job_note(job, "Row means of logits are subtracted: a softmax ignores them. ");
    chart->style = job->style;
    return EXIT_OK;
}
