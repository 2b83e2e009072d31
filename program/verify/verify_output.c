/* Turns rows of a verification into a table, JSON, and sentences on tiers, failures and growth.
 *
 * SPDX-License-Identifier: MIT */
#include "include/deberta_unstable.h"
#include "program/verify/verify_output.h"

#include <math.h>
#include <string.h>

/* Returns a JSON number; JSON has no infinity. */
static json_t *finite_number(double value) { return json_real(value < 1e300 ? value : 1e300); }

static json_t *describe_row(const verify_row *row, bool errors_only)
{
    json_t *object = json_pack("{s:s, s:s, s:I, s:b, s:f}", "subject", row->subject, "isa", deberta_isa_name(row->tier),
                               "values", (json_int_t)row->values, "passed", row->passed, "limit", row->limit);
    if (!errors_only) json_object_set_new(object, "differing", json_integer((json_int_t)row->differing));
    if (*row->place.quantity) {
        json_object_set_new(object, "quantity", json_string(row->place.quantity));
        json_object_set_new(object, "layer", json_integer((json_int_t)row->place.layer));
    }
    if (row->has_error) {
        json_object_set_new(object, "worst", finite_number(row->worst));
        json_object_set_new(object, "p999", finite_number(row->percentile_999));
        json_object_set_new(object, "median", finite_number(row->median));
        json_object_set_new(object, "worst_ulp", finite_number(row->worst_ulp));
        json_object_set_new(object, "p999_ulp", finite_number(row->ulp_999));
        json_object_set_new(object, "where", json_string(row->where));
        json_object_set_new(object, "relative_error", finite_number(verify_relative_error(&row->norms)));
        json_object_set_new(object, "cosine", finite_number(verify_cosine(&row->norms)));
    }
    return object;
}

/* Lists, for each slot of a tier's session, the tier whose code it holds. */
static json_t *describe_tier(deberta_isa isa, bool verified)
{
    const char *missing = deberta_isa_missing(isa), *name, *from;
    json_t *object = json_pack("{s:s, s:b}", "isa", deberta_isa_name(isa), "verified", verified);
    if (missing) json_object_set_new(object, "missing", json_string(missing));
    if (!verified || missing) return object;
    json_t *slots = json_object();
    for (size_t k = 0; (name = deberta_kernel_name(isa, k, &from)); k++)
        json_object_set_new(slots, name, json_string(from));
    json_object_set_new(object, "kernels", slots);
    return object;
}

static void verify_output_describe(const verify_report *report, const verify_options *verify, result *r)
{
    json_t *rows = json_array(), *tiers = json_array();
    for (size_t k = 0; k < report->count; k++)
        json_array_append_new(rows, describe_row(&report->rows[k], report->errors_only));
    for (int t = DEBERTA_ISA_SCALAR; t < DEBERTA_ISA_COUNT; t++)
        json_array_append_new(tiers, describe_tier((deberta_isa)t, verify->tiers[t]));
    result_set(r, "checks", json_integer((json_int_t)report->count));
    result_set(r, "failures", json_integer((json_int_t)report->failures));
    result_set(r, "tiers", tiers);
    result_set(r, "results", rows);
}

/* ------------------------------------------------------------------------------------------------------------ text */

/* Returns true if a kernel is a tier's: "scalar_fma" is the scalar tier's, for processors with FMA. */
static bool is_of_tier(const char *kernel, const char *tier) { return strncmp(kernel, tier, strlen(tier)) == 0; }

static void say_tiers(const verify_options *verify, result *r)
{
    for (int t = DEBERTA_ISA_SCALAR; t < DEBERTA_ISA_COUNT; t++) {
        const deberta_isa isa = (deberta_isa)t;
        const char *missing = deberta_isa_missing(isa), *own = deberta_isa_name(isa), *name, *from;
        if (missing || !verify->tiers[t]) {
            result_say(r, "tier %s: not verified, %s", own, missing ? missing : "not asked for");
            continue;
        }
        size_t slots = 0, of_its_own = 0;
        for (; deberta_kernel_name(isa, slots, &from); slots++) of_its_own += is_of_tier(from, own);
        result_say(r, "tier %s: %zu of %zu kernels are its own", own, of_its_own, slots);
        for (size_t k = 0; (name = deberta_kernel_name(isa, k, &from)); k++)
            if (!is_of_tier(from, own)) result_say_more(r, ", %s is %s", name, from);
    }
}

static bool same_numbers(const verify_row *a, const verify_row *b)
{
    return strcmp(a->subject, b->subject) == 0 && a->passed && b->passed && a->values == b->values &&
           a->differing == b->differing && a->worst == b->worst && a->percentile_999 == b->percentile_999 &&
           a->worst_ulp == b->worst_ulp && a->ulp_999 == b->ulp_999;
}

/* Writes the tiers of all rows that agree with row k; returns false if an earlier row has listed them. */
static bool tiers_of(const verify_report *report, size_t k, char text[64])
{
    size_t used = 0;
    for (size_t j = 0; j < report->count; j++) {
        if (j != k && !same_numbers(&report->rows[j], &report->rows[k])) continue;
        if (j < k) return false;
        used +=
            (size_t)snprintf(text + used, 64 - used, "%s%s", used ? " " : "", deberta_isa_name(report->rows[j].tier));
    }
    return true;
}

/* Columns of a check's subject. The place of the worst value takes a third of a line, so the plain table has it for
 * failures only. Errors are texts, since they may be infinite. */
#define SUBJECT_COLUMNS                                                                                                \
    {"what", NULL, COLUMN_TEXT, NULL, 0}, {"isa", NULL, COLUMN_TEXT, NULL, 0},                                         \
    {                                                                                                                  \
        "values", NULL, COLUMN_INTEGER, NULL, 0                                                                        \
    }
#define ERROR_COLUMNS                                                                                                  \
    {"worst", NULL, COLUMN_TEXT, NULL, 0}, {"p99.9", NULL, COLUMN_TEXT, NULL, 0},                                      \
        {"limit", NULL, COLUMN_TEXT, NULL, 0}, {"worst ULP", NULL, COLUMN_TEXT, NULL, 0},                              \
        {"p99.9 ULP", NULL, COLUMN_TEXT, NULL, 0}, {"worst at", NULL, COLUMN_TEXT, NULL, NOT_IN_TEXT | NOT_IN_LATEX},  \
    {                                                                                                                  \
        .name = NULL                                                                                                   \
    }
static const result_column errors_alone[] = {SUBJECT_COLUMNS, ERROR_COLUMNS},
                           bits_and_errors[] = {
                               SUBJECT_COLUMNS, {"bits differ", NULL, COLUMN_INTEGER, NULL, 0}, ERROR_COLUMNS};

static void add_table(const verify_report *report, result *r)
{
    result_table *table = result_add_table(r, NULL, NULL, report->errors_only ? errors_alone : bits_and_errors);
    char tiers[64];
    for (size_t k = 0; k < report->count; k++) {
        const verify_row *row = &report->rows[k];
        if (!tiers_of(report, k, tiers)) continue;
        cell_text(table, "%s", row->subject);
        cell_text(table, "%s", tiers);
        cell_integer(table, (int64_t)row->values);
        if (!report->errors_only) cell_integer(table, (int64_t)row->differing);
        const double errors[] = {row->worst, row->percentile_999, row->limit, row->worst_ulp, row->ulp_999};
        for (size_t e = 0; e < sizeof errors / sizeof *errors; e++)
            if (row->has_error)
                cell_text(table, "%.3g", errors[e]);
            else
                cell_none(table);
        cell_text(table, "%s", row->where);
    }
}

static void say_failures(const verify_report *report, result *r)
{
    for (size_t k = 0; k < report->count; k++) {
        const verify_row *row = &report->rows[k];
        if (row->passed) continue;
        result_say(r, "FAILED %s, %s: ", row->subject, deberta_isa_name(row->tier));
        if (!report->errors_only)
            result_say_more(r, "%zu of %zu values have other bits than scalar%s", row->differing, row->values,
                            row->has_error ? "; " : "");
        if (row->has_error) result_say_more(r, "error %.3g, limit %.3g, at %s", row->worst, row->limit, row->where);
    }
}

/* Reports the check that comes nearest to its limit. */
static void say_worst(const verify_report *report, result *r)
{
    const verify_row *worst = NULL;
    for (size_t k = 0; k < report->count; k++) {
        const verify_row *row = &report->rows[k];
        if (row->has_error && row->limit > 0 && (!worst || row->worst / row->limit > worst->worst / worst->limit))
            worst = row;
    }
    if (worst)
        result_say(r, "nearest to its limit: %s, %.3g of %.3g, at %s", worst->subject, worst->worst, worst->limit,
                   worst->where);
}

static double growing_percentile(const verify_row *row) { return row->percentile_999; }
static double growing_error(const verify_row *row) { return verify_relative_error(&row->norms); }
static double growing_angle(const verify_row *row) { return fmax(0, 1 - verify_cosine(&row->norms)); }

/* Prints one number for the hidden states of one model, layer by layer; first: row of its layer 0. */
static void say_by_layer(const verify_report *report, size_t first, const char *what,
                         double (*number)(const verify_row *), result *r)
{
    const verify_row *of = &report->rows[first];
    result_say(r, "growth%s%s, %s of hidden states by layer:", *of->place.model ? " in " : "", of->place.model, what);
    for (size_t k = first; k < report->count; k++) {
        const verify_row *row = &report->rows[k];
        if (row->tier == of->tier && strcmp(row->place.model, of->place.model) == 0 &&
            strcmp(row->place.quantity, "hidden") == 0)
            result_say_more(r, " %.3g", number(row));
    }
}

static void say_growth(const verify_report *report, result *r)
{
    for (size_t k = 0; k < report->count; k++) {
        const verify_row *first = &report->rows[k];
        if (strcmp(first->place.quantity, "hidden") != 0 || first->place.layer != 0 || !first->has_error) continue;
        if (k > 0 && first->tier != report->rows[0].tier) continue;
        say_by_layer(report, k, "p99.9", growing_percentile, r);
        say_by_layer(report, k, "relative error", growing_error, r);
        say_by_layer(report, k, "1 - cosine", growing_angle, r);
    }
}

result *verify_result(const verify_report *report, const verify_options *verify)
{
    result *r = result_new("deberta-verify/1");
    verify_output_describe(report, verify, r);
    result_say(r, "errors against float64 in eps x sum of |terms| (kernels) or eps x largest magnitude (models), "
                  "eps = 2^-23,\nand in units of the last place of each value\n");
    if (verify->precision != DEBERTA_PRECISION_FLOAT32)
        result_say(r, "linear layers of the engine in %s", deberta_precision_name(verify->precision));
    say_tiers(verify, r);
    add_table(report, r);
    say_failures(report, r);
    say_growth(report, r);
    say_worst(report, r);
    result_say(r, "%zu checks, %zu failed", report->count, report->failures);
    return r;
}
