/* `deberta study benchmarks`: published results from a table with sources, as bars, and which of the numbers that are
 * quoted elsewhere are theirs. Computes nothing with a model. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command/options.h"
#include "studies/studies.h"
#include "studies/study.h"
#include "core/base/byte_order_mark.h"
#include "core/base/status.h"

enum { FIELDS = 6, TEXT_BYTES = 200, MOST_NAMES = 64, MOST_RESULTS = 4096, FEWEST_BARS = 3, LOWEST = 50 };
static const char *const field_names[FIELDS] = {"benchmark", "metric", "model", "value", "verified", "source"};

typedef struct published {
    char benchmark[TEXT_BYTES], metric[TEXT_BYTES], model[TEXT_BYTES], verified[TEXT_BYTES], source[TEXT_BYTES];
    double value;
} published;

/* Names in the order in which they first come. */
typedef struct name_list {
    const char *names[MOST_NAMES];
    size_t count;
} name_list;

typedef struct benchmarks_study {
    published *results;
    size_t count, quoted;
    name_list models, rows; /* rows: "benchmark (metric)" */
    char row_names[MOST_NAMES][2 * TEXT_BYTES + 8];
    double *bars; /* [models][rows] */
    study_findings findings;

    /* What the figure points to: a panel a row, a bar a model. */
    chart_panel panels[MOST_NAMES];
    chart_series series[MOST_NAMES];
    figure_label labels[MOST_NAMES][MOST_NAMES];
    double values[MOST_NAMES][MOST_NAMES];
} benchmarks_study;

static bool is_quoted(const published *result) { return strcmp(result->model, "quoted") == 0; }

/* ---------------------------------------------------------------------------------------------------------- reading */

/* Fields hold no comma and no quote: this table has none, and another is told so. */
static deberta_status parse_line(published *result, char *line, deberta_error *err)
{
    char *fields[FIELDS], *end;
    for (size_t f = 0; f < FIELDS; f++) {
        fields[f] = line;
        line += strcspn(line, f + 1 < FIELDS ? "," : "");
        if (f + 1 < FIELDS && !*line)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "expected %d fields, found %zu: no %s", FIELDS, f + 1,
                         field_names[f + 1]);
        if (f + 1 < FIELDS) *line++ = 0;
        if (strpbrk(fields[f], f + 1 < FIELDS ? "\"" : "\","))
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: expected no comma and no quote in '%.100s'", field_names[f],
                         fields[f]);
    }
    snprintf(result->benchmark, TEXT_BYTES, "%.199s", fields[0]);
    snprintf(result->metric, TEXT_BYTES, "%.199s", fields[1]);
    snprintf(result->model, TEXT_BYTES, "%.199s", fields[2]);
    snprintf(result->verified, TEXT_BYTES, "%.199s", fields[4]);
    snprintf(result->source, TEXT_BYTES, "%.199s", fields[5]);
    result->value = strtod(fields[3], &end);
    if (end == fields[3] || *end || !(result->value >= -100 && result->value <= 100))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "value: expected a number from -100 to 100, found '%.40s'", fields[3]);
    return DEBERTA_OK;
}

static deberta_status read_lines(benchmarks_study *study, FILE *file, const char *path, deberta_error *err)
{
    char buffer[2048];
    bool header = false;
    for (size_t number = 1; fgets(buffer, sizeof buffer, file); number++) {
        char *line = buffer + (number == 1 ? byte_order_mark(buffer, strlen(buffer)) : 0);
        deberta_error problem = {0};
        line[strcspn(line, "\r\n")] = 0;
        if (!*line || *line == '#') continue;
        if (!header) {
            header = true;
            if (strcmp(line, "benchmark,metric,model,value,verified,source") != 0)
                DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                             "%s, line %zu: expected the header benchmark,metric,model,value,verified,source", path,
                             number);
            continue;
        }
        if (study->count == MOST_RESULTS)
            DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: more than %d results", path, MOST_RESULTS);
        if (parse_line(&study->results[study->count], line, &problem) != DEBERTA_OK)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s, line %zu: %s", path, number, problem.message);
        study->quoted += is_quoted(&study->results[study->count++]);
    }
    if (study->count == study->quoted) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: holds no published result", path);
    return DEBERTA_OK;
}

static deberta_status read_file(benchmarks_study *study, const char *path, deberta_error *err)
{
    if (!(study->results = calloc(MOST_RESULTS, sizeof *study->results)))
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    FILE *file = fopen(path, "rb");
    if (!file) DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: %s", path, strerror(errno));
    const deberta_status status = read_lines(study, file, path, err);
    fclose(file);
    return status;
}

static size_t name_index(name_list *list, const char *name)
{
    size_t k = 0;
    while (k < list->count && strcmp(list->names[k], name) != 0) k++;
    if (k == list->count && k < MOST_NAMES) list->names[list->count++] = name;
    return k;
}

/* Models and rows of the published results. */
static deberta_status find_names(benchmarks_study *study, deberta_error *err)
{
    for (size_t k = 0; k < study->count; k++) {
        const published *result = &study->results[k];
        char *name = study->row_names[study->rows.count % MOST_NAMES];
        if (is_quoted(result)) continue;
        snprintf(name, sizeof *study->row_names, "%s (%s)", result->benchmark, result->metric);
        if (name_index(&study->models, result->model) == MOST_NAMES || name_index(&study->rows, name) == MOST_NAMES)
            DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "more than %d models or benchmarks", MOST_NAMES);
        if (study->rows.count == MOST_NAMES) break;
    }
    return DEBERTA_OK;
}

static const published *find_result(const benchmarks_study *study, const char *row, const char *model)
{
    char name[sizeof *study->row_names];
    for (size_t k = 0; k < study->count; k++) {
        const published *result = &study->results[k];
        snprintf(name, sizeof name, "%s (%s)", result->benchmark, result->metric);
        if (!is_quoted(result) && strcmp(result->model, model) == 0 && strcmp(name, row) == 0) return result;
    }
    return NULL;
}

/* ----------------------------------------------------------------------------------------------------------- tables */

static void add_results(benchmarks_study *study)
{
    result_table *table = study_add_table(&study->findings, "results", "Published results (%); * not verified", NULL);
    result_add_column(table, COLUMN_TEXT, NULL, "model");
    for (size_t r = 0; r < study->rows.count; r++)
        result_add_column(table, COLUMN_REAL, "%.1f", "%s", study->rows.names[r]);
    for (size_t m = 0; m < study->models.count; m++) {
        cell_text(table, "%s", study->models.names[m]);
        for (size_t r = 0; r < study->rows.count; r++) {
            const published *result = find_result(study, study->rows.names[r], study->models.names[m]);
            study->bars[m * study->rows.count + r] = result ? result->value : NAN;
            if (result && strcmp(result->verified, "yes") == 0)
                cell_real(table, result->value);
            else if (result)
                cell_text(table, "%.1f*", result->value);
            else
                cell_text(table, "-");
        }
    }
}

/* Whose number is it? First of the same benchmark and metric, then of any. */
static void describe_quoted(const benchmarks_study *study, const published *quoted, char *text, size_t bytes)
{
    for (int pass = 0; pass < 2; pass++)
        for (size_t k = 0; k < study->count; k++) {
            const published *result = &study->results[k];
            const bool same =
                strcmp(result->benchmark, quoted->benchmark) == 0 && strcmp(result->metric, quoted->metric) == 0;
            if (is_quoted(result) || fabs(result->value - quoted->value) > 0.005 || same != (pass == 0)) continue;
            if (pass == 0)
                snprintf(text, bytes, "as published, for %s", result->model);
            else
                snprintf(text, bytes, "wrong: it is %s (%s) of %s", result->benchmark, result->metric, result->model);
            return;
        }
    snprintf(text, bytes, "found in none of these publications");
}

static void add_quoted(benchmarks_study *study)
{
    if (!study->quoted) return;
    static const result_column columns[] = {STUDY_TEXT_COLUMN("quoted as"),
                                            {.name = "value", .type = COLUMN_REAL, .format = "%.1f"},
                                            STUDY_TEXT_COLUMN("by"),
                                            STUDY_TEXT_COLUMN("finding"),
                                            {.name = NULL}};
    result_table *table = study_add_table(&study->findings, "quoted", "Numbers quoted elsewhere", columns);
    for (size_t k = 0; k < study->count; k++) {
        const published *quoted = &study->results[k];
        char finding[3 * TEXT_BYTES];
        if (!is_quoted(quoted)) continue;
        describe_quoted(study, quoted, finding, sizeof finding);
        cell_text(table, "%s (%s)", quoted->benchmark, quoted->metric);
        cell_real(table, quoted->value);
        cell_text(table, "%s", quoted->source);
        cell_text(table, "%s", finding);
    }
}

static void add_data(benchmarks_study *study)
{
    static const result_column columns[] = {STUDY_TEXT_COLUMN("benchmark"),
                                            STUDY_TEXT_COLUMN("metric"),
                                            STUDY_TEXT_COLUMN("model"),
                                            {.name = "value", .type = COLUMN_REAL, .format = "%.1f"},
                                            STUDY_TEXT_COLUMN("verified"),
                                            STUDY_TEXT_COLUMN("source"),
                                            {.name = NULL}};
    study_set_data(&study->findings, columns);
    for (size_t k = 0; k < study->count; k++) {
        const published *result = &study->results[k];
        cell_text(study->findings.data, "%s", result->benchmark);
        cell_text(study->findings.data, "%s", result->metric);
        cell_text(study->findings.data, "%s", result->model);
        cell_real(study->findings.data, result->value);
        study_cell_text(study->findings.data, result->verified);
        study_cell_text(study->findings.data, result->source);
    }
}

/* ------------------------------------------------------------------------------------------------------------- run */

/* A panel a benchmark, a bar a model. */
static int finish(const common_options *options, benchmarks_study *study)
{
    const size_t rows = study->rows.count;
    size_t drawn = 0;
    for (size_t r = 0; r < rows; r++) {
        size_t count = 0;
        for (size_t m = 0; m < study->models.count; m++) {
            const double value = study->bars[m * rows + r];
            if (isnan(value)) continue;
            study->labels[r][count] = (figure_label){.text = study->models.names[m]};
            study->values[r][count++] = value;
        }
        study->series[r] = (chart_series){.kind = CHART_BARS, .y = study->values[r], .count = count};
        if (count < FEWEST_BARS) continue;
        study->panels[drawn++] =
            (chart_panel){.title = study->rows.names[r],
                          .x = {.scale = CHART_CATEGORIES, .categories = study->labels[r], .category_count = count},
                          .y = {.label = "%", .low = LOWEST, .high = 100},
                          .series = &study->series[r],
                          .series_count = 1};
    }
    const chart_figure figure = {
        .style = {.note = "Axes begin at 50 %. Sources and what could be verified: the table that this is drawn from."},
        .panels = study->panels,
        .panel_count = drawn,
        .columns = 3,
        .panel_height = 28};
    if (drawn) study->findings.chart = &figure;
    return study_finish(options, &study->findings);
}

static int run(const common_options *options)
{
    deberta_error error = {0};
    if (!study_check_options(options)) return EXIT_USAGE;
    benchmarks_study *study = calloc(1, sizeof *study);
    deberta_status status = study ? DEBERTA_OK : status_fail(&error, DEBERTA_E_MEMORY, "out of memory");
    if (status == DEBERTA_OK) status = read_file(study, options->arguments[0], &error);
    if (status == DEBERTA_OK) status = find_names(study, &error);
    if (status == DEBERTA_OK && !(study->bars = calloc(MOST_NAMES * MOST_NAMES, sizeof *study->bars)))
        status = status_fail(&error, DEBERTA_E_MEMORY, "out of memory");
    int code = EXIT_OK;
    if (status == DEBERTA_OK) {
        add_results(study);
        add_quoted(study);
        add_data(study);
        snprintf(study->findings.note, sizeof study->findings.note, "%zu published results, %zu quoted ones.",
                 study->count - study->quoted, study->quoted);
        code = finish(options, study);
    } else {
        code = say_error(options, &error);
    }
    if (study) {
        study_findings_free(&study->findings);
        free(study->results);
        free(study->bars);
    }
    free(study);
    return code;
}

static const option options[] = {
    STUDY_OPTIONS,
    {.name = NULL},
};

const command study_benchmarks = {
    .name = "study benchmarks",
    .summary = "published results with their sources, and whether quoted numbers are among them",
    .arguments = "FILE.csv",
    .min_arguments = 1,
    .max_arguments = 1,
    .options = options,
    .size = sizeof(study_options),
    .most_outputs = STUDY_MOST_OUTPUTS,
    .example = "  deberta study benchmarks docs/studies/data/benchmarks.csv -o benchmarks.pdf\n",
    .run = run,
    .claims = "SuperGLUE 89.9 against human 89.8; MNLI 91.1; SQuAD 2.0 95.5 F1",
};
