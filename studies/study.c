/* SPDX-License-Identifier: MIT */
#include "studies/study.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "command/options.h"
#include "command/text_output.h"
#include "command/result_output.h"
#include "core/base/status.h"
#include "output/json_text.h"

result_table *study_add_table(study_findings *findings, const char *name, const char *title,
                              const result_column *columns)
{
    if (!findings->tables) findings->tables = result_new("deberta-study/1");
    result_table *table = result_add_table(findings->tables, name, title, columns);
    result_set_shape(table, ROWS_AS_ARRAYS);
    return table;
}

void study_set_data(study_findings *findings, const result_column *columns)
{
    findings->data = study_add_table(findings, "data", NULL, columns);
    result_set_data(findings->tables, findings->data, true);
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

void study_cell_interval(result_table *data, const bootstrap_interval *found)
{
    cell_real(data, found->value);
    cell_real(data, found->low);
    cell_real(data, found->high);
}

void study_findings_free(study_findings *findings)
{
    result_free(&findings->tables);
    *findings = (study_findings){0};
}

/* --------------------------------------------------------------------------------------------------------- options */

/* Markdown unless asked: the numbers of a study end up in a page. */
static bool read_format(const common_options *options, result_format *format)
{
    if (!result_format_read(options, format)) return false;
    if (*format == RESULT_TEXT && !option_given(options, &options->format)) *format = RESULT_MARKDOWN;
    return true;
}

bool study_check_options(const common_options *options)
{
    result_format format;
    if (!read_format(options, &format)) return false;
    const study_options *study = (const study_options *)options;
    if (!HAVE_VIZ && options->outs.count) {
        say_usage(options, "--out: this program was built without figures");
        return false;
    }
    if (!check_figure_paths(options)) return false;
    const char *slash = study->data ? strrchr(study->data, '/') : NULL,
               *suffix = study->data ? strrchr(slash ? slash : study->data, '.') : NULL;
    if (!suffix || strcasecmp(suffix, ".csv") == 0) return true; /* a device or a pipe has none */
    option_wrong(options, &study->data, "unknown suffix in '%s', expected .csv", study->data);
    return false;
}

/* --------------------------------------------------------------------------------------------------------- figures */

#if HAVE_VIZ
static deberta_status draw_to(const study_findings *findings, const provenance_entry *provenance, size_t entries,
                              const text_list *paths, deberta_error *err)
{
    if (findings->chart) {
        chart_figure figure = *findings->chart;
        figure.style.provenance = provenance;
        figure.style.provenance_count = entries;
        return figure_chart(&figure, paths->items, paths->count, NULL, err);
    }
    attention_figure figure = *findings->maps;
    figure.style.provenance = provenance;
    figure.style.provenance_count = entries;
    return figure_attention(&figure, paths->items, paths->count, NULL, err);
}

static int draw(const common_options *options, const study_findings *findings)
{
    if (!options->outs.count) return EXIT_OK;
    if (!findings->chart && !findings->maps) return say_usage(options, "--out: this study draws no figure");
    char *line = options_command_line(options, false);
    const provenance_entry provenance[] = {{"Software", "deberta " DEBERTA_VERSION_TEXT},
                                           {"Command", line ? line : ""}};
    deberta_error error = {0};
    const deberta_status status =
        draw_to(findings, provenance, sizeof provenance / sizeof *provenance, &options->outs, &error);
    free(line);
    if (status == DEBERTA_OK) return EXIT_OK;
    const int code = say_error(options, &error);
    return status == DEBERTA_E_ARGUMENT ? EXIT_USAGE : code;
}
#else
static int draw(const common_options *options, const study_findings *findings)
{
    (void)options, (void)findings;
    return EXIT_OK; /* refused by study_check_options */
}
#endif

/* -------------------------------------------------------------------------------------------------------- printing */

/* What is said beside the tables: how they came about, and the note under them. */
static void say_provenance(const common_options *options, study_findings *findings)
{
    json_t *object = result_json(findings->tables);
    char *line = options_command_line(options, false);
    json_object_set_new(object, "study", json_string(command_word(options->command)));
    json_object_set_new(object, "command", json_clean_text(line ? line : ""));
    json_object_set_new(object, "note", json_clean_text(findings->note));
    if (*findings->note) result_say(findings->tables, "%s", findings->note);
    free(line);
}

int study_finish(const common_options *options, study_findings *findings)
{
    result_format format;
    const char *data = ((const study_options *)options)->data;
    if (!read_format(options, &format)) return EXIT_USAGE;
    say_provenance(options, findings);
    int status = draw(options, findings);
    if (status == EXIT_OK && data) status = print_result(options, data, findings->tables, RESULT_CSV);
    return status == EXIT_OK ? print_result(options, NULL, findings->tables, format) : status;
}
