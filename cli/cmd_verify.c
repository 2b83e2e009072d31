/* `deberta verify`: every tier against the scalar one bit for bit and against float64; or the engine against its own
 * deliberate mistakes. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/input.h"
#include "cli/run.h"
#include "cli/verify_against.h"
#include "study/verify.h"

/* Small models that between them use every part of the engine: v1 with clamped distances, types and absolute positions;
 * v2 with convolution; v3 with log buckets beyond their range and both language-model heads. */
static const struct {
    const char *label, *path;
    size_t tokens;
} standard_models[] = {
    {"v1",
     "synthetic:v1-base,layers=2,hidden=96,heads=4,intermediate=200,vocab=97,distance=16,positions=64,types=2,biased=1",
     41},
    {"v2", "synthetic:v2-xlarge,layers=2,hidden=128,heads=2,intermediate=256,vocab=97,buckets=16,distance=40,epsilon=3",
     70},
    {"v3", "synthetic:v3-base,layers=3,hidden=192,heads=3,intermediate=384,vocab=97,buckets=32,distance=100,lm=1,rtd=1",
     140},
};
enum { STANDARD_MODELS = sizeof standard_models / sizeof *standard_models };

static bool read_options(const parsed_options *options, verify_options *verify)
{
    deberta_isa isa;
    deberta_model_options model_options;
    uint64_t seed;
    if (!run_isa(options, &isa) || !run_model_options(options, &model_options) ||
        !options_u64(options, "seed", 1, &seed))
        return false;
    *verify = (verify_options){.seed = seed,
                               .threads = model_options.threads,
                               .reference = model_options.reference,
                               .memory_limit_bytes = model_options.memory_limit_bytes};
    for (int t = DEBERTA_ISA_SCALAR; t < DEBERTA_ISA_COUNT; t++)
        verify->tiers[t] = !deberta_isa_missing((deberta_isa)t) && (isa == DEBERTA_ISA_AUTO || t == (int)isa);
    return true;
}

/* Ids that repeat now and then, as words do, always the same for a seed. */
static void make_ids(int32_t *ids, size_t tokens, size_t vocabulary, uint64_t seed)
{
    uint64_t state = seed * 2862933555777941757u + 3037000493u;
    for (size_t t = 0; t < tokens; t++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        ids[t] = (int32_t)((state >> 33) % vocabulary);
    }
}

static deberta_status verify_standard(verify_report *report, const verify_options *verify, deberta_error *err)
{
    for (size_t k = 0; k < STANDARD_MODELS; k++) {
        int32_t ids[256];
        make_ids(ids, standard_models[k].tokens, 97, verify->seed + k);
        DEBERTA_TRY(verify_model(report, verify, standard_models[k].path, standard_models[k].label, ids,
                                 standard_models[k].tokens, err));
    }
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------------- output */

static json_t *describe_row(const verify_row *row)
{
    json_t *object = json_pack("{s:s, s:s, s:I, s:I, s:b, s:f}", "subject", row->subject, "isa",
                               deberta_isa_name(row->tier), "values", (json_int_t)row->values, "differing",
                               (json_int_t)row->differing, "passed", row->passed, "limit", row->limit);
    if (row->has_error) {
        json_object_set_new(object, "worst", json_real(row->worst < 1e300 ? row->worst : 1e300));
        json_object_set_new(object, "p999", json_real(row->percentile_999 < 1e300 ? row->percentile_999 : 1e300));
        json_object_set_new(object, "where", json_string(row->where));
    }
    return object;
}

static int print_report(const parsed_options *options, const verify_report *report)
{
    if (options_has(options, "json")) {
        json_t *rows = json_array();
        for (size_t k = 0; k < report->count; k++) json_array_append_new(rows, describe_row(&report->rows[k]));
        return run_print_json(options, json_pack("{s:s, s:I, s:I, s:o}", "schema", "deberta-verify/1", "checks",
                                                 (json_int_t)report->count, "failures", (json_int_t)report->failures,
                                                 "results", rows));
    }
    text_output output;
    const int status = text_output_open(options, options_value(options, "out", NULL), &output);
    if (status != EXIT_OK) return status;
    fprintf(output.file,
            "errors against float64 in eps x sum of |terms| (kernels) or eps x largest magnitude (models)\n\n");
    fprintf(output.file, "%-22s %-7s %10s %10s %9s %9s %7s\n", "what", "isa", "values", "bits differ", "worst", "p99.9",
            "limit");
    for (size_t k = 0; k < report->count; k++) {
        const verify_row *row = &report->rows[k];
        fprintf(output.file, "%-22s %-7s %10zu %10zu %9.3g %9.3g %7.4g%s\n", row->subject, deberta_isa_name(row->tier),
                row->values, row->differing, row->worst, row->percentile_999, row->limit,
                row->passed ? "" : "  FAILED");
        if (!row->passed && row->has_error) fprintf(output.file, "    %s\n", row->where);
    }
    fprintf(output.file, "\n%zu checks, %zu failed\n", report->count, report->failures);
    return text_output_close(options, &output);
}

static void print_repeat_command(const parsed_options *options)
{
    static const char *const without[] = {"out", "json", "quiet", NULL};
    char *line = options_command_line(options, without);
    run_note(options, "repeat: %s", line ? line : "");
    free(line);
}

/* ------------------------------------------------------------------------------------------------------- mutations */

/* 1 when the fault was noticed, 0 when it was missed: the exit codes of a check that is itself checked. */
static int mutate(const parsed_options *options, verify_options *verify, const char *name)
{
    if (strcmp(name, "list") == 0) {
        for (int m = MUTATION_NONE + 1; m < MUTATION_COUNT; m++)
            printf("%s %s\n", mutation_name((model_mutation)m), mutation_description((model_mutation)m));
        return EXIT_OK;
    }
    verify->mutation = mutation_from_name(name);
    if (verify->mutation == MUTATION_COUNT || verify->mutation == MUTATION_NONE)
        return report_usage(options, "--mutate: no mutation is called '%s' (see --mutate list)", name);
    /* one tier is enough: the fault is in what all of them compute */
    for (int t = 0; t < DEBERTA_ISA_COUNT; t++) verify->tiers[t] = t == (int)deberta_isa_best();
    verify_report report = {0};
    deberta_error error = {0};
    if (verify_standard(&report, verify, &error) != DEBERTA_OK) {
        verify_report_free(&report);
        return report_error(options, &error);
    }
    const bool caught = report.failures > 0;
    printf("%s: %s (%zu of %zu checks failed)\n", name, caught ? "caught" : "missed", report.failures, report.count);
    verify_report_free(&report);
    return caught ? EXIT_CHECK_FAILED : EXIT_OK;
}

static int verify_one(const parsed_options *options, const verify_options *verify, verify_report *report)
{
    input_batch input = {0};
    deberta_error error = {0};
    const char *path = options_argument(options, 0);
    const bool given = options_has(options, "ids") || options_has(options, "text") || options_has(options, "file");
    deberta_model *model = NULL;
    deberta_model_info info = {0};
    int status = run_open_model(options, &model);
    if (status != EXIT_OK) return status;
    deberta_model_describe(model, &info);
    deberta_model_free(&model);
    if (given) {
        status = input_read(options, path, &info, &input);
        for (size_t t = 0; status == EXIT_OK && t < input.tokens; t++)
            if (input.ids[t] < 0 || (size_t)input.ids[t] >= info.vocabulary_size) {
                status_fail(&error, DEBERTA_E_ARGUMENT, "id %d at token %zu: the vocabulary has %zu rows (0 ... %zu)",
                            input.ids[t], t, info.vocabulary_size, info.vocabulary_size - 1);
                status = report_error(options, &error);
            }
        for (size_t s = 0; status == EXIT_OK && s < input.sequences; s++) {
            const size_t first = input.sequence_starts[s], n = input.sequence_starts[s + 1] - first;
            if (verify_model(report, verify, path, "", input.ids + first, n, &error) != DEBERTA_OK)
                status = report_error(options, &error);
        }
        input_free(&input);
        return status;
    }
    size_t tokens;
    if (!options_size(options, "tokens", 48, 1, 1 << 16, &tokens)) return EXIT_USAGE;
    int32_t *ids = malloc(tokens * sizeof *ids);
    if (!ids) return EXIT_SYSTEM;
    make_ids(ids, tokens, info.vocabulary_size, verify->seed);
    if (verify_model(report, verify, path, "", ids, tokens, &error) != DEBERTA_OK)
        status = report_error(options, &error);
    free(ids);
    return status;
}

/* Options that would be passed over in silence. */
static bool check_combination(const parsed_options *options)
{
    static const char *const of_a_model[] = {"against", "ids", "text", "file", "tokens"};
    const bool model = options_argument_count(options) > 0;
    if (model && options_has(options, "mutate")) {
        report_usage(options, "--mutate runs on its own models: give no MODEL with it");
        return false;
    }
    const char *first = NULL;
    for (size_t k = 0; k < sizeof of_a_model / sizeof *of_a_model; k++) {
        if (!options_has(options, of_a_model[k])) continue;
        if (!model) {
            report_usage(options, "--%s needs a MODEL", of_a_model[k]);
            return false;
        }
        if (first && (strcmp(first, "text") != 0 || strcmp(of_a_model[k], "file") != 0)) {
            report_usage(options, "give one of --%s and --%s", first, of_a_model[k]);
            return false;
        }
        first = of_a_model[k];
    }
    const char *against = options_value(options, "against", NULL);
    const char *suffix = against ? strrchr(against, '.') : NULL;
    if (!against || (suffix && strcmp(suffix, ".safetensors") == 0)) return true;
    report_usage(options, "--against: unknown suffix in '%s', expected .safetensors", against);
    return false;
}

static int run(const parsed_options *options)
{
    verify_options verify;
    verify_report report = {0};
    deberta_error error = {0};
    if (!read_options(options, &verify) || !check_combination(options)) return EXIT_USAGE;
    const char *mutation = options_value(options, "mutate", NULL);
    if (mutation) return mutate(options, &verify, mutation);
    int status = EXIT_OK;
    if (options_has(options, "against")) {
        status = verify_against_file(options, &verify, &report);
    } else if (options_argument_count(options)) {
        status = verify_one(options, &verify, &report);
    } else if (verify_kernels(&report, &verify, &error) != DEBERTA_OK ||
               verify_standard(&report, &verify, &error) != DEBERTA_OK) {
        status = report_error(options, &error);
    }
    if (status == EXIT_OK) status = print_report(options, &report);
    if (status == EXIT_OK && report.failures) {
        print_repeat_command(options);
        status = EXIT_CHECK_FAILED;
    }
    verify_report_free(&report);
    return status;
}

static const option_spec options[] = {
    {"text", 0, "TEXT", "verify on this text; may be repeated"},
    {"file", 'f', "FILE", "verify on texts, one a line; - is standard input"},
    {"ids", 0, "LIST", "verify on these token ids"},
    {"tokens", 'n', "N", "verify on N made-up ids (default 48)"},
    {"against", 0, "FILE", "compare with tensors in the layout of `encode`, such as tools/reference.py writes"},
    {"mutate", 0, "NAME", "put a fault into the engine: exit 1 if it is noticed, 0 if not; `list` names them"},
    {NULL, 0, NULL, NULL},
};

const command command_verify = {
    .name = "verify",
    .summary = "every tier bit for bit against scalar, and all of them against float64",
    .arguments = "[MODEL]",
    .max_arguments = 1,
    .options = options,
    .example =
        "  deberta verify\n  deberta verify synthetic:v3-xsmall,layers=2 -n 100\n  deberta verify --mutate p2c_ji\n",
    .run = run,
};
