/* `deberta verify` checks every tier against the scalar one bit for bit and against float64, or the engine against its
 * own deliberate mistakes.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/base/numbers.h"
#include "core/base/text.h"
#include "program/commands.h"
#include "program/frame/ablate.h"
#include "program/frame/input/input.h"
#include "program/frame/open_model.h"
#include "program/frame/text_output.h"
#include "program/train/train_audit.h"
#include "program/verify/verify_output.h"

/* Drawn cases, where their number is not given; with a fault, so many until one shows it. */
enum { DRAWN_CASES = 10, MUTATED_CASES = 400, MOST_CASES = 1000000 };

typedef struct verify_request {
    reading_options reading;
    size_t tokens;
    const char *against, *mutate;
    bool training, allow_extra, publish;
    size_t configurations, first;
    const char *audit, *generator; /* the folder of a run; where its generator is */
    size_t segments;
    bool commit;
} verify_request;

static bool is_drawn(const verify_request *request)
{
    return request->training || option_given(&request->reading.common, &request->configurations);
}

static verify_options options_of(const common_options *options)
{
    verify_options verify = {.seed = options->seed,
                             .threads = options->threads,
                             .reference = (deberta_reference)options->reference,
                             .precision = (deberta_precision)options->precision,
                             .memory_limit_bytes = options->memory_limit_bytes,
                             .ablations = options->ablated.items,
                             .ablation_count = options->ablated.count};
    for (int t = DEBERTA_ISA_SCALAR; t < DEBERTA_ISA_COUNT; t++)
        verify.tiers[t] =
            !deberta_isa_missing((deberta_isa)t) && (options->isa == DEBERTA_ISA_AUTO || t == (int)options->isa);
    return verify;
}

/* ---------------------------------------------------------------------------------------------------------- output */

typedef struct verify_output {
    result_format format;
    output_paths paths;
} verify_output;

static void draw_report(const common_options *options, const output_paths *paths, const verify_report *report)
{
    const char *precision = low_precision_name(options);
    const figure_style style = {
        .title = precision ? options_text(options, "errors of %s against float64, by layer", precision)
                           : "errors against float64, by layer",
        .note = report->failures ? "eps = 2⁻²³. Checks failed: this is the first tier." : "eps = 2⁻²³, on every tier."};
    output_draw(options, paths->figures, paths->figure_count, DRAWING(verify_figure_draw), report, &style);
}

static void publish(const common_options *options, const verify_output *to)
{
    if (to->format != RESULT_TEXT || to->paths.figure_count)
        usage_wrong(options, "--publish prints one line: no picture, and no other format");
    verify_publish(options, to->paths.text);
}

/* ------------------------------------------------------------------------------------------------------- mutations */

/* Refuses pictures, and formats other than text and JSON: a fault is reported by a sentence or an object. */
static void check_mutation_output(const common_options *options, const verify_output *to)
{
    if (to->paths.figure_count)
        usage_wrong(options, "--out: '%s' is a picture, and --mutate draws none", to->paths.figures[0]);
    if (to->format != RESULT_TEXT && to->format != RESULT_JSON)
        usage_wrong(options, "--mutate prints text or JSON, and is asked for another format by --format or what --out "
                             "ends in");
}

/* Finds fault k of the forward pass or of the backward pass; false after the last. */
static bool fault_at(bool of_training, size_t k, const char **name, const char **description)
{
    *name = of_training ? backward_faults[k].name : mutation_list()[k].name;
    *description = of_training ? backward_faults[k].description : mutation_list()[k].description;
    return *name != NULL;
}

static json_t *describe_mutations(bool of_training)
{
    const char *name, *description;
    json_t *list = json_array();
    for (size_t k = 0; fault_at(of_training, k, &name, &description); k++)
        json_array_append_new(list, json_pack("{s:s, s:s}", "name", name, "description", description));
    return list;
}

static void list_mutations(const common_options *options, const verify_output *to, bool of_training)
{
    const char *name, *description;
    text_output output;
    if (to->format == RESULT_JSON) {
        print_json_to(options, to->paths.text, describe_mutations(of_training));
        return;
    }
    text_output_open(options, to->paths.text, &output);
    for (size_t k = 0; fault_at(of_training, k, &name, &description); k++)
        fprintf(output.file, "%s %s\n", name, description);
    text_output_close(options, &output);
}

/* Findings of a check with a fault in the engine. */
typedef struct verdict {
    size_t checks, failures;
} verdict;

static void print_verdict(const common_options *options, const verify_output *to, const char *name,
                          const verdict *found)
{
    const bool caught = found->failures > 0;
    result *r = result_new("deberta-verify-mutation/1");
    result_set(r, "mutation", json_string(name));
    result_set(r, "caught", json_boolean(caught));
    result_set(r, "checks", json_integer((json_int_t)found->checks));
    result_set(r, "failures", json_integer((json_int_t)found->failures));
    result_say(r, "%s: %s (%zu of %zu checks failed)", name, caught ? "caught" : "missed", found->failures,
               found->checks);
    finish_result(options, to->paths.text, r, to->format);
}

static drawing_options drawing_options_of(const verify_request *request, const verify_options *verify)
{
    return (drawing_options){.verify = *verify,
                             .first = request->first,
                             .count = request->configurations ? request->configurations : DRAWN_CASES,
                             .training_only = request->training};
}

static deberta_status try_backward_fault(const verify_request *request, const verify_options *verify,
                                         const backward_fault *fault, verdict *found, deberta_error *err)
{
    drawn_report report = {0};
    drawing_options drawing = drawing_options_of(request, verify);
    if (!request->configurations) drawing.count = MUTATED_CASES;
    drawing.fault = fault;
    const deberta_status status = verify_drawn(&report, &drawing, err);
    for (size_t k = 0; k < report.count; k++) found->checks += report.rows[k].cases;
    found->failures = report.failures;
    scope_free(&report.memory);
    return status;
}

static deberta_status try_mutation(const verify_options *verify, verdict *found, deberta_error *err)
{
    verify_report report = {0};
    const deberta_status status = verify_standard(&report, verify, err);
    *found = (verdict){report.count, report.failures};
    scope_free(&report.memory);
    return status;
}

/* 1 when the fault was noticed, 0 when it was missed: the exit codes of a check that is itself checked. */
static int mutate(const verify_request *request, verify_options *verify, const verify_output *to)
{
    const common_options *options = &request->reading.common;
    const char *name = request->mutate;
    check_mutation_output(options, to);
    if (strcmp(name, "list") == 0) {
        list_mutations(options, to, request->training);
        return EXIT_OK;
    }
    const backward_fault *fault = request->training ? backward_fault_find(name) : NULL;
    verify->mutation = request->training ? NULL : mutation_find(name);
    if (!verify->mutation && !fault)
        usage_wrong(options, "--mutate: no mutation is called '%s' (see --mutate list)", name);
    /* one tier is enough: the fault is in what all of them compute */
    for (int t = 0; t < DEBERTA_ISA_COUNT; t++) verify->tiers[t] = t == (int)deberta_isa_best();
    verdict found = {0};
    deberta_error error = {0};
    must(options,
         fault ? try_backward_fault(request, verify, fault, &found, &error) : try_mutation(verify, &found, &error),
         &error);
    print_verdict(options, to, name, &found);
    return found.failures ? EXIT_CHECK_FAILED : EXIT_OK;
}

/* ------------------------------------------------------------------------------------------------------- drawn cases */

/* Only the first is named: the others are in the table, and a case repeats alone. */
static int run_drawn(const verify_request *request, const verify_options *verify, const verify_output *to)
{
    const common_options *options = &request->reading.common;
    if (request->training && !training_is_built)
        usage_wrong(options, "--training: this build has no training (it was configured with -Dtraining=disabled)");
    const drawing_options drawing = drawing_options_of(request, verify);
    drawn_report report = {0};
    deberta_error error = {0};
    must(options, verify_drawn(&report, &drawing, &error), &error);
    finish_result(options, to->paths.text, drawn_result(&report, &drawing), to->format);
    scope_free(&report.memory);
    if (!report.failures) return EXIT_OK;
    say_note(options, "repeat: deberta verify%s --configurations 1 --seed %zu --first %zu",
             request->training ? " --training" : "", (size_t)verify->seed, report.first_failed);
    return EXIT_CHECK_FAILED;
}

static void verify_one(const verify_request *request, const verify_options *verify, verify_report *report)
{
    const common_options *options = &request->reading.common;
    const reading_options *reading = &request->reading;
    const char *path = options->arguments[0];
    input_batch input = {0};
    deberta_error error = {0};
    deberta_status done;
    deberta_model *model = open_model(options);
    const deberta_model_info info = *deberta_model_describe(model);
    deberta_model_free(&model);
    /* The packed weights are compared first: a damaged byte may be in a row that these tokens do not use. */
    if (info.packed == DEBERTA_PACKED_MAPPED) check_packed(options);
    if (reading->ids.count || reading->texts.count || reading->files.count) {
        input_read(reading, path, &info, &input);
        done = verify_sequences(report, verify, path, "", input.ids, input.sequence_starts, input.sequences, &error);
        input_free(&input);
    } else {
        const bool ends = info.position_biased_input || info.has_position_table;
        const size_t most = ends ? info.max_positions : request->tokens;
        if (request->tokens > most && option_given(options, &request->tokens))
            option_wrong(options, &request->tokens, "%zu tokens, but the position table of this model ends at %zu",
                         request->tokens, most);
        const size_t tokens = minimum(request->tokens, most), starts[2] = {0, tokens};
        int32_t *ids = options_take(options, tokens, sizeof *ids);
        verify_make_ids(ids, tokens, info.vocabulary_size, verify->seed);
        done = verify_sequences(report, verify, path, "", ids, starts, 1, &error);
    }
    must(options, done, &error);
}

/* Checks the options that need a model, and those that need none. */
static void check_request(const verify_request *request)
{
    const common_options *options = &request->reading.common;
    const void *const of_a_model[] = {&request->against,       &request->reading.ids, &request->reading.texts,
                                      &request->reading.files, &request->tokens,      &request->publish};
    if (options->argument_count && is_drawn(request))
        usage_wrong(options, "--%s makes up its own models: give no MODEL with it",
                    request->training ? "training" : "configurations");
    if (option_given(options, &request->first) && !is_drawn(request))
        usage_wrong(options, "--first is of drawn cases: give --configurations N with it");
    if (options->argument_count && request->mutate)
        usage_wrong(options, "--mutate runs on its own models: give no MODEL with it");
    for (size_t k = 0; k < sizeof of_a_model / sizeof *of_a_model; k++)
        if (!options->argument_count && !request->audit && option_given(options, of_a_model[k]))
            usage_wrong(options, "--%s needs a MODEL", option_name(options, of_a_model[k]));
    if (request->against && !path_has_suffix(request->against, ".safetensors"))
        option_wrong(options, &request->against, "unknown suffix in '%s', expected .safetensors", request->against);
}

/* ------------------------------------------------------------------------------------------------------------ audits */

static int audit_run(const verify_request *request, const verify_output *to)
{
    const common_options *options = &request->reading.common;
    const train_audit_request audit = {.common = options,
                                       .run = request->audit,
                                       .model = options->argument_count ? options->arguments[0] : NULL,
                                       .generator = request->generator,
                                       .files = &request->reading.files,
                                       .segments = request->segments};
    if (!training_is_built)
        usage_wrong(options, "--audit: this build has no training (it was configured with -Dtraining=disabled)");
    if (to->paths.figure_count)
        usage_wrong(options, "--out: '%s' is a picture, and --audit draws none", to->paths.figures[0]);
    result *r = result_new("deberta-audit/1");
    const int status = request->commit ? train_audit_commit(&audit, r) : train_audit(&audit, r);
    finish_result(options, to->paths.text, r, to->format);
    return status;
}

static int verify_run(const common_options *options)
{
    const verify_request *request = (const verify_request *)options;
    verify_options verify = options_of(options);
    verify_report report = {0};
    deberta_error error = {0};
    verify_output output;
    check_request(request);
    output.format = result_format_read(options);
    output_paths_read(options, &output.paths);
    if (request->audit) return audit_run(request, &output);
    if (request->mutate) return mutate(request, &verify, &output);
    if (is_drawn(request)) return run_drawn(request, &verify, &output);
    if (request->publish) {
        publish(options, &output);
        return EXIT_OK;
    }
    if (request->against) {
        verify_against_file(options, request->against, request->allow_extra, &verify, &report);
    } else if (options->argument_count) {
        verify_one(request, &verify, &report);
    } else {
        must(options, verify_kernels(&report, &verify, &error), &error);
        must(options, verify_sleef(&report, &verify, &error), &error);
        must(options, verify_standard(&report, &verify, &error), &error);
    }
    draw_report(options, &output.paths, &report);
    finish_result(options, output.paths.text, verify_result(&report, &verify), output.format);
    scope_free(&report.memory);
    if (!report.failures) return EXIT_OK;
    say_note(options, "repeat: %s", options_command_line(options, false));
    return EXIT_CHECK_FAILED;
}

static const option options[] = {
    {"text", 0, "TEXT", "verify on this text; may be repeated", TEXTS_AT(reading_options, texts),
     .not_with = "ids tokens expected"},
    {"file", 'f', "FILE", "verify on texts, one a line, or objects (.jsonl); - is standard input",
     TEXTS_AT(reading_options, files), .not_with = "ids tokens expected"},
    {"ids", 0, "LIST", "verify on these token ids", TEXTS_AT(reading_options, ids), .not_with = "tokens expected"},
    {"tokens", 'n', "N", "verify on N made-up ids (default 48)", SIZE_AT(verify_request, tokens, 1, 1 << 16),
     .not_with = "expected"},
    {"expected", 0, "FILE", "compare with tensors in the layout of `encode`, such as tools/gates/reference.py writes",
     TEXT_AT(verify_request, against)},
    {"allow-extra", 0, NULL, "pass over tensors of FILE that the model does not compute, instead of refusing the file",
     FLAG_AT(verify_request, allow_extra), .needs = "expected"},
    ABLATE_OPTION,
    {"mutate", 0, "NAME",
     "put a fault into the engine: exit 1 if it is noticed, 0 if not; `list` names them; text or JSON",
     TEXT_AT(verify_request, mutate)},
    {"training", 0, NULL, "of drawn cases, or of faults, those of training alone", FLAG_AT(verify_request, training),
     .not_with = "text file ids tokens expected ablate precision"},
    {"configurations", 0, "N", "N drawn models and texts through every feature, against float64 and other ways",
     SIZE_AT(verify_request, configurations, 1, MOST_CASES),
     .not_with = "text file ids tokens expected ablate precision"},
    {"first", 0, "K", "the drawn cases from number K on (default 0): a seed and a number are a case",
     SIZE_AT(verify_request, first, 0, INT32_MAX), .not_with = "text file ids tokens expected ablate precision"},
    {"publish", 0, NULL,
     "one line of the machine and of digests of what it computes, to be compared with those of other machines",
     FLAG_AT(verify_request, publish),
     .not_with = "text file ids tokens expected ablate precision mutate training configurations reference seed"},
    {"audit", 0, "RUN",
     "execute drawn segments of a training again and compare them with RUN/chain.jsonl (train --chain); MODEL and "
     "--file "
     "say where they are on this machine",
     TEXT_AT(verify_request, audit),
     .not_with = "text ids tokens expected ablate precision mutate training configurations reference publish"},
    {"segments", 0, "K", "segments that are executed, between kept checkpoints (default 1)",
     SIZE_AT(verify_request, segments, 1, INT32_MAX), .needs = "audit"},
    {"generator", 0, "MODEL", "where the generator of a pair is on this machine", TEXT_AT(verify_request, generator),
     .needs = "audit"},
    {"commit", 0, NULL, "one line that identifies the chain, to be published before an audit",
     FLAG_AT(verify_request, commit), .needs = "audit", .not_with = "segments"},
    RESULT_FORMAT_OPTIONS,
    {.name = NULL},
};

const command command_verify = {
    .name = "verify",
    .summary = "every tier bit for bit against scalar, and all of them against float64",
    .arguments = "[MODEL]",
    .options = options,
    .size = sizeof(verify_request),
    .defaults = &(const verify_request){.tokens = 48, .segments = 1},
    .most_outputs = OUTPUT_PATHS_MOST,
    .example =
        "  deberta verify\n  deberta verify synthetic:v3-xsmall,layers=2 -n 100\n"
        "  deberta verify models/demo --text 'Call me Ishmael.' --format latex -o errors.pdf   # a chart by layer\n"
        "  deberta verify --mutate p2c_ji\n"
        "  deberta verify --configurations 20\n"
        "  deberta verify --training --configurations 1 --seed 7 --first 12   # the gradients of one case\n"
        "  deberta verify --audit trained --segments 3   # of a run with train --chain --keep-every N\n"
        "  deberta verify models/demo --publish   # compare with tests/golden/published.tsv",
    .run = verify_run,
};
