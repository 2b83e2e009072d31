/* `deberta receptive-field`: which relative positions a model can tell apart, over one layer and over all of them.
 * A config.json is enough, but for --behaviour and --influence. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "command/ablate.h"
#include "cli/commands.h"
#include "command/input/input.h"
#include "cli/receptive_field/receptive_field_output.h"
#include "command/run.h"
#if HAVE_VIZ
#include "cli/receptive_field/receptive_field_figure.h"
#endif

enum {
    MOST_LAYERS = 512, /* composing takes time that grows with the square of it */
    MOST_TOKENS = 1 << 20,
    MOST_PLOTS = 8,
    DEFAULT_INFLUENCE_TOKENS = 256,
    DEFAULT_INFLUENCE_SOURCES = 4,
    CHECKED_INFLUENCE_TOKENS = 24, /* in float64, which is slow */
    DEFAULT_BEHAVIOUR_LAYERS = 4,
    DEFAULT_BEHAVIOUR_TOKENS = 2200, /* v1's window over two layers fits */
};

static deberta_status find_out(field_findings *f, deberta_error *err)
{
    const position_rule rule = position_rule_make(&f->config, f->reference);
    if (!f->layers) f->layers = f->config.layers;
    if (f->layers > MOST_LAYERS)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s has %zu layers; at most %d are composed", f->model, f->layers,
                     MOST_LAYERS);
    if (!f->config.c2p && !f->config.p2c)
        DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s has no relative positions: no distance can be told from another",
                     f->model);
    DEBERTA_TRY(receptive_field_make(&f->field, &rule, f->length, err));
    DEBERTA_TRY(receptive_field_make_paired(&f->paired, &rule, f->length, err));
    f->composed = calloc(f->layers, sizeof *f->composed);
    if (!f->composed) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for %zu layers", f->layers);
    DEBERTA_TRY(receptive_field_compose(&f->field, f->layers, f->composed, err));
    f->longest = receptive_field_longest_unambiguous(&rule, err);
    return DEBERTA_OK;
}

static void show_progress(void *context, size_t done, size_t total, const char *what)
{
    progress_bar *bar = context;
    bar->total = total;
    progress_step(bar, done, what);
}

/* This and influence need weights. */
static int behave(const parsed_options *options, const deberta_session_options *session, field_findings *f)
{
    behaviour_options behaviour = {.model = f->model,
                                   .reference = f->reference,
                                   .isa = session->isa,
                                   .threads = session->threads,
                                   .memory_limit_bytes = session->memory_limit_bytes,
                                   .ablations = session->ablations,
                                   .ablation_count = session->ablation_count};
    size_t layers;
    if (!options_u64(options, "seed", 1, &behaviour.seed) ||
        !options_size(options, "behaviour-layers", DEFAULT_BEHAVIOUR_LAYERS, 1, MOST_LAYERS, &layers) ||
        !options_size(options, "behaviour-tokens", DEFAULT_BEHAVIOUR_TOKENS, 2, MOST_TOKENS, &behaviour.most_tokens))
        return EXIT_USAGE;
    if (!options_has(options, "behaviour")) return EXIT_OK;
    behaviour.most_layers = layers < f->config.layers ? layers : f->config.layers;
    progress_bar bar = progress_begin(options, "behaviour", 0);
    behaviour.progress = show_progress;
    behaviour.context = &bar;
    deberta_error error = {0};
    const deberta_status status = behaviour_run(&f->behaviour, &behaviour, &error);
    progress_end(&bar);
    f->has_behaviour = status == DEBERTA_OK;
    return status == DEBERTA_OK ? EXIT_OK : say_error(options, &error);
}

/* The text of --text or --ids, if there is one. Its ids stay in `input`. */
static int read_text(const parsed_options *options, const field_findings *f, influence_options *influence,
                     input_batch *input)
{
    if (!options_has(options, "text") && !options_has(options, "ids")) return EXIT_OK;
    const int status = input_read(reading_of(options), f->model, NULL, input);
    if (status != EXIT_OK) return status;
    if (input->sequences != 1 || input->tokens < 2)
        return say_usage(options, "--influence: expected one text of at least two tokens");
    influence->ids = input->ids;
    influence->tokens = input->tokens;
    return EXIT_OK;
}

static int run_influence(const parsed_options *options, influence_options *influence, field_findings *f)
{
    influence->check_tokens =
        influence->tokens < CHECKED_INFLUENCE_TOKENS ? influence->tokens : CHECKED_INFLUENCE_TOKENS;
    progress_bar bar = progress_begin(options, "influence", 0);
    influence->progress = show_progress;
    influence->context = &bar;
    deberta_error error = {0};
    const deberta_status status = influence_measure(&f->influence, influence, &error);
    progress_end(&bar);
    f->has_influence = status == DEBERTA_OK;
    return status == DEBERTA_OK ? EXIT_OK : say_error(options, &error);
}

/* A made-up text is as long as asked for, but not longer than the position table where one is added to the input. */
static int influence(const parsed_options *options, const deberta_session_options *session, field_findings *f)
{
    influence_options influence = {.model = f->model,
                                   .reference = f->reference,
                                   .isa = session->isa,
                                   .threads = session->threads,
                                   .memory_limit_bytes = session->memory_limit_bytes,
                                   .ablations = session->ablations,
                                   .ablation_count = session->ablation_count};
    if (!options_u64(options, "seed", 1, &influence.seed) ||
        !options_size(options, "influence-tokens", DEFAULT_INFLUENCE_TOKENS, 2, MOST_TOKENS, &influence.tokens) ||
        !options_size(options, "influence-sources", DEFAULT_INFLUENCE_SOURCES, 1, 64, &influence.sources))
        return EXIT_USAGE;
    if (!options_has(options, "influence")) {
        if (!options_has(options, "text") && !options_has(options, "ids")) return EXIT_OK;
        return say_usage(options, "--text and --ids say where --influence is measured; it was not asked for");
    }
    if (f->config.position_biased_input && influence.tokens > f->config.max_positions) {
        influence.tokens = f->config.max_positions;
        say_note(options, "influence: %s has %zu absolute positions, so a made-up text has as many tokens", f->model,
                 influence.tokens);
    }
    input_batch input = {0};
    int status = read_text(options, f, &influence, &input);
    if (status == EXIT_OK) status = run_influence(options, &influence, f);
    input_free(&input);
    return status;
}

static int print(const parsed_options *options, const field_findings *f)
{
    if (options_has(options, "json")) return run_print_json(options, field_findings_json(f));
    text_output output;
    const int status = text_output_open(options, options_value(options, "out", NULL), &output);
    if (status != EXIT_OK) return status;
    field_findings_print(f, output.file);
    return text_output_close(options, &output);
}

#if HAVE_VIZ
static int plot(const parsed_options *options, const field_findings *f)
{
    const char *paths[MOST_PLOTS], *path;
    size_t count = 0;
    if (options_nth_value(options, "plot", MOST_PLOTS))
        return say_usage(options, "--plot: at most %d figures at once", MOST_PLOTS);
    while ((path = options_nth_value(options, "plot", count))) paths[count++] = path;
    if (!count) return EXIT_OK;
    char *line = options_command_line(options, false), note[256];
    const provenance_entry provenance[] = {{"Software", "deberta " DEBERTA_VERSION_TEXT},
                                           {"Command", line ? line : ""}};
    snprintf(
        note, sizeof note,
        "K = %zu. Attention is global; unambiguous relative position is what is bounded. Formulas give a number of "
        "tokens; beside the band half of it is drawn to each side.",
        f->field.rule.span);
    const figure_style style = {.title = f->model,
                                .note = note,
                                .provenance = provenance,
                                .provenance_count = sizeof provenance / sizeof *provenance};
    deberta_error error = {0};
    const deberta_status status = receptive_field_draw(f, &style, paths, count, &error);
    free(line);
    if (status == DEBERTA_OK) return EXIT_OK;
    const int code = say_error(options, &error);
    return status == DEBERTA_E_ARGUMENT ? EXIT_USAGE : code;
}
#else
static int plot(const parsed_options *options, const field_findings *f)
{
    (void)f;
    return options_has(options, "plot") ? say_usage(options, "--plot: this program was built without figures")
                                        : EXIT_OK;
}
#endif

/* Options that would be passed over in silence. */
static int check_combination(const parsed_options *options)
{
    static const char *const needed[][2] = {{"behaviour-layers", "behaviour"},
                                            {"behaviour-tokens", "behaviour"},
                                            {"influence-tokens", "influence"},
                                            {"influence-sources", "influence"}};
    for (size_t k = 0; k < sizeof needed / sizeof *needed; k++)
        if (options_has(options, needed[k][0]) && !options_has(options, needed[k][1]))
            return say_usage(options, "--%s needs --%s", needed[k][0], needed[k][1]);
    const char *given = options_has(options, "text") ? "text" : "ids";
    if (options_has(options, "influence-tokens") && options_has(options, given))
        return say_usage(options, "--influence-tokens is for a made-up text; --%s gives one", given);
    return EXIT_OK;
}

/* Everything else follows from config.json, where an ablation changes nothing. */
static int check_ablations(const parsed_options *options)
{
    deberta_model *model = NULL;
    if (!options_has(options, "ablate")) return EXIT_OK;
    if (!options_has(options, "behaviour") && !options_has(options, "influence"))
        return say_usage(options,
                         "--ablate changes what --behaviour and --influence find; neither of them was asked for");
    const int status = run_describe_model(options, &model); /* refuses what this model does not have */
    deberta_model_free(&model);
    return status;
}

static int run(const parsed_options *options)
{
    deberta_model_options model_options;
    deberta_session_options session_options;
    deberta_error error = {0};
    field_findings findings = {.model = options_argument(options, 0), .all_rows = options_has(options, "rows")};
    fill_model_options(options, &model_options);
    if (!options_size(options, "tokens", 0, 1, MOST_TOKENS, &findings.length) ||
        !options_size(options, "layers", 0, 1, MOST_LAYERS, &findings.layers))
        return EXIT_USAGE;
    int status = EXIT_OK;
    fill_session_options(options, &session_options);
    if (status != EXIT_OK) return status;
    if (check_combination(options) != EXIT_OK) return EXIT_USAGE;
    if (!run_is_model_place(options)) return EXIT_INPUT;
    findings.reference = model_options.reference;
    if (receptive_field_read_config(&findings.config, findings.model, &error) != DEBERTA_OK)
        return say_error(options, &error);
    status = check_ablations(options);
    if (status == EXIT_OK && find_out(&findings, &error) != DEBERTA_OK) status = say_error(options, &error);
    if (status == EXIT_OK) status = behave(options, &session_options, &findings);
    if (status == EXIT_OK) status = influence(options, &session_options, &findings);
    if (status == EXIT_OK) status = plot(options, &findings);
    if (status == EXIT_OK) status = print(options, &findings);
    if (status == EXIT_OK && findings.behaviour.failures) status = EXIT_CHECK_FAILED;
    field_findings_free(&findings);
    return status;
}

static const option_spec options[] = {
    {"tokens", 'n', "N", "only distances that a text of N tokens has (default: unlimited)"},
    {"layers", 0, "N", "compose over N layers instead of the model's"},
    {"plot", 0, "FILE",
     "the band over the layers with every formula, the bucket function and a map of what it aliases: .png, .svg, .pdf; "
     "may be repeated"},
    {"behaviour", 0, NULL,
     "test on the model's weights that aliases cannot be told apart, and windows keep what is outside out"},
    {"behaviour-layers", 0, "N", "over 1, 2, 4 ... layers up to N (default 4)"},
    {"behaviour-tokens", 0, "N", "skip tests that need texts of more than N tokens (default 2200)"},
    {"influence", 0, NULL, "measure how much inputs at each distance move an output, by finite differences"},
    {"influence-tokens", 0, "N", "length of the made-up text for that (default 256)"},
    {"influence-sources", 0, "N", "how many tokens are moved, one after the other (default 4)"},
    {"text", 0, "TEXT", "influence in this text instead of a made-up one", TEXTS_AT(reading_options, texts)},
    {"ids", 0, "LIST", "influence in a text of these ids instead of a made-up one", TEXTS_AT(reading_options, ids)},
    ABLATE_OPTION,
    {"rows", 0, NULL, "list every row of the table with its distances"},
    {NULL, 0, NULL, NULL},
};

const command command_receptive_field = {
    .name = "receptive-field",
    .summary = "which relative positions are unambiguous, and what the quoted formulas are worth",
    .arguments = "MODEL",
    .min_arguments = 1,
    .max_arguments = 1,
    .options = options,
    .size = sizeof(reading_options),
    .example =
        "  deberta receptive-field synthetic:v3-base\n  deberta receptive-field synthetic:v1-base -n 1024 --json\n"
        "  deberta receptive-field synthetic:v2-xlarge --plot field.pdf\n",
    .run = run,
};
