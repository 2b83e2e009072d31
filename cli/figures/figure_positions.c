/* `--figure distances` and `--figure rows`: relative positions as numbers, before any weight comes in.
 * SPDX-License-Identifier: MIT */
#include "cli/figures/figure_kinds.h"
#include "cli/figures/figure_reference.h"

/* Cells of the view's tokens; of words, of their first pieces. */
static const float *pick(figure_job *job, const float *whole)
{
    const size_t count = job->view.count, n = job->view.span[1];
    float *shown = figure_job_allocate(job, count * count, sizeof *shown);
    for (size_t i = 0; shown && i < count; i++)
        for (size_t j = 0; j < count; j++)
            shown[i * count + j] =
                whole[job->view.members[job->view.starts[i]] * n + job->view.members[job->view.starts[j]]];
    return shown;
}

static int finish(figure_job *job, const float *whole, const char *name, attention_panel panel, const char *unit)
{
    panel.values = pick(job, whole);
    panel.stride = job->view.count;
    if (!panel.values) return figure_job_out_of_memory(job);
    if (job->view_choice.words) figure_job_note(job, "Positions of words are those of their first pieces. ");
    const int status = figure_job_add_matrix(job, name, no_index, no_index, panel.values);
    if (status != EXIT_OK) return status;
    /* One cell tells how to read the others. */
    const attention_mark middle = {job->view.count / 2, job->view.count / 4};
    const attention_mark mark = job->mark_count ? job->marks[0] : middle;
    figure_job_note(job, "The marked cell: query \u201c%s\u201d, key \u201c%s\u201d, %g. ",
                    job->view.labels[mark.query].text, job->view.labels[mark.key].text,
                    (double)panel.values[mark.query * job->view.count + mark.key]);
    attention_figure figure = figure_job_attention(job);
    if (!figure.mark_count) {
        figure.marks = &middle;
        figure.mark_count = 1;
    }
    figure.panels = &panel;
    figure.grid_rows = figure.grid_columns = 1;
    figure.annotate_if_room = true;
    figure.keep_row_mean = true;
    figure.units[panel.kind] = unit;
    return figure_job_finish(job, attention_layout, &figure);
}

static int run_distances(figure_job *job)
{
    const size_t n = job->view.span[1];
    float *whole = figure_job_allocate(job, n * n, sizeof *whole);
    if (!whole) return figure_job_out_of_memory(job);
    position_distances(whole, n);
    figure_job_caption(job, "Relative distances between query i and key j, positive for keys to the left. ");
    const attention_panel panel = {.title = "relative distance i \u2212 j", .kind = HEATMAP_SIGNED};
    return finish(job, whole, "distance", panel, "tokens, positive: key to the left");
}

static int run_rows(figure_job *job)
{
    const size_t n = job->view.span[1];
    float *whole = figure_job_allocate(job, n * n, sizeof *whole);
    position_rule rule;
    if (!whole) return figure_job_out_of_memory(job);
    const int status = figure_position_rule(job, &rule);
    if (status != EXIT_OK) return status;
    position_rows(whole, &rule, n);
    figure_job_note(job, "The diagonal is row K = %zu; c2p and p2c read the same row. ", rule.span);
    figure_job_caption(job, "Rows \u03b4(i,j) of the table of relative positions that a pair of tokens reads. ");
    const attention_panel panel = {.title = "row \u03b4(i,j) of the relative table", .kind = HEATMAP_RANGE};
    return finish(job, whole, "row", panel, figure_job_text(job, "row, of %zu", 2 * rule.span));
}

static const char *const options[] = {"scale", "palette", "signed-palette", "annotate", "mark", NULL};

const figure_kind figure_distances = {
    .name = "distances",
    .summary = "the matrix of relative distances i - j, with numbers and a marked cell",
    .layers = "0",
    .heads = "0",
    .options = options,
    .run = run_distances,
};

const figure_kind figure_rows = {
    .name = "rows",
    .summary = "the rows of the relative table that pairs of tokens read, with numbers",
    .layers = "0",
    .heads = "0",
    .options = options,
    .run = run_rows,
};
