/* SPDX-License-Identifier: MIT */
#include "studies/study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "program/frame/open_model.h"
#include "program/frame/output_paths.h"
#include "program/frame/text_output.h"
#include "output/json_text.h"

/* ---------------------------------------------------------------------------------------------------------- numbers */

bootstrap_interval study_ratio(study *s, const double *parts, const double *wholes, size_t count)
{
    bootstrap_interval found;
    deberta_error error;
    if (bootstrap_ratio(&found, parts, wholes, count, s->options->seed, &error) != DEBERTA_OK)
        exit(say_error(s->options, &error));
    s->lacks_interval = s->lacks_interval || (isnan(found.low) && !isnan(found.value));
    return found;
}

bootstrap_interval study_sentence_ratio(study *s) { return study_ratio(s, s->parts, s->wholes, s->texts.count); }

const char *study_resamples(const study *s)
{
    return options_text(s->options, "%d resamples, seed %llu", BOOTSTRAP_RESAMPLES,
                        (unsigned long long)s->options->seed);
}

/* ----------------------------------------------------------------------------------------------------------- tables */

result_table *study_add_table(study *s, const char *name, const char *title, const result_column *columns)
{
    if (!s->tables) s->tables = result_new("deberta-study/1");
    result_table *table = result_add_table(s->tables, name, title, columns);
    result_set_shape(table, ROWS_AS_ARRAYS);
    return table;
}

void study_set_data(study *s, const result_column *columns)
{
    s->data = study_add_table(s, "data", NULL, columns);
    result_set_data(s->tables, s->data, true);
}

void study_cell_text(result_table *table, const char *text)
{
    if (*text)
        cell_text(table, "%s", text);
    else
        cell_none(table);
}

void study_cell_index(result_table *table, long index)
{
    if (index < 0)
        cell_text(table, "all");
    else
        cell_integer(table, index);
}

const char *study_estimate(const char *format, const bootstrap_interval *found, char text[STUDY_ESTIMATE_BYTES])
{
    snprintf(text, STUDY_ESTIMATE_BYTES, format, found->value, found->low, found->high);
    char *interval = isnan(found->low) ? strstr(text, " (") : NULL;
    if (interval) *interval = '\0';
    return text;
}

void study_cell_estimate(result_table *table, const char *format, const bootstrap_interval *found)
{
    char text[STUDY_ESTIMATE_BYTES];
    cell_text(table, "%s", study_estimate(format, found, text));
}

void study_cell_interval(result_table *data, const bootstrap_interval *found)
{
    cell_real(data, found->value);
    cell_real(data, found->low);
    cell_real(data, found->high);
}

void study_add_point(study *s, double x, const bootstrap_interval *found)
{
    chart_add_spread(&s->chart, x, found->value, found->low, found->high);
}

/* --------------------------------------------------------------------------------------------------------- options */

/* Markdown unless asked: the numbers of a study end up in a page. */
static bool read_format(const common_options *options, result_format *format)
{
    if (!result_format_read(options, format)) return false;
    if (*format == RESULT_TEXT && !option_given(options, &options->format)) *format = RESULT_MARKDOWN;
    return true;
}

/* Wrong values, before anything is computed. False after saying so. */
static bool check_options(const common_options *options, result_format *format)
{
    if (!read_format(options, format)) return false;
    const study_options *own = (const study_options *)options;
    if (!HAVE_VIZ && options->outs.count) {
        say_usage(options, "--out: this program was built without figures");
        return false;
    }
    if (!check_figure_paths(options)) return false;
    const char *slash = own->data ? strrchr(own->data, '/') : NULL,
               *suffix = own->data ? strrchr(slash ? slash : own->data, '.') : NULL;
    if (!suffix || strcasecmp(suffix, ".csv") == 0) return true; /* a device or a pipe has none */
    option_wrong(options, &own->data, "unknown suffix in '%s', expected .csv", own->data);
    return false;
}

/* --------------------------------------------------------------------------------------------------------- figures */

#if HAVE_VIZ
static deberta_status draw_to(const void *what, const figure_style *style, const char *const *paths, size_t path_count,
                              deberta_error *err)
{
    study *const s = *(study *const *)what;
    if (!s->maps) return chart_columns_draw(&s->chart, style, paths, path_count, err);
    attention_figure figure = *s->maps;
    figure.style = *style;
    return figure_attention(&figure, paths, path_count, NULL, err);
}
#endif

static int draw(study *s)
{
    const text_list *outs = &s->options->outs;
    if (outs->count && !s->chart.panel_count && !s->maps)
        return say_usage(s->options, "--out: this study draws no figure");
    return output_draw(s->options, outs->items, outs->count, DRAWING(draw_to), &s, &s->style);
}

/* -------------------------------------------------------------------------------------------------------- printing */

/* What is said beside the tables: how they came about, and the note under them. */
static void say_provenance(const study *s)
{
    json_t *object = result_json(s->tables);
    json_object_set_new(object, "study", json_string(command_word(s->options->command)));
    json_object_set_new(object, "command", json_clean_text(options_command_line(s->options, false)));
    json_object_set_new(object, "note", json_clean_text(s->note));
    result_say(s->tables, "%s", s->note);
}

/* Once for all cells of the tables: one sentence tells nothing of others. */
static void say_lacking(study *s)
{
    if (s->lacks_interval)
        s->note = options_text(s->options, "%s What stands without an interval was measured on one unit alone.",
                               s->note ? s->note : "");
}

/* Behind the note of the tables and that of the figure, which may be another. */
static void say_precision(study *s)
{
    const char *precision = low_precision_name(s->options);
    const char **notes[] = {&s->note, &s->style.note};
    for (size_t k = 0; precision && k < 2; k++)
        *notes[k] = options_text(s->options, "%s%sLinear layers in %s.", *notes[k] ? *notes[k] : "",
                                 *notes[k] ? " " : "", precision);
}

static int finish(study *s, result_format format)
{
    const char *data = ((const study_options *)s->options)->data;
    say_lacking(s);
    say_precision(s);
    say_provenance(s);
    int status = draw(s);
    if (status == EXIT_OK && data) status = print_result(s->options, data, s->tables, RESULT_CSV);
    return status == EXIT_OK ? print_result(s->options, NULL, s->tables, format) : status;
}

/* --------------------------------------------------------------------------------------------------------- running */

/* The model of argument `place`, beside the first. */
static int open_beside(study *s, size_t place)
{
    studied_model *model = &s->models[place];
    const deberta_model_info *first = &s->models[0].info;
    const char *const *paths = s->options->arguments;
    const int status = open_model_at(s->options, paths[place], &model->model);
    if (status != EXIT_OK) return status;
    model->info = *deberta_model_describe(model->model);
    if (model->info.vocabulary_size == first->vocabulary_size) return EXIT_OK;
    return say_usage(s->options,
                     "%s: expected a model with the tokenizer of %s, found a vocabulary of %zu instead of %zu",
                     paths[place], paths[0], model->info.vocabulary_size, first->vocabulary_size);
}

static int open_sentences(study *s)
{
    const study_options *o = (const study_options *)s->options;
    int status = study_texts_open(&s->texts, &o->reading, o->sentences ? o->sentences : STUDY_MOST_SENTENCES);
    if (status != EXIT_OK) return status;
    s->parts = options_take(s->options, s->texts.count, sizeof *s->parts);
    s->wholes = options_take(s->options, s->texts.count, sizeof *s->wholes);
    s->models[0] = (studied_model){.model = s->texts.model.model, .info = s->texts.model.info};
    s->model_count = s->options->argument_count;
    for (size_t k = 0; k < s->model_count && status == EXIT_OK; k++) {
        const char *path = s->options->arguments[k], *slash = strrchr(path, '/');
        s->models[k].name = slash && slash[1] ? slash + 1 : path;
        if (k) status = open_beside(s, k);
    }
    return status;
}

int study_run(const common_options *options)
{
    const study_kind *kind = (const study_kind *)options->command;
    study *s = options_take(options, 1, kind->size);
    result_format format;
    deberta_error error = {0};
    s->options = options;
    if (!check_options(options, &format)) return EXIT_USAGE;
    int code = kind->of_sentences ? open_sentences(s) : EXIT_OK;
    if (code == EXIT_OK && kind->open) code = kind->open(s);
    if (code == EXIT_OK) code = kind->work(s, &error) == DEBERTA_OK ? finish(s, format) : say_error(options, &error);
    if (kind->close) kind->close(s);
    chart_columns_free(&s->chart);
    result_free(&s->tables);
    for (size_t k = 1; k < s->model_count; k++) deberta_model_free(&s->models[k].model); /* the first is the texts' */
    if (kind->of_sentences) study_texts_close(&s->texts);
    return code;
}
