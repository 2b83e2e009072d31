/* `deberta bench plot` selects the figures to draw, their files and their provenance. SPDX-License-Identifier: MIT */
#include <string.h>

#include "program/bench/bench_drawing.h"
#include "program/bench/bench_options.h"
#include "program/frame/figure_style.h"
#include "program/frame/output_names.h"

enum { MOST_PATHS = 16, MOST_FILES = 64 };

typedef struct plot_options {
    common_options common;
    int figure; /* index in bench_figure_names */
    figure_style style;
} plot_options;

/* The style with its provenance, and the texts that it points to. */
typedef struct plot_job {
    const common_options *options;
    bench_results *results; /* results of all files */
    bench_files files;
    figure_style style;
} plot_job;

static void print_kinds(const common_options *options)
{
    text_output output;
    check_text_path(options);
    text_output_open(options, options_out(options), &output);
    for (const bench_figure_kind *kind = bench_figure_kinds; kind->name; kind++)
        fprintf(output.file, "%-10s %s\n", kind->name, kind->shows);
    text_output_close(options, &output);
}

/* Turns sweep.pdf into sweep-roofline.pdf; a path without suffix stays as it is, and the figure refuses it. */
static const char *named_path(const common_options *options, const char *path, const char *name)
{
    const char *folder = strrchr(path, '/'), *suffix = strrchr(folder ? folder : path, '.');
    return suffix ? options_text(options, "%.*s-%s%s", (int)(suffix - path), path, name, suffix) : path;
}

static deberta_status draw_named(const plot_job *job, const bench_figure_kind *kind, deberta_error *err)
{
    const text_list *outs = &job->options->outs;
    const char *paths[MOST_PATHS];
    for (size_t k = 0; k < outs->count; k++) paths[k] = named_path(job->options, outs->items[k], kind->name);
    return bench_figures_draw(job->options, &job->files, kind, &job->style, paths, outs->count, err);
}

/* Draws every kind that the file can show, each into separate files, or none if one of them has no room on its
 * page. */
static deberta_status draw_all(const plot_job *job, deberta_error *err)
{
    unsigned drawn = 0; /* one bit for each kind */
    for (size_t k = 0; bench_figure_kinds[k].name; k++) {
        const bench_figure_kind *kind = &bench_figure_kinds[k];
        bool can;
        DEBERTA_TRY(bench_figures_can_draw(job->options, &job->files, kind, &job->style, &can, err));
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

/* Returns what a file says of the machine or of how it was made. */
typedef const char *(*source_fact)(const common_options *options, const bench_results *results);

static const char *fact_command(const common_options *options, const bench_results *results)
{
    (void)options;
    return results->command;
}

static const char *fact_commit(const common_options *options, const bench_results *results)
{
    const machine_sheet *sheet = &results->sheet; /* a build with changes is not the commit's */
    return options_text(options, "%s%s", sheet->commit, sheet->dirty ? "-dirty" : "");
}

static const char *fact_processor(const common_options *options, const bench_results *results)
{
    (void)options;
    return results->sheet.cpu;
}

static const char *fact_date(const common_options *options, const bench_results *results)
{
    (void)options;
    return results->sheet.date;
}

/* Lists a fact of all files, each different one once. Whole facts are compared: one may begin as another does. */
static const char *list_facts(const plot_job *job, source_fact fact)
{
    const char **seen = options_take(job->options, job->files.count, sizeof *seen), *text = "";
    size_t count = 0;
    for (size_t k = 0; k < job->files.count; k++) {
        const char *found = fact(job->options, &job->results[k]);
        size_t at = 0;
        while (at < count && strcmp(seen[at], found) != 0) at++;
        if (at < count) continue;
        text = count ? options_text(job->options, "%s; %s", text, found) : found;
        seen[count++] = found;
    }
    return text;
}

static void read_files(plot_job *job)
{
    deberta_error error;
    job->results = options_take(job->options, job->options->argument_count, sizeof *job->results);
    job->files = (bench_files){.results = job->results, .names = job->options->arguments};
    for (size_t k = 0; k < job->options->argument_count; k++) {
        job->files.count = k + 1;
        must(job->options, bench_results_read_file(&job->results[k], NULL, job->files.names[k], &error), &error);
    }
}

static deberta_status bench_plot_draw(plot_job *job, int figure, deberta_error *err)
{
    const common_options *options = job->options;
    read_files(job);
    const provenance_entry provenance[] = {
        {"Software", "deberta " DEBERTA_VERSION_TEXT},   {"Measured by", list_facts(job, fact_command)},
        {"Measured with", list_facts(job, fact_commit)}, {"Measured on", list_facts(job, fact_processor)},
        {"Measured at", list_facts(job, fact_date)},     {"Command", options_command_line(options, false)}};
    job->style.provenance = provenance;
    job->style.provenance_count = sizeof provenance / sizeof *provenance;
    size_t missing_glyphs = 0;
    job->style.missing_glyphs = &missing_glyphs;
    DEBERTA_TRY(figure == BENCH_FIGURE_ALL
                    ? draw_all(job, err)
                    : bench_figures_draw(job->options, &job->files, bench_figure_kind_of(figure), &job->style,
                                         options->outs.items, options->outs.count, err));
    figure_notes_tell(options, missing_glyphs);
    return DEBERTA_OK;
}

static int bench_plot_run(const common_options *options)
{
    const plot_options *o = (const plot_options *)options;
    plot_job job = {.options = options, .style = o->style};
    deberta_error error = {0};
    if (o->figure == BENCH_FIGURE_LIST) {
        static const char why[] = "changes a picture, and a list of figures is none";
        if (options->argument_count)
            usage_wrong(options, "the list of figures is of all kinds, whatever a file holds: found '%s'",
                        options->arguments[0]);
        figure_style_refuse(options, &o->style, why);
        print_kinds(options);
        return EXIT_OK;
    }
    if (options->argument_count == 0) usage_wrong(options, "expected a JSON file of `bench --json`");
    if (options->argument_count > 1 && !bench_figure_takes_files(o->figure))
        usage_wrong(options,
                    "--figure %s draws one file, found %zu; several share a chart of latency, and for two there "
                    "is: deberta bench compare %s %s",
                    bench_figure_names[o->figure], options->argument_count, options->arguments[0],
                    options->arguments[1]);
    if (options->outs.count == 0) usage_wrong(options, "say where the figure goes: --out FILE.png (or .svg, .pdf)");
    figure_style_note(options, &o->style, options->outs.items, options->outs.count);
    const deberta_status status = bench_plot_draw(&job, o->figure, &error);
    for (size_t k = 0; k < job.files.count; k++) scope_free(&job.results[k].memory);
    /* the argument is one of the figure's options, or the file lacks data for them */
    if (status == DEBERTA_E_ARGUMENT) usage_wrong(options, "%s", error.message);
    must(options, status, &error);
    return EXIT_OK;
}

static const option table[] = {
    {"figure", 0, "NAME",
     "curves (default: all curves in one figure; of several files their latency), latency, layers, memory, speedup, "
     "grid, breakdown, roofline, error, bars; "
     "all: each into a file of its own; list: what they show",
     CHOICE_AT(plot_options, figure, bench_figure_names)},
    FIGURE_STYLE_ROWS(plot_options, style),
    {.name = NULL},
};

const command command_bench_plot = {
    .name = "bench plot",
    .summary = "curves, heat maps, stacks and rooflines of what `bench --json` wrote",
    .arguments = "F.json...",
    .writes = WRITES_OWN,
    .max_arguments = MOST_FILES,
    .size = sizeof(plot_options),
    .options = table,
    .most_outputs = MOST_PATHS,
    .example = "  deberta bench plot sweep.json -o sweep.pdf\n"
               "  deberta bench plot sweep.json --figure roofline --width-mm 85 -o roofline.pdf\n"
               "  deberta bench models/demo -n 16-128*2 -o mine.json\n"
               "  deberta bench plot sweep.json mine.json -o both.pdf\n",
    .run = bench_plot_run,
    .without = WITHOUT_MODEL " " WITHOUT_CHANCE " json",
};
