/* Turns rows of drawn cases into a table and JSON. SPDX-License-Identifier: MIT */
#include "program/verify/verify_output.h"

#include <string.h>

static bool has_error(const drawn_row *row) { return strcmp(row->against, "float64") == 0; }

/* JSON has no infinity. */
static json_t *describe_row(const drawn_row *row)
{
    json_t *object = json_pack("{s:s, s:s, s:I, s:I}", "feature", row->feature, "against", row->against, "cases",
                               (json_int_t)row->cases, "failures", (json_int_t)row->failures);
    if (has_error(row)) json_object_set_new(object, "worst", json_real(row->worst < 1e300 ? row->worst : 1e300));
    if (has_error(row) || row->failures) {
        json_object_set_new(object, "worst_case", json_integer((json_int_t)row->worst_case));
        json_object_set_new(object, "where", json_string(row->where));
    }
    return object;
}

static void drawn_output_describe(const drawn_report *report, const drawing_options *options, result *r)
{
    json_t *rows = json_array();
    for (size_t k = 0; k < report->count; k++) json_array_append_new(rows, describe_row(&report->rows[k]));
    result_set(r, "seed", json_integer((json_int_t)options->verify.seed));
    result_set(r, "first", json_integer((json_int_t)options->first));
    result_set(r, "cases", json_integer((json_int_t)options->count));
    result_set(r, "failures", json_integer((json_int_t)report->failures));
    result_set(r, "failed_cases", json_integer((json_int_t)report->failed_cases));
    result_set(r, "features", rows);
}

static const result_column columns[] = {
    {"feature", NULL, COLUMN_TEXT, NULL, 0},
    {"against", NULL, COLUMN_TEXT, NULL, 0},
    {"cases", NULL, COLUMN_INTEGER, NULL, 0},
    {"error / limit", NULL, COLUMN_TEXT, NULL, 0},
    {"failures", NULL, COLUMN_INTEGER, NULL, 0},
    {"worst case", NULL, COLUMN_INTEGER, NULL, 0},
    {"worst at", NULL, COLUMN_TEXT, NULL, NOT_IN_TEXT | NOT_IN_LATEX},
    {.name = NULL},
};

static void add_table(const drawn_report *report, result *r)
{
    result_table *table = result_add_table(r, NULL, NULL, columns);
    for (size_t k = 0; k < report->count; k++) {
        const drawn_row *row = &report->rows[k];
        cell_text(table, "%s", row->feature);
        cell_text(table, "%s", row->against);
        cell_integer(table, (int64_t)row->cases);
        if (has_error(row))
            cell_text(table, "%.3g", row->worst);
        else
            cell_none(table);
        cell_integer(table, (int64_t)row->failures);
        if (has_error(row) || row->failures)
            cell_integer(table, (int64_t)row->worst_case);
        else
            cell_none(table);
        cell_text(table, "%s", row->where);
    }
}

result *drawn_result(const drawn_report *report, const drawing_options *options)
{
    result *r = result_new("deberta-verify-drawn/1");
    drawn_output_describe(report, options, r);
    result_say(r, "drawn models and texts, by feature; errors against float64 in units of their limit, and other ways "
                  "to the same bits");
    add_table(report, r);
    for (size_t k = 0; k < report->count; k++) {
        const drawn_row *row = &report->rows[k];
        if (row->failures)
            result_say(r, "FAILED %s against %s, %zu of %zu, worst in case %zu: %s", row->feature, row->against,
                       row->failures, row->cases, row->worst_case, row->where);
    }
    result_say(r, "%zu cases from %zu on, seed %llu: %zu failed", options->count, options->first,
               (unsigned long long)options->verify.seed, report->failed_cases);
    return r;
}
