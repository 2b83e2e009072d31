/* SPDX-License-Identifier: MIT */
#include "studies/study.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "command/run.h"
#include "command/table_format.h"
#include "core/base/status.h"
#include "output/json_text.h"

text_table *study_add_table(study_findings *findings, const char *name, const char *title, size_t columns)
{
    study_table *added = &findings->tables[findings->table_count++];
    *added = (study_table){.name = name, .title = title, .table = text_table_make(columns)};
    return &added->table;
}

void study_findings_free(study_findings *findings)
{
    for (size_t k = 0; k < findings->table_count; k++) text_table_free(&findings->tables[k].table);
    text_table_free(&findings->data);
    *findings = (study_findings){0};
}

/* --------------------------------------------------------------------------------------------------------- options */

/* Markdown unless asked: the numbers of a study end up in a page. */
static bool read_format(const common_options *options, table_format *format)
{
    if (!table_format_read(options, format)) return false;
    if (*format == FORMAT_TABLE && !option_given(options, &options->format)) *format = FORMAT_MARKDOWN;
    return true;
}

bool study_check_options(const common_options *options)
{
    table_format format;
    if (!read_format(options, &format)) return false;
    const study_options *study = (const study_options *)options;
    if (!HAVE_VIZ && options->outs.count) {
        say_usage(options, "--out: this program was built without figures");
        return false;
    }
    if (!run_check_figure_paths(options)) return false;
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

/* A cell that is a number as a whole is one in JSON too. */
static json_t *json_of_cell(const char *cell)
{
    char *end;
    if (!*cell) return json_null();
    const double value = strtod(cell, &end);
    if (*end || !(value - value == 0)) return json_clean_text(cell);
    return strpbrk(cell, ".eE") ? json_real(value) : json_integer((json_int_t)value);
}

static json_t *json_of_table(const text_table *table)
{
    json_t *columns = json_array(), *rows = json_array(), *row = NULL;
    for (size_t k = 0; k < table->count; k++) {
        if (k < table->columns) {
            json_array_append_new(columns, json_clean_text(table->cells[k]));
            continue;
        }
        if (k % table->columns == 0) json_array_append_new(rows, row = json_array());
        json_array_append_new(row, json_of_cell(table->cells[k]));
    }
    return json_pack("{s:o, s:o}", "columns", columns, "rows", rows);
}

static bool write_json(const common_options *options, const study_findings *findings, FILE *out)
{
    char *line = options_command_line(options, false);
    json_t *object = json_pack("{s:s, s:s, s:o}", "schema", "deberta-study/1", "study", command_word(options->command),
                               "command", json_clean_text(line ? line : ""));
    free(line);
    bool fits = json_object_set_new(object, "note", json_clean_text(findings->note)) == 0;
    for (size_t k = 0; k < findings->table_count; k++)
        fits = json_object_set_new(object, findings->tables[k].name, json_of_table(&findings->tables[k].table)) == 0 &&
               fits;
    fits = json_object_set_new(object, "data", json_of_table(&findings->data)) == 0 && fits;
    if (fits) return run_write_json(out, object);
    json_decref(object);
    return false;
}

static bool write_tables(const study_findings *findings, FILE *out, text_table_style style)
{
    for (size_t k = 0; k < findings->table_count; k++) {
        const study_table *table = &findings->tables[k];
        if (k) fputc('\n', out);
        if (table->title) fprintf(out, "%s\n\n", table->title);
        if (!text_table_print(&table->table, out, style)) return false;
    }
    if (*findings->note) fprintf(out, "\n%s\n", findings->note);
    return true;
}

static bool write_format(const common_options *options, const study_findings *findings, FILE *out, table_format format)
{
    if (format == FORMAT_CSV) return text_table_print(&findings->data, out, TEXT_TABLE_CSV);
    if (format == FORMAT_JSON) return write_json(options, findings, out);
    return write_tables(findings, out, table_format_style(format));
}

/* path NULL: standard output. */
static int write_to(const common_options *options, const study_findings *findings, const char *path,
                    table_format format)
{
    text_output output;
    const int status = text_output_open(options, path, &output);
    if (status != EXIT_OK) return status;
    if (write_format(options, findings, output.file, format)) return text_output_close(options, &output);
    text_output_discard(&output);
    deberta_error error;
    status_fail(&error, DEBERTA_E_MEMORY, "out of memory for the tables");
    return say_error(options, &error);
}

static bool is_complete(const study_findings *findings)
{
    bool failed = findings->data.failed;
    for (size_t k = 0; k < findings->table_count; k++) failed = failed || findings->tables[k].table.failed;
    return !failed;
}

int study_finish(const common_options *options, const study_findings *findings)
{
    table_format format;
    const char *data = ((const study_options *)options)->data;
    if (!read_format(options, &format)) return EXIT_USAGE;
    if (!is_complete(findings)) {
        deberta_error error;
        status_fail(&error, DEBERTA_E_MEMORY, "out of memory for the tables");
        return say_error(options, &error);
    }
    int status = draw(options, findings);
    if (status == EXIT_OK && data) status = write_to(options, findings, data, FORMAT_CSV);
    return status == EXIT_OK ? write_to(options, findings, NULL, format) : status;
}
