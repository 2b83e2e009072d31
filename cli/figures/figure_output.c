/* From a job's settings to a figure, and from there to files. SPDX-License-Identifier: MIT */
#include "cli/figures/figure_job.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/figures/figure_latex.h"

enum { HIGHEST_PAGE_MM = 297 }; /* A4 */

/* ------------------------------------------------------------------------------------------------------- figures */

const char *component_title(deberta_component component)
{
    static const char *const titles[DEBERTA_COMPONENT_COUNT] = {"content to content", "content to position",
                                                                "position to content", "logits (sum)", "probabilities"};
    return titles[component];
}

heatmap_kind figure_job_kind_of(const figure_job *job, deberta_component component)
{
    if (component != DEBERTA_PROBABILITIES) return HEATMAP_SIGNED;
    return job->look.logarithmic ? HEATMAP_LOG : HEATMAP_POSITIVE;
}

attention_figure figure_job_attention(const figure_job *job)
{
    attention_figure figure = {
        .style = job->style,
        .columns = job->look.columns,
        .panel_letters = job->look.letters,
        .annotate = job->look.annotate,
        .keep_row_mean = job->look.keep_row_mean,
        .queries = job->view.count,
        .keys = job->view.count,
        .query_labels = job->view.labels,
        .key_labels = job->view.labels,
        .query_numbers = token_view_numbers(&job->view),
        .key_numbers = token_view_numbers(&job->view),
        .boundaries = &job->view.boundary,
        .boundary_count = job->view.boundary > 0,
        .marks = job->marks,
        .mark_count = job->mark_count,
        .units = {[HEATMAP_SIGNED] = job->unit, [HEATMAP_POSITIVE] = "probability", [HEATMAP_LOG] = "probability"}};
    memcpy(figure.scales, job->look.scales, sizeof figure.scales);
    memcpy(figure.palettes, job->look.palettes, sizeof figure.palettes);
    return figure;
}

int figure_job_add_matrix(figure_job *job, const char *name, size_t layer, size_t head, const float *values)
{
    deberta_error error = {0};
    const size_t count = job->view.count;
    job->data.row_axis = "query";
    job->data.column_axis = "key";
    job->data.row_labels = job->data.column_labels = job->view.labels;
    job->data.row_numbers = job->data.column_numbers = token_view_numbers(&job->view);
    const figure_matrix matrix = {name, layer, head, values, count, count};
    return figure_data_add_matrix(&job->data, &matrix, &error) == DEBERTA_OK ? EXIT_OK
                                                                             : say_error(job->options, &error);
}

/* Old texts stay in the job's memory: a style that was copied before keeps what it had. */
static void append(figure_job *job, const char **text, const char *format, va_list arguments)
{
    char *added = NULL;
    if (vasprintf(&added, format, arguments) < 0) added = NULL;
    const char *longer = added ? figure_job_text(job, "%s%s", *text ? *text : "", added) : NULL;
    if (longer) *text = longer;
    free(added);
}

void figure_job_note(figure_job *job, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    append(job, &job->style.note, format, arguments);
    va_end(arguments);
}

void figure_job_caption(figure_job *job, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    append(job, &job->caption, format, arguments);
    va_end(arguments);
}

void figure_job_caption_unit(figure_job *job)
{
    figure_job_caption(job, "Signed values in %s%s. ", job->unit,
                       job->look.keep_row_mean ? ""
                                               : ", less the mean of their row, which a softmax over the keys ignores");
}

/* --------------------------------------------------------------------------------------------------------- files */

/* The data and the LaTeX file wait under temporary names until the figure is written. */
typedef struct side_files {
    figure_data_file data;
    atomic_file *latex;
} side_files;

static deberta_status write_latex(const figure_job *job, const char *path, atomic_file **file, deberta_error *err)
{
    byte_buffer text = {0};
    figure_latex_write(job, path, &text);
    deberta_status status = text.failed ? status_fail(err, DEBERTA_E_MEMORY, "%s: no memory for its text", path)
                                        : atomic_file_open(file, path, err);
    if (status == DEBERTA_OK) status = atomic_file_write(*file, 0, text.data, text.size_bytes, err);
    byte_buffer_free(&text);
    return status;
}

static deberta_status write_all(const figure_job *job, figure_layout layout, const void *figure, side_files *files,
                                figure_notes *notes, deberta_error *err)
{
    const char *data = options_value(job->options, "data", NULL), *latex = options_value(job->options, "latex", NULL);
    if (data)
        DEBERTA_TRY(
            figure_data_write(&job->data, data, job->provenance, job->style.provenance_count, &files->data, err));
    if (latex) DEBERTA_TRY(write_latex(job, latex, &files->latex, err));
    if (job->path_count) DEBERTA_TRY(figure_save(layout, figure, &job->style, job->paths, job->path_count, notes, err));
    DEBERTA_TRY(figure_data_commit(&files->data, err));
    return files->latex ? atomic_file_commit(&files->latex, err) : DEBERTA_OK;
}

bool figure_job_takes_limits(const figure_job *job, const heatmap_choice scales[HEATMAP_KINDS],
                             const bool drawn[HEATMAP_KINDS])
{
    const heatmap_choice *given = &scales[HEATMAP_POSITIVE];
    const bool unsigned_panels = drawn[HEATMAP_POSITIVE] || drawn[HEATMAP_RANGE] || drawn[HEATMAP_LOG];
    if (scales[HEATMAP_SIGNED].policy == HEATMAP_FIXED && !drawn[HEATMAP_SIGNED])
        say_usage(job->options, "--scale: limits that begin below 0 are for signed panels, and there are none");
    else if (given->policy == HEATMAP_FIXED && !unsigned_panels)
        say_usage(job->options, "--scale: limits that begin at 0 or above are for panels without negative values, "
                                "and there are none");
    else if (given->policy == HEATMAP_FIXED && drawn[HEATMAP_LOG] && scales[HEATMAP_LOG].policy != HEATMAP_FIXED)
        say_usage(job->options, "--scale: logarithmic colours need limits above 0, such as 0.001,1, found '%g,%g'",
                  given->low, given->high);
    else
        return true;
    return false;
}

static bool check_limits(const figure_job *job, const attention_figure *figure)
{
    bool drawn[HEATMAP_KINDS] = {false};
    for (size_t k = 0; k < figure->grid_rows * figure->grid_columns; k++)
        if (figure->panels[k].values) drawn[figure->panels[k].kind] = true;
    return figure_job_takes_limits(job, figure->scales, drawn);
}

int figure_job_finish(figure_job *job, figure_layout layout, const void *figure)
{
    if (layout == attention_layout && !check_limits(job, figure)) return EXIT_USAGE;
    if (options_has(job->options, "latex") && !figure_latex_includes(job))
        return say_usage(job->options, "--latex includes a .pdf or a .png: give --out FILE.pdf too");
    side_files files = {0};
    figure_notes notes = {0};
    deberta_error error = {0};
    const deberta_status status = write_all(job, layout, figure, &files, &notes, &error);
    figure_data_discard(&files.data);
    atomic_file_discard(&files.latex);
    if (status != DEBERTA_OK) return figure_job_fail(job, &error);
    if (notes.missing_glyphs)
        say_note(job->options, "deberta attention: no installed font has %zu of the characters; boxes stand for them",
                 notes.missing_glyphs);
    if (notes.page_height > HIGHEST_PAGE_MM)
        say_note(job->options,
                 "deberta attention: the figure is %.0f mm high, more than a page has: --layers, --heads, --tokens and "
                 "--layout make it smaller, --figure grid draws every head small",
                 notes.page_height);
    return EXIT_OK;
}
