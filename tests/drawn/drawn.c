/* Runs drawn models, texts and ways of training through every feature that has a second way to its result, or plants a
 * fault into training, which such cases must notice (docs/evidence.md, "Drawn cases").
 *
 *     drawn [--configurations N] [--first K] [--seed S] [--training] [--threads N] [--isa NAME] [--json]
 *     drawn --mutate NAME [--configurations N] ...      exit 1 if the fault is noticed, 0 if not; list names them
 *
 * A seed and a number are a case. --training leaves inference out. Exit 1: a case failed; the line that repeats the
 * first one is printed. Without --threads as many as the program takes, without --isa every tier of this processor.
 *
 * SPDX-License-Identifier: MIT */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/numbers.h"
#include "output/result.h"
#include "tests/drawn/drawn_run.h"

/* Drawn cases where their number is not given; with a fault, so many until one shows it. */
enum { DRAWN_CASES = 10, MUTATED_CASES = 400 };

/* ------------------------------------------------------------------------------------------------------------- results */

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

static void describe_report(const drawn_report *report, const drawing_options *options, result *r)
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

static result *drawn_result(const drawn_report *report, const drawing_options *options)
{
    result *r = result_new("deberta-verify-drawn/1");
    describe_report(report, options, r);
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

/* ------------------------------------------------------------------------------------------------------- command line */

typedef struct request {
    drawing_options drawing;
    const char *fault; /* a name, "list", or NULL */
    bool as_json;
} request;

static _Noreturn void end_wrong(const char *what, const char *value)
{
    fprintf(stderr, "drawn: %s%s\n", what, value);
    exit(2);
}

static uint64_t read_number(const char *text)
{
    char *end;
    const uint64_t number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end) end_wrong("expected a whole number, found ", text);
    return number;
}

static void use_tier(request *r, const char *name)
{
    deberta_isa isa;
    if (deberta_isa_from_name(&isa, name, NULL) != DEBERTA_OK || isa == DEBERTA_ISA_AUTO || deberta_isa_missing(isa))
        end_wrong("no instruction set of this processor: ", name);
    for (int t = 0; t < DEBERTA_ISA_COUNT; t++) r->drawing.verify.tiers[t] = t == (int)isa;
}

static request read_request(int argc, char **argv)
{
    static const struct option rows[] = {
        {"configurations", required_argument, NULL, 'n'},
        {"first", required_argument, NULL, 'f'},
        {"seed", required_argument, NULL, 's'},
        {"threads", required_argument, NULL, 't'},
        {"isa", required_argument, NULL, 'i'},
        {"mutate", required_argument, NULL, 'm'},
        {"training", no_argument, NULL, 'T'},
        {"json", no_argument, NULL, 'j'},
        {NULL, 0, NULL, 0},
    };
    request r = {.drawing.verify.seed = 1};
    for (int t = DEBERTA_ISA_SCALAR; t < DEBERTA_ISA_COUNT; t++)
        r.drawing.verify.tiers[t] = !deberta_isa_missing((deberta_isa)t);
    for (int row; (row = getopt_long(argc, argv, "", rows, NULL)) != -1;) switch (row) {
        case 'n': r.drawing.count = read_number(optarg); break;
        case 'f': r.drawing.first = read_number(optarg); break;
        case 's': r.drawing.verify.seed = read_number(optarg); break;
        case 't': r.drawing.verify.threads = read_number(optarg); break;
        case 'i': use_tier(&r, optarg); break;
        case 'm': r.fault = optarg; break;
        case 'T': r.drawing.training_only = true; break;
        case 'j': r.as_json = true; break;
        default: exit(2); /* getopt has said what is wrong */
        }
    if (optind < argc) end_wrong("unexpected argument ", argv[optind]);
    if (r.fault && r.as_json) end_wrong("--mutate prints text alone, not ", "--json");
    return r;
}

static int list_faults(void)
{
    for (const backward_fault *f = backward_faults; f->name; f++) printf("%s %s\n", f->name, f->description);
    return 0;
}

/* Faults are those of training; one tier is enough: the fault is in what all of them compute. */
static int try_fault(request *r)
{
    size_t checks = 0;
    drawn_report report = {0};
    deberta_error error = {0};
    drawing_options *drawing = &r->drawing;
    drawing->fault = backward_fault_find(r->fault);
    if (!drawing->fault) end_wrong("--mutate list names the faults; none is called ", r->fault);
    if (!drawing->count) drawing->count = MUTATED_CASES;
    drawing->training_only = true;
    use_tier(r, deberta_isa_name(deberta_isa_best()));
    if (drawn_run_cases(&report, drawing, &error) != DEBERTA_OK) end_wrong(error.message, "");
    for (size_t k = 0; k < report.count; k++) checks += report.rows[k].cases;
    printf("%s: %s (%zu of %zu checks failed)\n", r->fault, report.failures ? "caught" : "missed", report.failures,
           checks);
    scope_free(&report.memory);
    return report.failures > 0;
}

static int run_cases(const char *program, request *r)
{
    drawn_report report = {0};
    deberta_error error = {0};
    if (!r->drawing.count) r->drawing.count = DRAWN_CASES;
    if (drawn_run_cases(&report, &r->drawing, &error) != DEBERTA_OK) end_wrong(error.message, "");
    result *found = drawn_result(&report, &r->drawing);
    result_write(found, stdout, r->as_json ? RESULT_JSON : RESULT_TEXT);
    result_free(&found);
    scope_free(&report.memory);
    if (report.failures)
        fprintf(stderr, "repeat: %s%s --configurations 1 --seed %" PRIu64 " --first %zu\n", program,
                r->drawing.training_only ? " --training" : "", r->drawing.verify.seed, report.first_failed);
    return report.failures > 0;
}

int main(int argc, char **argv)
{
    request r = read_request(argc, argv);
    if (r.fault) return strcmp(r.fault, "list") == 0 ? list_faults() : try_fault(&r);
    return run_cases(argv[0], &r);
}
