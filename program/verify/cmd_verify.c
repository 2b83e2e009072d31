/* `deberta verify` compares every tier with the scalar one bit for bit and with float64, or checks that these
 * comparisons notice deliberate faults.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/base/numbers.h"
#include "core/base/text.h"
#include "include/deberta_training.h"
#include "program/commands.h"
#include "program/frame/ablate.h"
#include "program/frame/figure_style.h"
#include "program/frame/input/input.h"
#include "program/frame/open_model.h"
#include "program/frame/text_output.h"
#include "program/train/train_audit.h"
#include "program/verify/verify_output.h"

typedef struct verify_request {
    reading_options reading;
    size_t tokens;
    const char *against, *mutate;
    bool allow_extra, publish;
    const char *audit, *generator, *published; /* folder of a run; path of its generator; line of --commit */
    size_t segments;
    bool commit;
    figure_style style;
} verify_request;

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

static void draw_report(const verify_request *request, const output_paths *paths, const verify_report *report)
{
    const common_options *options = &request->reading.common;
    const char *precision = low_precision_name(options);
    const char *title = precision ? options_text(options, "errors of %s against float64, by layer", precision)
                                  : "errors against float64, by layer";
    output_draw(options, paths, DRAWING(verify_figure_draw), report, &request->style, title,
                report->failures ? "eps = 2⁻²³. Checks failed: this is the first tier." : "eps = 2⁻²³, on every tier.");
}

static void publish(const common_options *options, const verify_output *to)
{
    if (to->format != RESULT_TEXT || to->paths.figure_count)
        usage_wrong(options, "--publish prints one line: no picture, and no other format");
    verify_publish(options, to->paths.text);
}

/* ------------------------------------------------------------------------------------------------------- mutations */

/* Refuses pictures, and formats other than text and JSON: the outcome for a fault is a sentence or an object. */
static void check_mutation_output(const common_options *options, const verify_output *to)
{
    if (to->paths.figure_count)
        usage_wrong(options, "--out: '%s' is a picture, and --mutate draws none", to->paths.figures[0]);
    if (to->format != RESULT_TEXT && to->format != RESULT_JSON)
        usage_wrong(options, "--mutate prints text or JSON, and is asked for another format by --format or what --out "
                             "ends in");
}

static json_t *describe_mutations(void)
{
    json_t *list = json_array();
    for (const mutation *m = mutation_list(); m->name; m++)
        json_array_append_new(list, json_pack("{s:s, s:s}", "name", m->name, "description", m->description));
    return list;
}

static void list_mutations(const common_options *options, const verify_output *to)
{
    text_output output;
    if (to->format == RESULT_JSON) {
        print_json_to(options, to->paths.text, describe_mutations());
        return;
    }
    text_output_open(options, to->paths.text, &output);
    for (const mutation *m = mutation_list(); m->name; m++) fprintf(output.file, "%s %s\n", m->name, m->description);
    text_output_close(options, &output);
}

static void print_verdict(const common_options *options, const verify_output *to, const char *name,
                          const verify_report *found)
{
    const bool caught = found->failures > 0;
    result *r = result_new("deberta-verify-mutation/1");
    result_set(r, "mutation", json_string(name));
    result_set(r, "caught", json_boolean(caught));
    result_set(r, "checks", json_integer((json_int_t)found->count));
    result_set(r, "failures", json_integer((json_int_t)found->failures));
    result_say(r, "%s: %s (%zu of %zu checks failed)", name, caught ? "caught" : "missed", found->failures,
               found->count);
    finish_result(options, to->paths.text, r, to->format);
}

/* Plants a fault and returns 1 if the check noticed it, 0 if it missed it: the exit codes of a check that is itself
 * checked. */
static int mutate(const verify_request *request, verify_options *verify, const verify_output *to)
{
    const common_options *options = &request->reading.common;
    const char *name = request->mutate;
    verify_report report = {0};
    deberta_error error = {0};
    check_mutation_output(options, to);
    if (strcmp(name, "list") == 0) {
        list_mutations(options, to);
        return EXIT_OK;
    }
    verify->mutation = mutation_find(name);
    if (!verify->mutation) usage_wrong(options, "--mutate: no mutation is called '%s' (see --mutate list)", name);
    /* One tier is enough, because the fault is in what all of them compute: the best, unless --isa names another. */
    for (int t = 0; options->isa == DEBERTA_ISA_AUTO && t < DEBERTA_ISA_COUNT; t++)
        verify->tiers[t] = t == (int)deberta_isa_best();
    must(options, verify_standard(&report, verify, &error), &error);
    print_verdict(options, to, name, &report);
    scope_free(&report.memory);
    return report.failures ? EXIT_CHECK_FAILED : EXIT_OK;
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
    /* The packed weights are compared first, because a damaged byte may be in a row that these tokens do not use. */
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
    if (options->argument_count && request->mutate)
        usage_wrong(options, "--mutate runs on its own models: give no MODEL with it");
    for (size_t k = 0; k < sizeof of_a_model / sizeof *of_a_model; k++)
        if (!options->argument_count && !request->audit && option_given(options, of_a_model[k]))
            usage_wrong(options, "--%s needs a MODEL", option_name(options, of_a_model[k]));
    if (request->against && !path_has_suffix(request->against, ".safetensors"))
        option_wrong(options, &request->against, "unknown suffix in '%s', expected .safetensors", request->against);
    const reading_options *reading = &request->reading;
    if (request->against || reading->ids.count || reading->texts.count || (reading->files.count && !request->audit))
        option_note_unused(options, &options->seed, "nothing is drawn where the input is given");
}

/* ------------------------------------------------------------------------------------------------------------ audits */

/* --commit reads the chain alone, and computes nothing. */
static void check_commit(const common_options *options)
{
    const void *const of_computing[] = {&options->isa, &options->threads, &options->memory_limit_bytes};
    if (options->argument_count)
        usage_wrong(options, "--commit reads the chain of the run alone: give no MODEL with it, found '%s'",
                    options->arguments[0]);
    for (size_t k = 0; k < sizeof of_computing / sizeof *of_computing; k++)
        option_note_unused(options, of_computing[k], "nothing is computed with --commit");
}

static int audit_run(const verify_request *request, const verify_output *to)
{
    const common_options *options = &request->reading.common;
    const train_audit_request audit = {.common = options,
                                       .run = request->audit,
                                       .model = options->argument_count ? options->arguments[0] : NULL,
                                       .generator = request->generator,
                                       .published = request->published,
                                       .files = &request->reading.files,
                                       .segments = request->segments};
    if (request->commit) check_commit(options);
    if (!deberta_training_is_built())
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
    output_paths_read(options, &request->style, &output.paths);
    if (request->audit) return audit_run(request, &output);
    if (request->mutate) return mutate(request, &verify, &output);
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
    draw_report(request, &output.paths, &report);
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
    {"publish", 0, NULL,
     "one line of the machine and of digests of what it computes, to be compared with those of other machines",
     FLAG_AT(verify_request, publish),
     .not_with = "text file ids tokens expected ablate precision mutate reference seed"},
    {"audit", 0, "RUN",
     "execute drawn segments of a training again and compare them with RUN/chain.jsonl (train --chain); MODEL and "
     "--file "
     "say where they are on this machine",
     TEXT_AT(verify_request, audit), .not_with = "text ids tokens expected ablate precision mutate reference publish"},
    {"segments", 0, "K", "segments that are executed, between kept checkpoints (default 1)",
     SIZE_AT(verify_request, segments, 1, INT32_MAX), .needs = "audit"},
    {"generator", 0, "MODEL", "where the generator of a pair is on this machine", TEXT_AT(verify_request, generator),
     .needs = "audit"},
    {"published", 0, "LINE", "compare the chain with a line of --commit that was published before",
     TEXT_AT(verify_request, published), .needs = "audit", .not_with = "commit"},
    {"commit", 0, NULL, "one line that identifies the chain, to be published before an audit",
     FLAG_AT(verify_request, commit), .needs = "audit", .not_with = "segments file seed generator"},
    RESULT_FORMAT_OPTIONS,
    {.name = NULL},
};

static const option looks[] = {FIGURE_STYLE_ROWS(verify_request, style), {.name = NULL}};
static const option_group groups[] = {{options, 0, NULL}, {looks, 0, "the picture"}, {.options = NULL}};

const command command_verify = {
    .name = "verify",
    .summary = "every tier bit for bit against scalar, and all of them against float64",
    .arguments = "[MODEL]",
    .writes = WRITES_TABLE,
    .groups = groups,
    .size = sizeof(verify_request),
    .defaults = &(const verify_request){.tokens = 48, .segments = 1},
    .most_outputs = OUTPUT_PATHS_MOST,
    .example =
        "  deberta verify\n  deberta verify synthetic:v3-xsmall,layers=2 -n 100\n"
        "  deberta verify models/demo --text 'Call me Ishmael.' --format latex -o errors.pdf   # a chart by layer\n"
        "  deberta verify --mutate p2c_ji\n"
        "  deberta train mlm models/demo --file corpus.txt --sequence-tokens 32 --steps 20 --chain --keep-every 5 -o "
        "chained\n"
        "  deberta verify --audit chained --segments 3\n"
        "  deberta verify models/demo --publish   # compare with tests/golden/published.tsv\n",
    .run = verify_run,
};
