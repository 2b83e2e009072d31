/* `--figure kernel`: what the position terms do at each distance, over all texts of the input.
 * SPDX-License-Identifier: MIT */
#include "cli/figures/distance_axis.h"
#include "cli/figures/figure_kinds.h"
#include "cli/figures/head_map.h"
#include "study/attention_statistics.h"
#include "study/distance_sample.h"

enum { COUNT, MEAN, LOW, HIGH, STATISTICS };
static const char *const statistic_names[STATISTICS] = {"count", "mean", "low", "high"};

typedef struct kernel_work {
    figure_job *job;
    double part;              /* of the values that the ribbon leaves out on each side */
    size_t reach, entries;    /* distances -reach ... reach */
    size_t texts;             /* that have tokens */
    distance_sample *samples; /* [head_count][components]; values NULL where unwanted */
    double *layer, *head, *distance;
    double *column[DEBERTA_COMPONENT_COUNT][STATISTICS]; /* [head_count][entries] */
} kernel_work;

static int take(kernel_work *w)
{
    figure_job *job = w->job;
    const size_t lines = head_count(job) * w->entries;
    double **const fixed[] = {&w->layer, &w->head, &w->distance};
    uint64_t seed;
    deberta_error error = {0};
    if (!options_u64(job->options, "seed", 1, &seed)) return EXIT_USAGE;
    w->samples = figure_job_allocate(job, head_count(job) * DEBERTA_COMPONENT_COUNT, sizeof *w->samples);
    if (!w->samples) return figure_job_out_of_memory(job);
    for (size_t k = 0; k < 3; k++)
        if (!(*fixed[k] = figure_job_allocate(job, lines, sizeof(double)))) return figure_job_out_of_memory(job);
    for (size_t c = 0; c < DEBERTA_COMPONENT_COUNT; c++) {
        if (!job->components[c]) continue;
        for (size_t s = 0; s < STATISTICS; s++)
            if (!(w->column[c][s] = figure_job_allocate(job, lines, sizeof(double))))
                return figure_job_out_of_memory(job);
        for (size_t k = 0; k < head_count(job); k++)
            if (distance_sample_create(&w->samples[k * DEBERTA_COMPONENT_COUNT + c], w->reach, seed, &error) !=
                DEBERTA_OK)
                return report_error(job->options, &error);
    }
    return EXIT_OK;
}

/* --------------------------------------------------------------------------------------------------------- corpus */

/* One captured text into the samples; terms without what is constant over the keys, unless that is to stay. */
static int add_text(kernel_work *w, const capture *captured, const token_view *view)
{
    const figure_job *job = w->job;
    const unsigned char *mask = job->input.mask ? job->input.mask + view->first_token : NULL;
    deberta_error error = {0};
    for (size_t k = 0; k < head_count(job); k++) {
        for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++) {
            if (!job->components[c]) continue;
            float *matrix = capture_matrix(captured, head_layer(job, k), head_number(job, k), (deberta_component)c, 0);
            if (!job->look.keep_row_mean && c != DEBERTA_PROBABILITIES)
                attention_centre_rows(matrix, matrix, view->span[1], mask);
            if (distance_sample_add(&w->samples[k * DEBERTA_COMPONENT_COUNT + (size_t)c], matrix, view->span[1], mask,
                                    &error) != DEBERTA_OK)
                return report_error(job->options, &error);
        }
    }
    return EXIT_OK;
}

static int run_text(kernel_work *w, size_t row)
{
    figure_job *job = w->job;
    const token_view_choice everything = {.end = SIZE_MAX};
    token_view view = {0};
    capture captured = {0};
    deberta_error error = {0};
    if (token_view_make(&view, &job->input, row, &everything, &error) != DEBERTA_OK)
        return figure_job_fail(job, &error);
    int status = figure_job_open_capture(job, &job->info, &view, &captured);
    const deberta_observer observer = capture_observer(&captured);
    if (status == EXIT_OK) status = figure_job_observe(job, job->session, row, &observer);
    if (status == EXIT_OK) status = add_text(w, &captured, &view);
    capture_free(&captured);
    token_view_free(&view);
    return status;
}

static int run_texts(kernel_work *w)
{
    figure_job *job = w->job;
    int status = figure_job_open_session(job, job->model, DEBERTA_OBSERVE_ATTENTION, &job->session);
    progress_bar bar = progress_begin(job->options, "kernel", job->input.rows);
    for (size_t row = 0; row < job->input.rows && status == EXIT_OK; row++) {
        if (job->input.row[row].tokens == 0) continue;
        w->texts++;
        status = run_text(w, row);
        progress_step(&bar, row + 1, NULL);
    }
    progress_end(&bar);
    return status;
}

static void summarise(kernel_work *w)
{
    const figure_job *job = w->job;
    const double parts[2] = {w->part, 1 - w->part};
    for (size_t k = 0; k < head_count(job); k++) {
        for (size_t e = 0; e < w->entries; e++) {
            const size_t line = k * w->entries + e;
            const ptrdiff_t distance = (ptrdiff_t)e - (ptrdiff_t)w->reach;
            w->layer[line] = (double)head_layer(job, k);
            w->head[line] = (double)head_number(job, k);
            w->distance[line] = (double)distance;
            for (size_t c = 0; c < DEBERTA_COMPONENT_COUNT; c++) {
                const distance_sample *sample = &w->samples[k * DEBERTA_COMPONENT_COUNT + c];
                double ends[2];
                if (!sample->values) continue;
                distance_sample_quantiles(sample, distance, parts, 2, ends);
                w->column[c][COUNT][line] = (double)sample->values[e].count;
                w->column[c][MEAN][line] = distance_sample_mean(sample, distance);
                w->column[c][LOW][line] = ends[0];
                w->column[c][HIGH][line] = ends[1];
            }
        }
    }
}

/* -------------------------------------------------------------------------------------------------------- drawing */

static int add_columns(kernel_work *w)
{
    figure_job *job = w->job;
    const size_t lines = head_count(job) * w->entries;
    deberta_error error = {0};
    bool counted = false;
    deberta_status status = figure_data_add_numbers(&job->data, "layer", w->layer, lines, &error);
    if (status == DEBERTA_OK) status = figure_data_add_numbers(&job->data, "head", w->head, lines, &error);
    if (status == DEBERTA_OK) status = figure_data_add_numbers(&job->data, "distance", w->distance, lines, &error);
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++) {
        for (size_t s = 0; s < STATISTICS && job->components[c] && status == DEBERTA_OK; s++) {
            if (s == COUNT && counted) continue; /* the same for all components */
            const char *name =
                s == COUNT ? statistic_names[s]
                           : figure_job_text(job, "%s_%s", component_name((deberta_component)c), statistic_names[s]);
            counted = true;
            if (!name) return figure_job_out_of_memory(job);
            status = figure_data_add_numbers(&job->data, name, w->column[c][s], lines, &error);
        }
    }
    return status == DEBERTA_OK ? EXIT_OK : report_error(job->options, &error);
}

static bool fill_panel(kernel_work *w, size_t index, const distance_axis *axis, chart_panel *panel)
{
    figure_job *job = w->job;
    static const chart_rule zero = {.vertical = true, .at = 0};
    chart_series *series = figure_job_allocate(job, DEBERTA_COMPONENT_COUNT, sizeof *series);
    *panel = (chart_panel){.title = head_title(job, head_layer(job, index), head_number(job, index)),
                           .x = axis->axis,
                           .series = series,
                           .rules = &zero,
                           .rule_count = 1,
                           .edges = axis->edges,
                           .edge_count = axis->edge_count};
    panel->y.label = job->unit;
    if (!series || !panel->title) return false;
    for (size_t c = 0; c < DEBERTA_COMPONENT_COUNT; c++) {
        if (!job->components[c]) continue;
        const size_t first = index * w->entries;
        series[panel->series_count++] = (chart_series){.name = component_name((deberta_component)c),
                                                       .kind = CHART_CURVE,
                                                       .x = w->distance + first,
                                                       .y = w->column[c][MEAN] + first,
                                                       .low = w->column[c][LOW] + first,
                                                       .high = w->column[c][HIGH] + first,
                                                       .count = w->entries,
                                                       .look = c + 1};
    }
    return true;
}

static int draw(kernel_work *w)
{
    figure_job *job = w->job;
    distance_axis axis;
    int status = distance_axis_make(job, w->reach, true, &axis);
    if (status != EXIT_OK) return status;
    chart_panel *panels = figure_job_allocate(job, head_count(job), sizeof *panels);
    if (!panels) return figure_job_out_of_memory(job);
    chart_figure chart = {.panels = panels,
                          .panel_count = head_count(job),
                          .columns = job->look.columns,
                          .panel_letters = job->look.letters};
    for (size_t k = 0; k < head_count(job); k++)
        if (!fill_panel(w, k, &axis, &panels[k])) return figure_job_out_of_memory(job);
    figure_job_note(
        job,
        "Mean over all pairs of tokens of %zu text%s, ribbon: quantiles %g to %g%s. Positive distances: keys "
        "to the left. %s",
        w->texts, w->texts == 1 ? "" : "s", w->part, 1 - w->part,
        axis.edge_count ? "; strokes at the top: bucket edges" : "",
        job->look.keep_row_mean ? "" : "Row means are subtracted, as a softmax does not see them. ");
    figure_job_caption(job, "Position terms against the distance between query and key, over a corpus. ");
    chart.style = job->style;
    return figure_job_finish(job, chart_layout, &chart);
}

static int run(figure_job *job)
{
    kernel_work w = {.job = job};
    if (!options_number(job->options, "ribbon", 0.1, &w.part)) return EXIT_USAGE;
    if (!(w.part >= 0 && w.part <= 0.5))
        return report_usage(job->options, "--ribbon: expected 0 to 0.5, the part left out on each side, found '%s'",
                            options_value(job->options, "ribbon", ""));
    for (size_t r = 0; r < job->input.rows; r++)
        if (job->input.row[r].tokens > w.reach + 1) w.reach = job->input.row[r].tokens - 1;
    w.entries = 2 * w.reach + 1;
    int status = take(&w);
    if (status == EXIT_OK) status = run_texts(&w);
    if (status == EXIT_OK) {
        summarise(&w);
        status = add_columns(&w);
    }
    if (status == EXIT_OK) status = draw(&w);
    for (size_t k = 0; w.samples && k < head_count(job) * DEBERTA_COMPONENT_COUNT; k++)
        distance_sample_free(&w.samples[k]);
    return status;
}

static const char *const options[] = {"components", "ribbon", "center", "letters", "layout", NULL};

const figure_kind figure_kernel = {
    .name = "kernel",
    .summary = "position terms against the distance, mean and quantiles over all texts",
    .layers = "0",
    .heads = "0",
    .components = "c2p,p2c",
    .options = options,
    .run = run,
};
