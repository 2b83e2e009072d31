/* `deberta train plot` draws training runs: loss, rate, gradient norm, and their measures on held-out data.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <ctype.h>
#include <string.h>
#include <sys/stat.h>

#include "program/commands.h"
#include "program/frame/figure_style.h"
#include "program/frame/same_files.h"
#include "program/train/train_log.h"
#include "viz/chart_columns.h"

enum { MOST_PATHS = 16, MOST_RUNS = 256 };

typedef struct plot_options {
    common_options common;
    bool band;
    size_t smooth;
    figure_style style;
} plot_options;

/* Runs that form one curve. */
typedef struct run_group {
    const char *name;
    size_t first, count; /* range in the list of runs, sorted by group */
} run_group;

typedef struct plot_job {
    const plot_options *o;
    train_log *runs; /* [run_count] */
    size_t run_count;
    run_group *groups;
    size_t group_count;
    chart_columns chart;
} plot_job;

/* ------------------------------------------------------------------------------------------------------------ groups */

/* Returns the length of a name without a number at its end and the dash, dot or underscore before it: "sift-12" is
 * "sift". */
static size_t group_length(const char *name)
{
    size_t length = strlen(name);
    while (length > 0 && isdigit((unsigned char)name[length - 1])) length--;
    while (length > 0 && strchr("-_.", name[length - 1])) length--;
    return length ? length : strlen(name);
}

static bool same_base(const char *a, const char *b)
{
    const size_t length = group_length(a);
    return length == group_length(b) && strncmp(a, b, length) == 0;
}

/* Returns true if runs form one curve; runs with different measures have no mean. */
static bool same_group(const plot_job *job, const train_log *a, const train_log *b)
{
    if (!job->o->band || (a->measure && b->measure && strcmp(a->measure, b->measure) != 0)) return false;
    return same_base(a->name, b->name);
}

/* Returns the path as typed if runs share a name, such as old/mlm and new/mlm. In a band they are one curve. */
static const char *distinct_name(const plot_job *job, size_t run)
{
    for (size_t i = 0; !job->o->band && i < job->run_count; i++)
        if (i != run && strcmp(job->runs[i].name, job->runs[run].name) == 0) return job->o->common.arguments[run];
    return job->runs[run].name;
}

/* Names a curve of several runs: what their names share, and their measure where runs with another share it too. */
static const char *group_name(const plot_job *job, const run_group *group)
{
    const train_log *runs = job->runs, *first = &runs[group->first];
    const char *text =
        options_text(&job->o->common, "%.*s (%zu)", (int)group_length(first->name), first->name, group->count);
    for (size_t i = 0; first->measure && i < job->run_count; i++) {
        const bool is_outside = i < group->first || i >= group->first + group->count;
        if (is_outside && same_base(runs[i].name, first->name))
            return options_text(&job->o->common, "%s, %s", text, first->measure);
    }
    return text;
}

/* Sorts the runs by group, with groups in the order of their first runs. */
static void group_runs(plot_job *job)
{
    job->groups = options_take(&job->o->common, job->run_count, sizeof *job->groups);
    for (size_t i = 0; i < job->run_count;) {
        run_group *group = &job->groups[job->group_count++];
        const train_log *first = &job->runs[i];
        *group = (run_group){.name = distinct_name(job, i), .first = i, .count = 1};
        for (size_t k = ++i; k < job->run_count; k++) {
            if (!same_group(job, first, &job->runs[k])) continue;
            const train_log moved = job->runs[k];
            memmove(job->runs + i + 1, job->runs + i, (k - i) * sizeof *job->runs);
            job->runs[i++] = moved;
            group->count++;
        }
        if (group->count > 1) group->name = group_name(job, group);
    }
}

/* ------------------------------------------------------------------------------------------------------------ curves */

/* Returns the mean of the last --smooth values up to this one. */
static double smoothed(const plot_job *job, const log_series *s, size_t at)
{
    const size_t wanted = job->o->smooth, count = at + 1 < wanted ? at + 1 : wanted;
    double sum = 0;
    for (size_t k = at + 1 - count; k <= at; k++) sum += s->values[k];
    return sum / (double)count;
}

/* Returns true if the run has values of the panel; of a panel of a measure, only runs with that measure have them. */
static bool belongs(const train_log *run, const char *measure)
{
    return !measure || (run->measure && strcmp(run->measure, measure) == 0);
}

/* Adds a point for every step that all runs of the group have; several runs give their mean, least and greatest
 * value. measure: NULL, or the one that the panel is of. */
static void add_curve(plot_job *job, const run_group *group, log_value what, const char *measure, chart_kind kind,
                      size_t look)
{
    const train_log *runs = job->runs + group->first;
    size_t at[MOST_RUNS] = {0};
    chart_add_series(&job->chart, (chart_series){.name = group->name, .kind = kind, .look = look});
    for (size_t i = 0; i < runs[0].series[what].count; i++) {
        const double step = runs[0].series[what].steps[i];
        double sum = 0, least = 0, greatest = 0;
        bool everywhere = true;
        for (size_t run = 0; run < group->count; run++) {
            const log_series *s = &runs[run].series[what];
            while (at[run] < s->count && s->steps[at[run]] < step) at[run]++;
            everywhere = belongs(&runs[run], measure) && at[run] < s->count && s->steps[at[run]] == step &&
                         !isnan(s->values[at[run]]);
            if (!everywhere) break;
            const double value = what <= LOG_OBJECTIVE ? smoothed(job, s, at[run]) : s->values[at[run]];
            sum += value;
            least = run == 0 || value < least ? value : least;
            greatest = run == 0 || value > greatest ? value : greatest;
        }
        if (!everywhere) continue;
        if (group->count == 1)
            chart_add_point(&job->chart, step, sum);
        else
            chart_add_spread(&job->chart, step, sum / (double)group->count, least, greatest);
    }
}

static bool any_has(const plot_job *job, log_value what, const char *measure)
{
    for (size_t i = 0; i < job->run_count; i++) {
        if (!belongs(&job->runs[i], measure)) continue;
        const log_series *s = &job->runs[i].series[what];
        for (size_t k = 0; k < s->count; k++)
            if (!isnan(s->values[k])) return true;
    }
    return false;
}

static void add_panel_of(plot_job *job, log_value what, const char *measure, const char *title, const char *label)
{
    if (!any_has(job, what, measure)) return;
    chart_add_panel(&job->chart, (chart_panel){.title = title,
                                               .x = {.label = "step", .scale = CHART_WHOLE},
                                               .y = {.label = label, .scale = CHART_LINEAR}});
    const bool evaluated = what == LOG_EVAL_LOSS || what == LOG_MEASURE;
    for (size_t g = 0; g < job->group_count; g++)
        add_curve(job, &job->groups[g], what, measure, evaluated ? CHART_LINE : CHART_CURVE, g + 1);
}

static void add_panel(plot_job *job, log_value what, const char *title, const char *label)
{
    add_panel_of(job, what, NULL, title, label);
}

/* Adds a panel for each measure, named as its runs name it: accuracy and F1 are no values of one axis. */
static void add_measures(plot_job *job)
{
    for (size_t i = 0; i < job->run_count; i++) {
        const char *measure = job->runs[i].measure;
        bool is_new = measure != NULL;
        for (size_t before = 0; is_new && before < i; before++) is_new = !belongs(&job->runs[before], measure);
        if (is_new) add_panel_of(job, LOG_MEASURE, measure, measure, measure);
    }
}

/* Returns the name of an axis of losses; --smooth concerns those of the steps, not of held-out data. */
static const char *loss_label(plot_job *job)
{
    if (job->o->smooth == 1) return "loss";
    return chart_text(&job->chart, "loss, mean of %zu steps", job->o->smooth);
}

/* Returns what bands and bars are, for below the figure; NULL: there are none. */
static const char *spread_note(const plot_job *job)
{
    for (size_t g = 0; g < job->group_count; g++)
        if (job->groups[g].count > 1)
            return "Bands and bars: lowest to highest of the runs whose number is in brackets, around their mean.";
    return NULL;
}

/* Notes options that cannot do what they are for. */
static void note_options(const plot_job *job)
{
    const common_options *options = &job->o->common;
    if (job->o->band && job->group_count == job->run_count)
        say_note(options, "note: --band: no two runs have the same name before a number at the end and the same "
                          "measure; each is a curve");
    for (size_t i = 0; i < job->run_count; i++) {
        const size_t steps = job->runs[i].series[LOG_LOSS].count;
        if (job->o->smooth <= steps) continue;
        say_note(options, "note: --smooth %zu: %s has %zu step%s, and its loss is the mean of all steps so far",
                 job->o->smooth, job->runs[i].name, steps, steps == 1 ? "" : "s");
        return;
    }
}

static deberta_status train_plot_draw(plot_job *job, deberta_error *err)
{
    const common_options *options = &job->o->common;
    figure_style style = job->o->style;
    const provenance_entry provenance[] = {{"Software", "deberta " DEBERTA_VERSION_TEXT},
                                           {"Command", options_command_line(options, false)}};
    style.provenance = provenance;
    style.provenance_count = sizeof provenance / sizeof *provenance;
    group_runs(job);
    note_options(job);
    style.note = spread_note(job);
    size_t missing_glyphs = 0;
    style.missing_glyphs = &missing_glyphs;
    add_panel(job, LOG_LOSS, "loss", loss_label(job));
    add_panel(job, LOG_OBJECTIVE, "loss with SiFT's distance", loss_label(job));
    add_panel(job, LOG_EVAL_LOSS, "held-out loss", "loss");
    add_measures(job);
    add_panel(job, LOG_RATE, "learning rate", "rate");
    add_panel(job, LOG_NORM, "norm of the gradients", "norm");
    DEBERTA_TRY(chart_columns_draw(&job->chart, &style, options->outs.items, options->outs.count, err));
    figure_notes_tell(options, missing_glyphs);
    return DEBERTA_OK;
}

/* Notes a run that is given twice, which its band would count twice. */
static void note_twice(const common_options *options)
{
    struct stat about;
    const char **logs = options_take(options, options->argument_count, sizeof *logs);
    for (size_t k = 0; k < options->argument_count; k++) {
        const char *run = options->arguments[k];
        const bool is_folder = stat(run, &about) == 0 && S_ISDIR(about.st_mode);
        logs[k] = is_folder ? options_text(options, "%s/log.jsonl", run) : run;
    }
    same_files_note(options, logs, options->argument_count, "one run, drawn twice");
}

static int train_plot_run(const common_options *options)
{
    const plot_options *o = (const plot_options *)options;
    plot_job job = {.o = o, .runs = options_take(options, options->argument_count, sizeof *job.runs)};
    deberta_error error = {0};
    if (options->outs.count == 0) usage_wrong(options, "say where the figure goes: --out FILE.png (or .svg, .pdf)");
    figure_style_note(options, &o->style, options->outs.items, options->outs.count);
    for (; job.run_count < options->argument_count; job.run_count++)
        must(options, train_log_read(&job.runs[job.run_count], options->arguments[job.run_count], &error), &error);
    note_twice(options);
    const deberta_status status = train_plot_draw(&job, &error);
    chart_columns_free(&job.chart);
    for (size_t i = 0; i < job.run_count; i++) scope_free(&job.runs[i].memory);
    if (status == DEBERTA_E_ARGUMENT) usage_wrong(options, "%s", error.message);
    must(options, status, &error);
    return EXIT_OK;
}

static const option table[] = {
    {"band", 0, NULL, "runs whose names differ in the number at the end are one curve: their mean, in a band of all",
     FLAG_AT(plot_options, band)},
    {"smooth", 0, "N", "draw the mean of the loss over the last N steps (default 1)",
     SIZE_AT(plot_options, smooth, 1, 1000000)},
    FIGURE_STYLE_ROWS(plot_options, style),
    {.name = NULL},
};

const command train_plot = {
    .name = "train plot",
    .summary = "loss, rate and gradient norm of runs",
    .arguments = "RUN ...",
    .writes = WRITES_OWN,
    .min_arguments = 1,
    .max_arguments = MOST_RUNS,
    .options = table,
    .size = sizeof(plot_options),
    .defaults = &(const plot_options){.smooth = 1},
    .most_outputs = MOST_PATHS,
    .example = "  for s in 1 2 3; do deberta train mlm models/demo --file corpus.txt --sequence-tokens 32 --steps 9 "
               "--seed $s -o run-$s; done\n"
               "  deberta train plot run-1 -o loss.svg\n"
               "  deberta train plot run-* --band --smooth 3 -o seeds.pdf\n"
               "\na RUN is the folder of a run, or its log.jsonl\n",
    .run = train_plot_run,
    .without = WITHOUT_MODEL " " WITHOUT_CHANCE " json",
};
