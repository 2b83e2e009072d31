/* `deberta receptive-field` finds the relative positions that a model can tell apart, over one layer and over all. A
 * config.json is enough, but for --behaviour and --influence.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "output/scope.h"
#include "program/commands.h"
#include "program/frame/ablate.h"
#include "program/frame/figure_style.h"
#include "program/frame/input/input.h"
#include "program/frame/open_model.h"
#include "program/frame/progress.h"
#include "program/frame/text_output.h"
#include "program/receptive_field/receptive_field_output.h"

enum {
    MOST_LAYERS = 512, /* the time of composing layers grows with the square of it */
    MOST_TOKENS = 1 << 20,
    DEFAULT_INFLUENCE_TOKENS = 256,
    DEFAULT_INFLUENCE_SOURCES = 4,
    CHECKED_INFLUENCE_TOKENS = 24, /* the check is in float64, which is slow */
    DEFAULT_BEHAVIOUR_LAYERS = 4,
    DEFAULT_BEHAVIOUR_TOKENS = 2200, /* enough for v1's window over two layers */
};

static deberta_status find_out(field_findings *f, deberta_error *err)
{
    if (!f->layers) f->layers = f->info.layers;
    if (f->layers > MOST_LAYERS)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s has %zu layers; at most %d are composed", f->info.name, f->layers,
                     MOST_LAYERS);
    if (!f->info.has_c2p && !f->info.has_p2c)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s has no relative positions: no distance can be told from another",
                     f->info.name);
    DEBERTA_TRY(receptive_field_of_model(&f->field, &f->info, f->reference, f->length, err));
    DEBERTA_TRY(receptive_field_make(&f->paired, &f->field.rule, f->length, true, err));
    f->composed = memory_take(f->layers, sizeof *f->composed);
    DEBERTA_TRY(receptive_field_compose(&f->field, f->layers, f->composed, err));
    f->longest = receptive_field_longest_unambiguous(&f->field.rule, err);
    return DEBERTA_OK;
}

static void receptive_field_show_progress(void *context, size_t done, size_t total, const char *what)
{
    progress_bar *bar = context;
    bar->total = total;
    progress_step(bar, done, what);
}

/* Returns an experiment with the model's weights under the options of the command. */
static experiment experiment_of(const field_request *request, const field_findings *f, progress_bar *bar)
{
    const common_options *options = &request->reading.common;
    return (experiment){.model = f->info.name,
                        .reference = f->reference,
                        .isa = options->isa,
                        .threads = options->threads,
                        .memory_limit_bytes = options->memory_limit_bytes,
                        .ablations = options->ablated.items,
                        .ablation_count = options->ablated.count,
                        .seed = options->seed,
                        .progress = receptive_field_show_progress,
                        .context = bar};
}

static void behave(const field_request *request, field_findings *f)
{
    const common_options *options = &request->reading.common;
    if (!request->behaviour) return;
    progress_bar bar = progress_begin(options, "behaviour", 0);
    const size_t layers = request->behaviour_layers;
    const behaviour_options behaviour = {.of = experiment_of(request, f, &bar),
                                         .most_layers = layers < f->info.layers ? layers : f->info.layers,
                                         .most_tokens = request->behaviour_tokens};
    deberta_error error = {0};
    const deberta_status status = behaviour_run(&f->behaviour, &behaviour, &error);
    progress_end(&bar);
    must(options, status, &error);
    f->has_behaviour = true;
}

/* Reads the text of --text or --ids, if one is given. Its ids stay in `input`. */
static void read_text(const field_request *request, const field_findings *f, influence_options *influence,
                      input_batch *input)
{
    if (!request->reading.texts.count && !request->reading.ids.count) return;
    input_read(&request->reading, f->info.name, NULL, input);
    if (input->sequences != 1 || input->tokens < 2)
        usage_wrong(&request->reading.common, "--influence: expected one text of at least two tokens");
    influence->ids = input->ids;
    influence->tokens = input->tokens;
}

static void run_influence(const field_request *request, influence_options *influence, field_findings *f)
{
    const common_options *options = &request->reading.common;
    progress_bar bar = progress_begin(options, "influence", 0);
    influence->of = experiment_of(request, f, &bar);
    influence->check_tokens =
        influence->tokens < CHECKED_INFLUENCE_TOKENS ? influence->tokens : CHECKED_INFLUENCE_TOKENS;
    deberta_error error = {0};
    const deberta_status status = influence_measure(&f->influence, influence, &error);
    progress_end(&bar);
    must(options, status, &error);
    f->has_influence = true;
}

/* Measures influence. A made-up text is as long as asked for, but not longer than a position table that is added to
 * the input. */
static void influence(const field_request *request, field_findings *f)
{
    if (!request->influence) return;
    influence_options influence = {.tokens = request->influence_tokens, .sources = request->influence_sources};
    if (f->info.position_biased_input && influence.tokens > f->info.max_positions) {
        influence.tokens = f->info.max_positions;
        say_note(&request->reading.common,
                 "influence: %s has %zu absolute positions, so a made-up text has as many tokens", f->info.name,
                 influence.tokens);
    }
    input_batch input = {0};
    read_text(request, f, &influence, &input);
    run_influence(request, &influence, f);
    input_free(&input);
}

/* Collects the pictures of --out and of --plot. */
static void read_outputs(const field_request *request, output_paths *paths)
{
    const common_options *options = &request->reading.common;
    output_paths_read(options, request->plots.count ? NULL : &request->style, paths);
    if (request->plots.count && !HAVE_VIZ)
        option_wrong(options, &request->plots, "this program was built without figures");
    if (paths->figure_count + request->plots.count > OUTPUT_PATHS_MOST)
        option_wrong(options, &request->plots, "at most %d figures at once", OUTPUT_PATHS_MOST);
    for (size_t k = 0; k < request->plots.count; k++) paths->figures[paths->figure_count++] = request->plots.items[k];
}

static void draw(const field_request *request, const output_paths *paths, const field_findings *f)
{
    const common_options *options = &request->reading.common;
    const char *slash = strrchr(f->info.name, '/'); /* the last part of a folder's path */
    const char *of =
        f->has_influence ? options_text(options, "Influence in a text of %zu tokens. ", f->influence.tokens) : "";
    const char *note = options_text(
        options, "k = K = %zu. %sAttention is global; unambiguous relative position is what is bounded.%s",
        f->field.rule.span, of,
        f->length && !f->has_influence ? "" : " A formula gives a number of tokens; half of it is drawn to each side.");
    if (f->length)
        note = options_text(options, "%s A text of %zu tokens has at most %zu displacements.", note, f->length,
                            2 * f->length - 1);
    output_draw(options, paths, DRAWING(receptive_field_draw), f, &request->style,
                slash && slash[1] ? slash + 1 : f->info.name, note);
}

static void check_request(const field_request *request)
{
    const common_options *options = &request->reading.common;
    if (!request->influence && (request->reading.texts.count || request->reading.ids.count))
        usage_wrong(options, "--text and --ids say where --influence is measured; it was not asked for");
    if (options->ablated.count && !request->behaviour && !request->influence)
        usage_wrong(options, "--ablate changes what --behaviour and --influence find; neither of them was asked for");
    if (request->behaviour || request->influence) {
        check_float32(options, "what weights decide here");
        return;
    }
    const void *const of_weights[] = {&options->isa, &options->threads, &options->seed, &options->memory_limit_bytes};
    for (size_t k = 0; k < sizeof of_weights / sizeof *of_weights; k++)
        option_note_unused(options, of_weights[k],
                           "no weight is read without --behaviour or --influence: all follows from config.json");
}

/* Refuses ablations where everything follows from config.json, since they would change nothing. */
static void check_ablations(const common_options *options)
{
    if (!options->ablated.count) return;
    deberta_model *model = open_description(options); /* opening refuses ablations of parts that the model lacks */
    deberta_model_free(&model);
}

static int receptive_field_run(const common_options *options)
{
    const field_request *request = (const field_request *)options;
    deberta_error error = {0};
    field_findings findings = {.all_rows = request->rows,
                               .length = request->tokens,
                               .layers = request->layers,
                               .reference = (deberta_reference)options->reference};
    output_paths paths;
    check_request(request);
    read_outputs(request, &paths);
    check_model_place(options);
    must(options, receptive_field_describe(&findings.info, options->arguments[0], &error), &error);
    if (findings.reference == DEBERTA_REFERENCE_AUTO) findings.reference = findings.info.reference;
    check_ablations(options);
    must(options, find_out(&findings, &error), &error);
    behave(request, &findings);
    influence(request, &findings);
    draw(request, &paths, &findings);
    finish_result(options, paths.text, field_findings_result(&findings), options->json ? RESULT_JSON : RESULT_TEXT);
    const bool failed = findings.behaviour.failures > 0;
    field_findings_free(&findings);
    return failed ? EXIT_CHECK_FAILED : EXIT_OK;
}

static const option options[] = {
    {"tokens", 'n', "N", "only distances that a text of N tokens has (default: unlimited)",
     SIZE_AT(field_request, tokens, 1, MOST_TOKENS)},
    {"depth", 0, "N", "compose over N layers instead of the model's", SIZE_AT(field_request, layers, 1, MOST_LAYERS)},
    {"plot", 0, "FILE", "the same as --out with the name of a picture", TEXTS_AT(field_request, plots),
     .role = OPTION_OUTPUT},
    {"behaviour", 0, NULL,
     "test on the model's weights that aliases cannot be told apart, and windows keep what is outside out",
     FLAG_AT(field_request, behaviour)},
    {"behaviour-depth", 0, "N", "over 1, 2, 4 ... layers up to N (default 4)",
     SIZE_AT(field_request, behaviour_layers, 1, MOST_LAYERS), .needs = "behaviour"},
    {"behaviour-tokens", 0, "N", "skip tests that need texts of more than N tokens (default 2200)",
     SIZE_AT(field_request, behaviour_tokens, 2, MOST_TOKENS), .needs = "behaviour"},
    {"influence", 0, NULL, "measure how much inputs at each distance move an output, by finite differences",
     FLAG_AT(field_request, influence)},
    {"influence-tokens", 0, "N", "length of the made-up text for that (default 256)",
     SIZE_AT(field_request, influence_tokens, 2, MOST_TOKENS), .needs = "influence", .not_with = "text ids"},
    {"influence-sources", 0, "N", "how many tokens are moved, one after the other (default 4)",
     SIZE_AT(field_request, influence_sources, 1, 64), .needs = "influence"},
    {"text", 0, "TEXT", "influence in this text instead of a made-up one", TEXTS_AT(reading_options, texts)},
    {"ids", 0, "LIST", "influence in a text of these ids instead of a made-up one", TEXTS_AT(reading_options, ids)},
    ABLATE_OPTION,
    {"rows", 0, NULL, "list every row of the table with its distances", FLAG_AT(field_request, rows)},
    {.name = NULL},
};

static const option looks[] = {FIGURE_STYLE_ROWS(field_request, style), {.name = NULL}};
static const option_group groups[] = {{options, 0, NULL}, {looks, 0, "the picture"}, {.options = NULL}};

const command command_receptive_field = {
    .name = "receptive-field",
    .summary = "which relative positions are unambiguous, and what the quoted formulas are worth",
    .arguments = "MODEL",
    .groups = groups,
    .size = sizeof(field_request),
    .most_outputs = OUTPUT_PATHS_MOST,
    .defaults = &(const field_request){.behaviour_layers = DEFAULT_BEHAVIOUR_LAYERS,
                                       .behaviour_tokens = DEFAULT_BEHAVIOUR_TOKENS,
                                       .influence_tokens = DEFAULT_INFLUENCE_TOKENS,
                                       .influence_sources = DEFAULT_INFLUENCE_SOURCES},
    .example =
        "  deberta receptive-field synthetic:v3-base\n  deberta receptive-field synthetic:v1-base -n 1024 --json\n"
        "  deberta receptive-field synthetic:v2-xlarge -o field.pdf --width-mm 85\n",
    .run = receptive_field_run,
    .without = "precision",
};
