/* `deberta bench plot`: what to draw, into which files, with which provenance. SPDX-License-Identifier: MIT */
#include "cli/bench/bench_plot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/bench_figures.h"
#include "cli/figures/figure_style.h"
#include "command/run.h"

enum { MOST_PATHS = 16 };

typedef struct plot_job {
    const parsed_options *options;
    bench_report report;
    const char *paths[MOST_PATHS];
    size_t path_count;
    figure_style style;
} plot_job;

static int print_kinds(const parsed_options *options)
{
    text_output output;
    if (!run_check_text_path(options)) return EXIT_USAGE;
    const int status = text_output_open(options, options_value(options, "out", NULL), &output);
    if (status != EXIT_OK) return status;
    for (const bench_figure_kind *kind = bench_figure_kinds; kind->name; kind++)
        fprintf(output.file, "%-10s %s\n", kind->name, kind->shows);
    return text_output_close(options, &output);
}

/* A bad argument is one of the figure's options, or something that the file lacks for what was asked of it. */
static int report_failure(const plot_job *job, const deberta_error *error)
{
    return error->code == DEBERTA_E_ARGUMENT ? say_usage(job->options, "plot: %s", error->message)
                                             : say_error(job->options, error);
}

/* sweep.pdf becomes sweep-roofline.pdf; a path without suffix stays, for the figure to refuse. */
static char *named_path(const char *path, const char *name)
{
    const char *folder = strrchr(path, '/'), *suffix = strrchr(folder ? folder : path, '.');
    if (!suffix) return strdup(path);
    const size_t room = strlen(path) + strlen(name) + 2;
    char *named = malloc(room);
    if (named) snprintf(named, room, "%.*s-%s%s", (int)(suffix - path), path, name, suffix);
    return named;
}

static deberta_status draw_named(const plot_job *job, const bench_figure_kind *kind, deberta_error *err)
{
    char *paths[MOST_PATHS] = {NULL};
    bool fine = true;
    for (size_t k = 0; k < job->path_count; k++)
        fine = (paths[k] = named_path(job->paths[k], kind->name)) != NULL && fine;
    const deberta_status status =
        fine ? bench_figures_draw(&job->report, kind, &job->style, (const char *const *)paths, job->path_count, err)
             : status_fail(err, DEBERTA_E_MEMORY, "out of memory");
    for (size_t k = 0; k < job->path_count; k++) free(paths[k]);
    return status;
}

/* Every kind that the file can show, each into files of its own; none if one of them has no room on its page. */
static deberta_status draw_all(const plot_job *job, deberta_error *err)
{
    unsigned drawn = 0; /* a bit for each kind */
    DEBERTA_TRY(figure_check_style(&job->style, err));
    for (size_t k = 0; bench_figure_kinds[k].name; k++) {
        const bench_figure_kind *kind = &bench_figure_kinds[k];
        bool can;
        DEBERTA_TRY(bench_figures_can_draw(&job->report, kind, &job->style, &can, err));
        if (can)
            drawn |= 1u << k;
        else
            say_note(job->options, "deberta bench plot: no %s: the file holds no %s", kind->name, kind->needs);
    }
    if (drawn == 0) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "the file holds nothing that any figure shows");
    for (size_t k = 0; bench_figure_kinds[k].name; k++)
        if (drawn >> k & 1) DEBERTA_TRY(draw_named(job, &bench_figure_kinds[k], err));
    return DEBERTA_OK;
}

static int draw(plot_job *job, const char *name)
{
    const bench_figure_kind *kind = name ? bench_figure_kind_find(name) : NULL;
    deberta_error error = {0};
    deberta_status status = report_read_file(&job->report, options_argument(job->options, 1), &error);
    if (status != DEBERTA_OK) return report_failure(job, &error);
    char *command_line = options_command_line(job->options, false);
    const machine_sheet *sheet = &job->report.sheet;
    char commit[sizeof sheet->commit + 8]; /* a build with changes is not that of the commit */
    snprintf(commit, sizeof commit, "%s%s", sheet->commit, sheet->dirty ? "-dirty" : "");
    const provenance_entry provenance[] = {{"Software", "deberta " DEBERTA_VERSION_TEXT},
                                           {"Measured by", job->report.command},
                                           {"Measured with", commit},
                                           {"Measured on", sheet->cpu},
                                           {"Measured at", sheet->date},
                                           {"Command", command_line ? command_line : ""}};
    job->style.provenance = provenance;
    job->style.provenance_count = sizeof provenance / sizeof *provenance;
    if (name && strcmp(name, "all") == 0) {
        status = draw_all(job, &error);
    } else {
        status = bench_figures_draw(&job->report, kind, &job->style, job->paths, job->path_count, &error);
    }
    free(command_line);
    return status == DEBERTA_OK ? EXIT_OK : report_failure(job, &error);
}

int bench_plot_run(const parsed_options *options)
{
    plot_job job = {.options = options};
    const char *name = options_value(options, "plot", NULL);
    if (name && strcmp(name, "list") == 0) return print_kinds(options);
    if (name && strcmp(name, "all") != 0 && !bench_figure_kind_find(name))
        return say_usage(options, "--plot: unknown figure '%s'; `deberta bench plot --plot list` names them", name);
    if (options_argument_count(options) != 2)
        return say_usage(options, "plot: expected one JSON file of `bench --json`");
    for (const char *path; job.path_count < MOST_PATHS && (path = options_nth_value(options, "out", job.path_count));)
        job.paths[job.path_count++] = path;
    if (job.path_count == 0)
        return say_usage(options, "plot: say where the figure goes: --out FILE.png (or .svg, .pdf)");
    if (!figure_style_read(options, &job.style)) return EXIT_USAGE;
    const int status = draw(&job, name);
    bench_report_free(&job.report);
    return status;
}
