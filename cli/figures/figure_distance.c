/* `--figure distance`: what a head does at each distance. SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "cli/figures/distance_axis.h"
#include "cli/figures/figure_kinds.h"
#include "cli/figures/head_map.h"
#include "study/attention_statistics.h"
#include "viz/chart.h"

enum { WIDE_MM = 120 }; /* room for two charts side by side */
enum { COUNT, MEAN, MEDIAN, LOW, HIGH, STATISTICS };
static const char *const statistic_names[STATISTICS] = {"count", "mean", "median", "low", "high"};

typedef struct distance_work {
    figure_job *job;
    bool mean;      /* the curve; else the median */
    double part;    /* of the values that the ribbon leaves out on each side */
    size_t entries; /* distances of one head */
    const unsigned char *mask;
    double *layer, *head, *distance;                     /* [heads][entries], as all columns */
    double *column[DEBERTA_COMPONENT_COUNT][STATISTICS]; /* count: of the first component only */
} distance_work;

static int allocate(distance_work *w)
{
    figure_job *job = w->job;
    const size_t lines = head_count(job) * w->entries;
    bool all = (w->layer = figure_job_allocate(job, lines, sizeof(double))) != NULL;
    all &= (w->head = figure_job_allocate(job, lines, sizeof(double))) != NULL;
    all &= (w->distance = figure_job_allocate(job, lines, sizeof(double))) != NULL;
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
        for (size_t s = 0; s < STATISTICS && job->components[c]; s++)
            all &= (w->column[c][s] = figure_job_allocate(job, lines, sizeof(double))) != NULL;
    return all ? EXIT_OK : figure_job_out_of_memory(job);
}

/* The curve of one matrix into its columns. Logits without what is constant over the keys, unless that is to stay. */
static int measure(distance_work *w, size_t index, deberta_component component)
{
    figure_job *job = w->job;
    const size_t n = job->view.count, first = index * w->entries;
    const float *matrix;
    deberta_error error = {0};
    attention_by_distance curve;
    const int status = figure_job_matrix(job, &job->capture, &job->view, head_layer(job, index),
                                         head_number(job, index), component, &matrix);
    if (status != EXIT_OK) return status;
    if (component != DEBERTA_PROBABILITIES && !job->look.keep_row_mean) {
        float *centred = figure_job_allocate(job, n * n, sizeof *centred);
        if (!centred) return figure_job_out_of_memory(job);
        attention_centre_rows(centred, matrix, n, w->mask);
        matrix = centred;
    }
    const deberta_status measured = attention_by_distance_measure(&curve, matrix, n, w->mask, w->part, &error);
    for (size_t k = 0; k < w->entries && measured == DEBERTA_OK; k++) {
        w->column[component][COUNT][first + k] = (double)curve.count[k];
        w->column[component][MEAN][first + k] = curve.mean[k];
        w->column[component][MEDIAN][first + k] = curve.median[k];
        w->column[component][LOW][first + k] = curve.low[k];
        w->column[component][HIGH][first + k] = curve.high[k];
        w->layer[first + k] = (double)head_layer(job, index);
        w->head[first + k] = (double)head_number(job, index);
        w->distance[first + k] = (double)k - (double)(n - 1);
    }
    attention_by_distance_free(&curve);
    return measured == DEBERTA_OK ? EXIT_OK : report_error(job->options, &error);
}

static chart_series series_of(const distance_work *w, size_t index, int component)
{
    const size_t first = index * w->entries;
    return (chart_series){.name = component_name((deberta_component)component),
                          .kind = CHART_CURVE,
                          .x = w->distance + first,
                          .y = w->column[component][w->mean ? MEAN : MEDIAN] + first,
                          .low = w->column[component][LOW] + first,
                          .high = w->column[component][HIGH] + first,
                          .count = w->entries,
                          .look = (size_t)component + 1};
}

/* Terms and their sum in one panel, probabilities in the next. Returns how many panels that were; 0 without memory. */
static size_t fill_panels(distance_work *w, size_t index, const distance_axis *axis, chart_panel *panels)
{
    figure_job *job = w->job;
    static const chart_rule zero[] = {{.vertical = true, .at = 0}};
    size_t count = 0;
    for (int probabilities = 0; probabilities < 2; probabilities++) {
        chart_series *series = figure_job_allocate(job, DEBERTA_COMPONENT_COUNT, sizeof *series);
        const char *title = head_title(job, head_layer(job, index), head_number(job, index));
        chart_panel panel = {.title = title,
                             .x = axis->axis,
                             .series = series,
                             .rules = zero,
                             .rule_count = 1,
                             .edges = axis->edges,
                             .edge_count = axis->edge_count};
        panel.y.label = probabilities ? "probability"
                                      : figure_job_text(job, "%s%s", job->unit,
                                                        job->look.keep_row_mean ? "" : ", row mean subtracted");
        if (!series || !title || !panel.y.label) return 0;
        for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
            if (job->components[c] && (c == DEBERTA_PROBABILITIES) == probabilities)
                series[panel.series_count++] = series_of(w, index, c);
        if (panel.series_count) panels[count++] = panel;
    }
    return count;
}

static int add_columns(distance_work *w)
{
    figure_job *job = w->job;
    const size_t lines = head_count(job) * w->entries;
    deberta_error error = {0};
    bool counted = false;
    deberta_status status = figure_data_add_numbers(&job->data, "layer", w->layer, lines, &error);
    if (status == DEBERTA_OK) status = figure_data_add_numbers(&job->data, "head", w->head, lines, &error);
    if (status == DEBERTA_OK) status = figure_data_add_numbers(&job->data, "distance", w->distance, lines, &error);
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
        for (size_t s = 0; s < STATISTICS && job->components[c] && status == DEBERTA_OK; s++) {
            if (s == COUNT && counted) continue;
            counted = true;
            const char *name =
                s == COUNT ? statistic_names[COUNT]
                           : figure_job_text(job, "%s_%s", component_name((deberta_component)c), statistic_names[s]);
            if (!name) return figure_job_out_of_memory(job);
            status = figure_data_add_numbers(&job->data, name, w->column[c][s], lines, &error);
        }
    return status == DEBERTA_OK ? EXIT_OK : report_error(job->options, &error);
}

static int draw(distance_work *w)
{
    figure_job *job = w->job;
    distance_axis axis;
    int status = distance_axis_make(job, job->view.count - 1, !job->view_choice.words, &axis);
    chart_panel *panels = figure_job_allocate(job, 2 * head_count(job), sizeof *panels);
    if (status == EXIT_OK && !panels) status = figure_job_out_of_memory(job);
    if (status != EXIT_OK) return status;
    chart_figure chart = {.panels = panels, .columns = job->look.columns, .panel_letters = job->look.letters};
    const bool wide = job->style.width_mm == 0 || job->style.width_mm >= WIDE_MM;
    for (size_t k = 0; k < head_count(job); k++) {
        const size_t added = fill_panels(w, k, &axis, panels + chart.panel_count);
        if (!added) return figure_job_out_of_memory(job);
        if (!chart.columns && added == 2 && wide) chart.columns = 2; /* a line of the figure is a head */
        chart.panel_count += added;
    }
    figure_job_note(job, "%s over pairs of tokens, ribbon: quantiles %g to %g. Positive distances: keys to the left. ",
                    w->mean ? "Mean" : "Median", w->part, 1 - w->part);
    if (axis.edge_count && axis.edge_step == 1) figure_job_note(job, "Strokes at the top: bucket edges. ");
    if (axis.edge_step > 1) figure_job_note(job, "Strokes at the top: one in %zu bucket edges. ", axis.edge_step);
    figure_job_caption(job, "Components of attention against the distance between query and key. ");
    chart.style = job->style;
    return figure_job_finish(job, chart_layout, &chart);
}

static int run(figure_job *job)
{
    static const char *const statistics[] = {"median", "mean", NULL};
    distance_work w = {.job = job, .entries = 2 * job->view.count - 1};
    size_t statistic;
    if (!options_choice(job->options, "statistic", statistics, 0, &statistic) ||
        !options_number(job->options, "ribbon", 0.1, &w.part))
        return EXIT_USAGE;
    if (!(w.part >= 0 && w.part <= 0.5))
        return report_usage(job->options, "--ribbon: expected 0 to 0.5, the part left out on each side, found '%s'",
                            options_value(job->options, "ribbon", ""));
    w.mean = statistic == 1;
    int status = allocate(&w);
    if (status == EXIT_OK) status = figure_job_encode(job);
    if (status == EXIT_OK) status = head_mask(job, &w.mask);
    for (size_t k = 0; k < head_count(job); k++)
        for (int c = 0; c < DEBERTA_COMPONENT_COUNT && status == EXIT_OK; c++)
            if (job->components[c]) status = measure(&w, k, (deberta_component)c);
    if (status == EXIT_OK) status = add_columns(&w);
    return status == EXIT_OK ? draw(&w) : status;
}

static const char *const options[] = {"components", "statistic", "ribbon", "center", "letters", "layout", NULL};

const figure_kind figure_distance = {
    .name = "distance",
    .summary = "each component and the probabilities against the distance of query and key",
    .layers = "0",
    .heads = "0",
    .components = "c2c,c2p,p2c,probs",
    .options = options,
    .run = run,
};
