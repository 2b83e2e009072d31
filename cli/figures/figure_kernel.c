/* `--figure kernel`: what the position terms do at each distance, over all texts of the input.
 * SPDX-License-Identifier: MIT */
#include "cli/figures/distance_curves.h"
#include "cli/figures/figure_kinds.h"
#include "cli/figures/head_map.h"
#include "analysis/attention_statistics.h"
#include "analysis/distance_sample.h"

typedef struct kernel_work {
    figure_job *job;
    distance_curves curves;
    size_t texts;             /* that have tokens */
    distance_sample *samples; /* [head_count][components]; values NULL where unwanted */
} kernel_work;

static int take(kernel_work *w)
{
    figure_job *job = w->job;
    uint64_t seed;
    deberta_error error = {0};
    if (!options_u64(job->options, "seed", 1, &seed)) return EXIT_USAGE;
    w->samples = figure_job_allocate(job, head_count(job) * DEBERTA_COMPONENT_COUNT, sizeof *w->samples);
    if (!w->samples) return figure_job_out_of_memory(job);
    for (size_t k = 0; k < head_count(job) * DEBERTA_COMPONENT_COUNT; k++)
        if (job->components[k % DEBERTA_COMPONENT_COUNT] &&
            distance_sample_create(&w->samples[k], w->curves.reach, seed, &error) != DEBERTA_OK)
            return say_error(job->options, &error);
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
                return say_error(job->options, &error);
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

/* All distances of one sample into the lines of its head. */
static void summarise(distance_curves *curves, const distance_sample *sample, size_t first, double **column)
{
    const double parts[3] = {curves->part, 0.5, 1 - curves->part};
    for (size_t e = 0; e < curves->entries; e++) {
        const ptrdiff_t distance = (ptrdiff_t)e - (ptrdiff_t)curves->reach;
        double found[3];
        distance_sample_quantiles(sample, distance, parts, 3, found);
        column[DISTANCE_COUNT][first + e] = (double)sample->values[e].count;
        column[DISTANCE_MEAN][first + e] = distance_sample_mean(sample, distance);
        column[DISTANCE_LOW][first + e] = found[0];
        column[DISTANCE_MEDIAN][first + e] = found[1];
        column[DISTANCE_HIGH][first + e] = found[2];
    }
}

static void summarise_all(kernel_work *w)
{
    const figure_job *job = w->job;
    for (size_t k = 0; k < head_count(job); k++)
        for (size_t c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
            if (job->components[c])
                summarise(&w->curves, &w->samples[k * DEBERTA_COMPONENT_COUNT + c], k * w->curves.entries,
                          w->curves.column[c]);
}

/* -------------------------------------------------------------------------------------------------------- drawing */

static int draw(kernel_work *w)
{
    figure_job *job = w->job;
    chart_figure chart;
    const char *over = figure_job_text(job, "all pairs of tokens of %zu text%s", w->texts, w->texts == 1 ? "" : "s");
    if (!over) return figure_job_out_of_memory(job);
    figure_job_caption(job, "Position terms against the distance between query and key, over a corpus. ");
    const int status = distance_curves_chart(job, &w->curves, true, over, &chart);
    return status == EXIT_OK ? figure_job_finish(job, chart_layout, &chart) : status;
}

static int run(figure_job *job)
{
    kernel_work w = {.job = job};
    size_t longest = 1;
    for (size_t r = 0; r < job->input.rows; r++)
        if (job->input.row[r].tokens > longest) longest = job->input.row[r].tokens;
    int status = distance_curves_open(job, longest - 1, DISTANCE_MEAN, &w.curves);
    if (status == EXIT_OK) status = take(&w);
    if (status == EXIT_OK) status = run_texts(&w);
    if (status == EXIT_OK) {
        summarise_all(&w);
        status = distance_curves_add_data(job, &w.curves);
    }
    if (status == EXIT_OK) status = draw(&w);
    for (size_t k = 0; w.samples && k < head_count(job) * DEBERTA_COMPONENT_COUNT; k++)
        distance_sample_free(&w.samples[k]);
    return status;
}

static const char *const options[] = {DISTANCE_CURVES_OPTIONS, NULL};

const figure_kind figure_kernel = {
    .name = "kernel",
    .summary = "position terms against the distance, mean and quantiles over all texts",
    .layers = "0",
    .heads = "0",
    .components = "c2p,p2c",
    .options = options,
    .all_rows = true,
    .run = run,
};
