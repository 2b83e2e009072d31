/* `deberta study benchmarks`: published results from a table with sources, as points, and which of the numbers that are
 * quoted elsewhere are theirs. Computes nothing with a model. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/byte_order_mark.h"
#include "core/base/stream.h"
#include "studies/studies.h"

enum { FIELDS = 6, MOST_NAMES = 64, MOST_RESULTS = 4096, FEWEST_POINTS = 3 };
static const char *const field_names[FIELDS] = {"benchmark", "metric", "model", "value", "verified", "source"};

typedef struct published {
    const char *benchmark, *metric, *model, *verified, *source;
    const char *row; /* "benchmark (metric)" */
    double value;
} published;

/* Names in the order in which they first come. */
typedef struct name_list {
    const char *names[MOST_NAMES];
    size_t count;
} name_list;

typedef struct benchmarks_study {
    study study;
    published *results;
    size_t count, quoted;
    name_list models, rows;
} benchmarks_study;

static bool is_quoted(const published *result) { return strcmp(result->model, "quoted") == 0; }

/* ---------------------------------------------------------------------------------------------------------- reading */

/* Fields hold no comma and no quote: this table has none, and another is told so. */
static deberta_status parse_line(const common_options *options, published *result, char *line, deberta_error *err)
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
    *result = (published){.benchmark = options_text(options, "%s", fields[0]),
                          .metric = options_text(options, "%s", fields[1]),
                          .model = options_text(options, "%s", fields[2]),
                          .verified = options_text(options, "%s", fields[4]),
                          .source = options_text(options, "%s", fields[5]),
                          .row = options_text(options, "%s (%s)", fields[0], fields[1])};
    result->value = strtod(fields[3], &end);
    if (end == fields[3] || *end || !(result->value >= -100 && result->value <= 100))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "value: expected a number from -100 to 100, found '%.40s'", fields[3]);
    return DEBERTA_OK;
}

static deberta_status read_lines(benchmarks_study *s, FILE *file, const char *path, deberta_error *err)
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
        if (s->count == MOST_RESULTS)
            DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: more than %d results", path, MOST_RESULTS);
        if (parse_line(s->study.options, &s->results[s->count], line, &problem) != DEBERTA_OK)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s, line %zu: %s", path, number, problem.message);
        s->quoted += is_quoted(&s->results[s->count++]);
    }
    if (s->count == s->quoted) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: holds no published result", path);
    return DEBERTA_OK;
}

static deberta_status read_file(benchmarks_study *s, const char *path, deberta_error *err)
{
    s->results = options_take(s->study.options, MOST_RESULTS, sizeof *s->results);
    FILE *file = fopen(path, "rb");
    if (!file) DEBERTA_FAIL(err, DEBERTA_E_FILE, "%s: %s", path, strerror(errno));
    const deberta_status status = read_lines(s, file, path, err);
    stream_discard(file);
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
static deberta_status find_names(benchmarks_study *s, deberta_error *err)
{
    for (size_t k = 0; k < s->count; k++) {
        const published *result = &s->results[k];
        if (is_quoted(result)) continue;
        if (name_index(&s->models, result->model) == MOST_NAMES || name_index(&s->rows, result->row) == MOST_NAMES)
            DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "more than %d models or benchmarks", MOST_NAMES);
    }
    return DEBERTA_OK;
}

static const published *find_result(const benchmarks_study *s, const char *row, const char *model)
{
    for (size_t k = 0; k < s->count; k++) {
        const published *result = &s->results[k];
        if (!is_quoted(result) && strcmp(result->model, model) == 0 && strcmp(result->row, row) == 0) return result;
    }
    return NULL;
}

/* ----------------------------------------------------------------------------------------------------------- tables */

static void add_results(benchmarks_study *s)
{
    result_table *table = study_add_table(&s->study, "results", "Published results (%); * not verified", NULL);
    result_add_column(table, COLUMN_TEXT, NULL, "model");
    for (size_t r = 0; r < s->rows.count; r++) result_add_column(table, COLUMN_REAL, "%.1f", "%s", s->rows.names[r]);
    for (size_t m = 0; m < s->models.count; m++) {
        cell_text(table, "%s", s->models.names[m]);
        for (size_t r = 0; r < s->rows.count; r++) {
            const published *result = find_result(s, s->rows.names[r], s->models.names[m]);
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
static const char *describe_quoted(const benchmarks_study *s, const published *quoted)
{
    for (int pass = 0; pass < 2; pass++)
        for (size_t k = 0; k < s->count; k++) {
            const published *result = &s->results[k];
            const bool same = strcmp(result->row, quoted->row) == 0;
            if (is_quoted(result) || fabs(result->value - quoted->value) > 0.005 || same != (pass == 0)) continue;
            return pass == 0 ? options_text(s->study.options, "as published, for %s", result->model)
                             : options_text(s->study.options, "wrong: it is %s of %s", result->row, result->model);
        }
    return "found in none of these publications";
}

static void add_quoted(benchmarks_study *s)
{
    if (!s->quoted) return;
    static const result_column columns[] = {STUDY_TEXT_COLUMN("quoted as"),
                                            {.name = "value", .type = COLUMN_REAL, .format = "%.1f"},
                                            STUDY_TEXT_COLUMN("by"),
                                            STUDY_TEXT_COLUMN("finding"),
                                            {.name = NULL}};
    result_table *table = study_add_table(&s->study, "quoted", "Numbers quoted elsewhere", columns);
    for (size_t k = 0; k < s->count; k++) {
        const published *quoted = &s->results[k];
        if (!is_quoted(quoted)) continue;
        cell_text(table, "%s", quoted->row);
        cell_real(table, quoted->value);
        cell_text(table, "%s", quoted->source);
        cell_text(table, "%s", describe_quoted(s, quoted));
    }
}

static void add_data(benchmarks_study *s)
{
    static const result_column columns[] = {STUDY_TEXT_COLUMN("benchmark"),
                                            STUDY_TEXT_COLUMN("metric"),
                                            STUDY_TEXT_COLUMN("model"),
                                            {.name = "value", .type = COLUMN_REAL, .format = "%.1f"},
                                            STUDY_TEXT_COLUMN("verified"),
                                            STUDY_TEXT_COLUMN("source"),
                                            {.name = NULL}};
    study_set_data(&s->study, columns);
    for (size_t k = 0; k < s->count; k++) {
        const published *result = &s->results[k];
        cell_text(s->study.data, "%s", result->benchmark);
        cell_text(s->study.data, "%s", result->metric);
        cell_text(s->study.data, "%s", result->model);
        cell_real(s->study.data, result->value);
        study_cell_text(s->study.data, result->verified);
        study_cell_text(s->study.data, result->source);
    }
}

/* ----------------------------------------------------------------------------------------------------------- figure */

/* Series of the figure: what a model's name begins with; the first that fits. */
static const struct family {
    const char *beginning, *name;
    size_t look;
} families[] = {
    {"DeBERTa-v3", "DeBERTa v3", 2},
    {"DeBERTa-v2", "DeBERTa v2", 3},
    {"DeBERTa", "DeBERTa v1, 1.5B", 1},
    {"", "others", 8},
};
enum { FAMILIES = sizeof families / sizeof *families };

static size_t family_of(const char *model)
{
    size_t f = 0;
    while (strncmp(model, families[f].beginning, strlen(families[f].beginning)) != 0) f++;
    return f;
}

static size_t count_models(const benchmarks_study *s, const char *row)
{
    size_t count = 0;
    for (size_t m = 0; m < s->models.count; m++) count += find_result(s, row, s->models.names[m]) != NULL;
    return count;
}

/* The models that have a result, a series for each family, and a line for each number that is quoted. */
static void add_panel(benchmarks_study *s, const char *row)
{
    chart_columns *chart = &s->study.chart;
    chart_add_panel(chart, (chart_panel){.title = row, .x = {.scale = CHART_CATEGORIES}, .y = {.label = "%"}});
    for (size_t f = 0; f < FAMILIES; f++) {
        double place = 0;
        chart_add_series(chart,
                         (chart_series){.name = families[f].name, .kind = CHART_POINTS, .look = families[f].look});
        for (size_t m = 0; m < s->models.count; m++) {
            const published *result = find_result(s, row, s->models.names[m]);
            if (!result) continue;
            if (f == 0) chart_add_category(chart, s->models.names[m]);
            if (family_of(s->models.names[m]) == f) chart_add_point(chart, place, result->value);
            place++;
        }
    }
    for (size_t k = 0; k < s->count; k++)
        if (is_quoted(&s->results[k]) && strcmp(s->results[k].row, row) == 0)
            chart_add_rule(chart, (chart_rule){.at = s->results[k].value,
                                               .name = chart_text(chart, "quoted: %.1f", s->results[k].value)});
}

/* A panel a benchmark, those with most models first: the first has all families, and one legend serves all. */
static void fill_chart(benchmarks_study *s)
{
    for (size_t count = s->models.count; count >= FEWEST_POINTS; count--)
        for (size_t r = 0; r < s->rows.count; r++)
            if (count_models(s, s->rows.names[r]) == count) add_panel(s, s->rows.names[r]);
    s->study.chart.across = 3;
    s->study.chart.panel_height = 28;
    s->study.chart.no_letters = true;
    s->study.style.note =
        "Axes have the range of their benchmark. Dashed: numbers that are quoted elsewhere. Sources and "
        "what could be verified: the table that this is drawn from.";
}

static deberta_status work(study *base, deberta_error *err)
{
    benchmarks_study *s = (benchmarks_study *)base;
    DEBERTA_TRY(read_file(s, base->options->arguments[0], err));
    DEBERTA_TRY(find_names(s, err));
    add_results(s);
    add_quoted(s);
    add_data(s);
    base->note =
        options_text(base->options, "%zu published results, %zu quoted ones.", s->count - s->quoted, s->quoted);
    fill_chart(s);
    return DEBERTA_OK;
}

static const option options[] = {
    STUDY_OPTIONS,
    {.name = NULL},
};

const study_kind study_benchmarks = {
    STUDY_COMMAND("benchmarks", "FILE.csv", 1, 1, study_options,
                  .summary = "published results with their sources, and whether quoted numbers are among them",
                  .example = "  deberta study benchmarks docs/studies/data/benchmarks.csv -o benchmarks.pdf\n",
                  .claims = "SuperGLUE 89.9 against human 89.8; MNLI 91.1; SQuAD 2.0 95.5 F1"),
    .size = sizeof(benchmarks_study),
    .work = work,
};
