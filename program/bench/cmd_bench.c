/* `deberta bench` runs sweeps over lengths, layers, threads and tiers. Its other tasks are commands of two words.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/base/topology.h"
#include "program/bench/bench_options.h"
#include "program/commands.h"
#include "program/frame/open_model.h"
#include "program/frame/progress.h"

/* ----------------------------------------------------------------------------------------------------------- options */

static void parse_batches(common_options *options, const char *text, void *list)
{
    bench_parse_list(options, "--batch", text, 1 << 20, false, list);
}

static void parse_layers(common_options *options, const char *text, void *list)
{
    bench_parse_list(options, "--depth", text, 4096, false, list);
}

static void parse_mix(common_options *options, const char *text, void *mixes)
{
    bench_options *o = (bench_options *)options;
    size_list *next = (size_list *)mixes + o->sweep.mix_count;
    if (o->sweep.mix_count == BENCH_MOST_MIXES) option_wrong(options, mixes, "too many");
    ++o->sweep.mix_count;
    bench_parse_list(options, "--mix", text, 1 << 24, true, next);
}

static void parse_terms(common_options *options, const char *text, void *target)
{
    bench_options *o = (bench_options *)options;
    term_selection *terms = target;
    o->sweep.term_count = 0;
    for (const char *at = text; at; at = strchr(at, ',')) {
        char name[32];
        deberta_error error;
        at += *at == ',' && at != text;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
        if (o->sweep.term_count == BENCH_MOST_TERMS)
            option_wrong(options, target, "more than the four kinds there are");
        if (term_selection_from_name(&terms[o->sweep.term_count++], name, &error) != DEBERTA_OK)
            option_wrong(options, target, "%s", error.message);
    }
}

/* The order is that of sweep_position_cache. */
static const char *const position_caches[] = {"on", "off", "both", NULL}, *const term_choices[] = {"full", "c2c",
                                                                                                   "c2c+c2p", "c2c+p2c",
                                                                                                   NULL};

static const option table[] = {
    BENCH_TOKENS_OPTION(bench_options, sweep.lengths, "128"),
    {"batch", 'b', "LIST", "sequences of that length at once (default 1)",
     PARSED_AT(bench_options, sweep.batches, parse_batches)},
    {"mix", 0, "LIST", "a ragged batch of sequences of these lengths; may be repeated",
     PARSED_AT(bench_options, mixes, parse_mix)},
    {"depth", 'l', "LIST", "numbers of layers to run (default all)",
     PARSED_AT(bench_options, sweep.layers, parse_layers)},
    BENCH_THREADS_OPTION(bench_options, sweep.threads, "OMP_NUM_THREADS, else physical cores"),
    BENCH_ISAS_OPTION(bench_options, isas),
    {"attention", 0, "LIST", "terms: full, c2c, c2c+c2p, c2c+p2c (default full)",
     PARSED_AT(bench_options, terms, parse_terms), .choices = term_choices},
    {"position-cache", 0, "WHICH", "on (default), off: recompute position projections every time, both",
     CHOICE_AT(bench_options, sweep.position_cache, position_caches)},
    {"reps", 0, "N", "samples a point, exactly, or with --min-time at least (default: at least 7)",
     SIZE_AT(bench_options, sweep.repetitions, 1, SWEEP_MAX_SAMPLES)},
    {"min-time", 0, "SECONDS", "measured time a point, at least (default 0.2, with --reps none)",
     NUMBER_AT(bench_options, sweep.min_seconds, 0, 3600)},
    {"breakdown", 0, NULL, "seconds, FLOPs, bytes and share of the peak by stage",
     FLAG_AT(bench_options, sweep.breakdown)},
    {"cold", 0, NULL, "before each sample, write over all caches", FLAG_AT(bench_options, sweep.cold)},
    {"pin", 0, NULL, "bind threads to cores", FLAG_AT(bench_options, sweep.pin_threads)},
    {"no-peak", 0, NULL, "do not measure the machine's limits, neither first nor between samples",
     FLAG_AT(bench_options, sweep.skip_roofs)},
    {"roof-share", 0, "PART",
     "of the samples' time, what the limits measured between them may take (default 0.1; 0: none)",
     NUMBER_AT(bench_options, sweep.roof_share, 0, 1), .not_with = "no-peak"},
    RESULT_FORMAT_OPTIONS,
    {.name = NULL},
};

/* Fills the members that the table of options cannot: pointers into the options, and the options common to every
 * command. */
static void complete(const bench_options *o, sweep_options *sweep, isa_list *isas)
{
    const common_options *common = &o->common;
    *isas = o->isas;
    *sweep = o->sweep;
    sweep->model = common->arguments[0];
    sweep->reference = (deberta_reference)common->reference;
    sweep->precision = (deberta_precision)common->precision;
    sweep->memory_limit_bytes = common->memory_limit_bytes;
    sweep->seed = common->seed;
    sweep->mixes = o->mixes;
    if (sweep->skip_roofs) sweep->roof_share = 0;
    sweep->terms = o->terms;
    bench_default_isas(common, isas);
    sweep->isas = isas->values;
    sweep->isa_count = isas->count;
}

/* Checks the sizes that the sweep needs before --out is opened, and without weights. Other faults of the model are
 * left to the sweep. */
static void check_model(const common_options *options, const sweep_options *sweep)
{
    const deberta_model_options describe = {.struct_size = sizeof describe,
                                            .reference = sweep->reference,
                                            .precision = sweep->precision,
                                            .describe_only = true};
    deberta_model *model;
    deberta_error error;
    if (deberta_model_open(&model, sweep->model, &describe, &error) != DEBERTA_OK) return;
    if (sweep_check(sweep, deberta_model_describe(model), &error) != DEBERTA_OK)
        usage_wrong(options, "%s", error.message);
    deberta_model_free(&model);
}

/* ----------------------------------------------------------------------------------------------------------- running */

static bool bench_show_progress(void *context, const sweep_state *state)
{
    progress_step(context, (size_t)(state->done * 1000), state->what);
    return true;
}

/* Says where results went when nothing was printed. */
static void tell_what_was_written(const common_options *options, const bench_results *results, result_format format)
{
    const char *path = options_out(options);
    if (!path || strcmp(path, "-") == 0) return;
    say_note(options, "deberta bench: %zu point%s of %s in %s (%s)", results->count, results->count == 1 ? "" : "s",
             options->arguments[0], path, result_format_names[format]);
}

/* Warns of more threads than cores: threads without a core wait for each other, so the times measure the
 * scheduler. */
static void tell_of_threads(const common_options *options, const sweep_options *sweep)
{
    topology_info machine;
    size_t most = 0;
    for (size_t k = 0; k < sweep->threads.count; k++)
        if (sweep->threads.values[k] > most) most = sweep->threads.values[k];
    if (topology_read(&machine, NULL) == DEBERTA_OK && most > machine.usable_cores)
        say_note(options, "note: %zu threads share %zu core%s, so times scatter and say little", most,
                 machine.usable_cores, machine.usable_cores == 1 ? "" : "s");
}

static int bench_measure(const common_options *options, sweep_options *sweep, result_format format)
{
    bench_results results = {0};
    deberta_error error = {0};
    tell_of_threads(options, sweep);
    text_output output;
    text_output_open(options, options_out(options), &output);
    progress_bar bar = progress_begin(options, "bench", 1000);
    sweep->progress = bench_show_progress;
    sweep->progress_context = &bar;
    const deberta_status done = sweep_run(&results, sweep, &error);
    progress_end(&bar);
    text_output_must(options, &output, done, &error);
    bench_finish(options, &output, &results, format);
    tell_what_was_written(options, &results, format);
    const size_t wrong = results.disagreements;
    scope_free(&results.memory);
    if (wrong)
        fprintf(stderr, "deberta bench: %zu points computed something else than they had to; see the notes\n", wrong);
    return wrong ? EXIT_CHECK_FAILED : EXIT_OK;
}

static int bench_run(const common_options *options)
{
    sweep_options sweep;
    isa_list isas;
    complete((const bench_options *)options, &sweep, &isas);
    const result_format format = result_format_read(options);
    check_model_place(options);
    check_model(options, &sweep);
    return bench_measure(options, &sweep, format);
}

static const command *const subcommands[] = {
    &command_bench_machine,
    &command_bench_kernel,
    &command_bench_requests,
    &command_bench_train,
    &command_bench_compare,
    &command_bench_merge,
#if HAVE_VIZ
    &command_bench_plot,
#endif
    NULL,
};

const command command_bench = {
    .name = "bench",
    .summary = "latency sweeps over length, layers, threads and tiers; also: machine, kernel, requests, train, "
               "compare, merge, plot",
    .arguments = "MODEL",
    .writes = WRITES_TABLE,
    .size = sizeof(bench_options),
    .defaults = &(const bench_options){.sweep = {.min_seconds = -1, .roof_share = SWEEP_DEFAULT_ROOF_SHARE}},
    .options = table,
    .example = "  deberta bench synthetic:v3-small,vocab=1000 -n 16-512*2 --depth 1-6\n"
               "  deberta bench synthetic:v3-small,vocab=1000 -n 16-128*2 --threads 1,2 --breakdown -o sweep.json\n",
    .run = bench_run,
    .subcommands = subcommands,
};
