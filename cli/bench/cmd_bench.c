/* `deberta bench`: sweeps over lengths, layers, threads and tiers; single kernels; the machine's limits; comparison of
 * results. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "bench/compare.h"
#include "bench/sweep.h"
#include "bench/trends.h"
#include "cli/bench/bench_lists.h"
#include "cli/bench/bench_machine.h"
#if HAVE_VIZ
#include "cli/bench/bench_plot.h"
#endif
#include "cli/commands.h"
#include "command/run.h"
#include "command/table_format.h"
#include "core/base/topology.h"

enum { MOST_MIXES = 64 };

/* ---------------------------------------------------------------------------------------------------------- sweeps */

/* Everything that options of a sweep point to. */
typedef struct sweep_lists {
    size_list lengths, batches, layers, threads, mixes[MOST_MIXES];
    deberta_isa isas[DEBERTA_ISA_COUNT];
    term_selection terms[4];
} sweep_lists;

static void lists_free(sweep_lists *lists)
{
    size_list_free(&lists->lengths);
    size_list_free(&lists->batches);
    size_list_free(&lists->layers);
    size_list_free(&lists->threads);
    for (size_t k = 0; k < MOST_MIXES; k++) size_list_free(&lists->mixes[k]);
}

static bool read_terms(const parsed_options *options, sweep_lists *lists, size_t *count)
{
    const char *text = options_value(options, "attention", "full");
    *count = 0;
    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char name[32];
        deberta_error error;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
        if (*count == 4 || term_selection_from_name(&lists->terms[*count], name, &error) != DEBERTA_OK) {
            say_usage(options, "--attention: %s", *count == 4 ? "more than the four kinds there are" : error.message);
            return false;
        }
        ++*count;
    }
    return true;
}

static bool read_mixes(const parsed_options *options, sweep_lists *lists, size_t *count)
{
    const char *text;
    for (*count = 0; (text = options_nth_value(options, "mix", *count)); ++*count) {
        deberta_error error;
        if (*count == MOST_MIXES ||
            range_parse_repeated(&lists->mixes[*count], text, "--mix", 1, 1 << 24, &error) != DEBERTA_OK) {
            say_usage(options, "%s", *count == MOST_MIXES ? "--mix: too many" : error.message);
            return false;
        }
    }
    return true;
}

static bool read_position_cache(const parsed_options *options, sweep_options *sweep)
{
    static const char *const choices[] = {"on", "off", "both", NULL};
    size_t choice;
    if (!options_choice(options, "position-cache", choices, 0, &choice)) return false;
    sweep->position_cache_on = choice != 1;
    sweep->position_cache_off = choice != 0;
    return true;
}

static bool read_min_time(const parsed_options *options, double *seconds)
{
    if (!options_number(options, "min-time", -1, seconds)) return false;
    if (!options_has(options, "min-time") || (*seconds >= 0 && *seconds <= 3600)) return true;
    say_usage(options, "--min-time: expected 0 to 3600 seconds, found %s", options_value(options, "min-time", ""));
    return false;
}

static bool read_sweep(const parsed_options *options, sweep_lists *lists, sweep_options *sweep)
{
    deberta_model_options model;
    *sweep = (sweep_options){.model = options_argument(options, 0)};
    fill_model_options(options, &model);
    const bool fine = bench_read_list(options, "tokens", 1 << 24, &lists->lengths) &&
                      bench_read_list(options, "batch", 1 << 20, &lists->batches) &&
                      bench_read_list(options, "layers", 4096, &lists->layers) &&
                      bench_read_threads(options, TOPOLOGY_MAX_WORKERS, &lists->threads) &&
                      bench_read_isas(options, lists->isas, &sweep->isa_count) &&
                      read_terms(options, lists, &sweep->term_count) && read_mixes(options, lists, &sweep->mix_count) &&
                      read_position_cache(options, sweep) &&
                      options_size(options, "reps", 0, 1, SWEEP_MAX_SAMPLES, &sweep->repetitions) &&
                      read_min_time(options, &sweep->min_seconds) && options_u64(options, "seed", 1, &sweep->seed);
    sweep->reference = model.reference;
    sweep->memory_limit_bytes = model.memory_limit_bytes;
    sweep->lengths = lists->lengths;
    sweep->batches = lists->batches;
    sweep->layers = lists->layers;
    sweep->threads = lists->threads;
    sweep->mixes = lists->mixes;
    sweep->isas = lists->isas;
    sweep->terms = lists->terms;
    sweep->cold = options_has(options, "cold");
    sweep->breakdown = options_has(options, "breakdown");
    sweep->pin_threads = options_has(options, "pin");
    sweep->skip_roofs = options_has(options, "no-peak");
    return fine;
}

/* Before --out is opened, and without weights. What is wrong with the model itself, the sweep says. */
static bool fits_model(const parsed_options *options, const sweep_options *sweep)
{
    const deberta_model_options describe = {
        .struct_size = sizeof describe, .reference = sweep->reference, .describe_only = true};
    deberta_model *model;
    deberta_error error;
    if (deberta_model_open(&model, sweep->model, &describe, &error) != DEBERTA_OK) return true;
    const bool fits = sweep_check(sweep, deberta_model_describe(model), &error) == DEBERTA_OK;
    if (!fits) say_usage(options, "%s", error.message);
    deberta_model_free(&model);
    return fits;
}

static bool show_progress(void *context, const sweep_state *state)
{
    progress_step(context, (size_t)(state->done * 1000), state->what);
    return true;
}

static deberta_status print_sweep(const bench_report *report, FILE *out, table_format format, deberta_error *err)
{
    if (format == FORMAT_JSON) return report_write_json(report, out, err);
    if (format != FORMAT_CSV) report_print_environment(report, out);
    DEBERTA_TRY(report_print_results(report, out, table_format_style(format), err));
    if (format == FORMAT_CSV) return DEBERTA_OK;
    DEBERTA_TRY(report_print_breakdowns(report, out, table_format_style(format), err));
    return trends_print(report, out, err);
}

static int run_sweep(const parsed_options *options)
{
    sweep_lists lists = {0};
    sweep_options sweep;
    table_format format;
    deberta_error error = {0};
    bench_report report = {0};
    text_output output;
    if (!read_sweep(options, &lists, &sweep) || !table_format_read(options, &format)) {
        lists_free(&lists);
        return EXIT_USAGE;
    }
    if (!run_is_model_place(options)) {
        lists_free(&lists);
        return EXIT_INPUT;
    }
    if (!fits_model(options, &sweep)) {
        lists_free(&lists);
        return EXIT_USAGE;
    }
    /* the output is opened first: nobody should wait for minutes to hear that a folder does not exist */
    int status = text_output_open(options, options_value(options, "out", NULL), &output);
    if (status == EXIT_OK) {
        progress_bar bar = progress_begin(options, "bench", 1000);
        sweep.progress = show_progress;
        sweep.progress_context = &bar;
        deberta_status done = sweep_run(&report, &sweep, &error);
        progress_end(&bar);
        bench_note_command(options, &report);
        if (done == DEBERTA_OK) done = print_sweep(&report, output.file, format, &error);
        if (done != DEBERTA_OK) {
            text_output_discard(&output);
            status = say_error(options, &error);
        } else {
            status = text_output_close(options, &output);
        }
        if (status == EXIT_OK && report.disagreements) {
            fprintf(stderr, "deberta bench: %zu points computed something else than they had to; see the notes\n",
                    report.disagreements);
            status = EXIT_CHECK_FAILED;
        }
    }
    bench_report_free(&report);
    lists_free(&lists);
    return status;
}

/* --------------------------------------------------------------------------------------------------------- compare */

static int run_compare(const parsed_options *options)
{
    bench_report a = {0}, b = {0};
    compare_list list = {0};
    deberta_error error = {0};
    table_format format;
    if (options_argument_count(options) != 3)
        return say_usage(options, "compare: expected two JSON files of `bench --json`");
    if (!table_format_read_no_json(options, &format)) return EXIT_USAGE;
    deberta_status status = report_read_file(&a, options_argument(options, 1), &error);
    if (status == DEBERTA_OK) status = report_read_file(&b, options_argument(options, 2), &error);
    if (status == DEBERTA_OK && !options_has(options, "any-environment") &&
        compare_environments(&a, &b, &error) != DEBERTA_OK) {
        deberta_error both = error;
        status = status_fail(&both, error.code, "%.400s (--any-environment compares all the same)", error.message);
        error = both;
    }
    if (status == DEBERTA_OK) status = compare_reports(&list, &a, &b, &error);
    if (status == DEBERTA_OK && list.count == 0)
        status =
            status_fail(&error, DEBERTA_E_FORMAT, "%s and %s have no measured point in common: nothing can be compared",
                        options_argument(options, 1), options_argument(options, 2));
    text_output output = {0};
    int code = status == DEBERTA_OK ? text_output_open(options, options_value(options, "out", NULL), &output) : EXIT_OK;
    if (status == DEBERTA_OK && code == EXIT_OK)
        status = compare_print(&list, &a, &b, output.file, table_format_style(format), &error);
    compare_free(&list);
    bench_report_free(&a);
    bench_report_free(&b);
    return code == EXIT_OK ? bench_finish_output(options, &output, status, &error) : code;
}

/* ------------------------------------------------------------------------------------------------- the first word */

typedef struct bench_job {
    const char *word; /* NULL: anything else, which is a model */
    int (*run)(const parsed_options *options);
    const char *options; /* that it takes, between blanks; others are refused, not passed over */
} bench_job;

static const bench_job jobs[] = {
    {"machine", bench_machine_run, " threads format json "},
    {"kernel", bench_kernel_run, " isa reps cold format "},
    {"schedule", bench_schedule_run, " tokens threads isa reps format "},
    {"compare", run_compare, " format any-environment "},
#if HAVE_VIZ
    {"plot", bench_plot_run, " plot title width-mm dpi font "},
#endif
    {NULL, run_sweep,
     " tokens batch mix layers threads isa attention position-cache reps min-time breakdown cold pin no-peak format "
     "json "},
};

/* Every command takes these, whether or not it has a use for them: `report` hands them to all of its steps. */
static bool is_for_all(const char *name) { return strcmp(name, "threads") == 0 || strcmp(name, "isa") == 0; }

/* Where they are of no use their values are checked all the same. */
static bool check_for_all(const parsed_options *options)
{
    deberta_isa isas[DEBERTA_ISA_COUNT];
    size_t count;
    size_list threads = {0};
    const bool fine = (!options_has(options, "isa") || bench_read_isas(options, isas, &count)) &&
                      bench_read_threads(options, TOPOLOGY_MAX_WORKERS, &threads);
    size_list_free(&threads);
    return fine;
}

static bool takes_all(const bench_job *job, const parsed_options *options)
{
    for (const option_spec *spec = options_command(options)->options; spec->name; spec++) {
        char name[40];
        snprintf(name, sizeof name, " %s ", spec->name);
        if (!options_has(options, spec->name) || is_for_all(spec->name) || strstr(job->options, name)) continue;
        say_usage(options, "--%s: %s does not take it; it takes%.*s", spec->name, job->word ? job->word : "a sweep",
                  (int)strlen(job->options) - 1, job->options);
        return false;
    }
    return true;
}

static int run(const parsed_options *options)
{
    const char *word = options_argument(options, 0);
    const bench_job *job = jobs;
    while (job->word && strcmp(job->word, word) != 0) job++;
    if (!takes_all(job, options) || !check_for_all(options)) return EXIT_USAGE;
    if (strcmp(word, "plot") != 0 && options_nth_value(options, "out", 1))
        return say_usage(options, "--out may be repeated for plot only");
    if (strcmp(word, "plot") != 0 && !run_check_text_path(options)) return EXIT_USAGE;
    if (!job->word && options_argument_count(options) > 1)
        return say_usage(options, "unexpected argument '%s'", options_argument(options, 1));
    return job->run(options);
}

static const option_spec options[] = {
    {"tokens", 'n', "LIST", "lengths: 16,40,128 or 16-512*2 or 16-128+16 (default 128)"},
    {"batch", 'b', "LIST", "sequences of that length at once (default 1)"},
    {"mix", 0, "LIST", "a ragged batch of sequences of these lengths; may be repeated"},
    {"layers", 'l', "LIST", "numbers of layers to run (default all)"},
    {"threads", 't', "LIST", "numbers of threads (default: OMP_NUM_THREADS, else physical cores)"},
    {"isa", 0, "LIST", "tiers: avx2,avx512 or all (default the best)"},
    {"attention", 0, "LIST", "terms: full, c2c, c2c+c2p, c2c+p2c (default full)"},
    {"position-cache", 0, "WHICH", "on (default), off: recompute position projections every time, both"},
    {"reps", 0, "N", "samples a point (default at least 7)"},
    {"min-time", 0, "SECONDS", "measured time a point, at least (default 0.2)"},
    {"breakdown", 0, NULL, "seconds, FLOPs, bytes and share of the peak by stage"},
    {"cold", 0, NULL, "before each sample, write over all caches; with kernel, other weights for gemm at each call"},
    {"pin", 0, NULL, "bind threads to cores"},
    {"no-peak", 0, NULL, "do not measure the machine's limits first"},
    {"format", 0, "NAME", "table (default), md, csv or, like --json, json; without it, what --out ends in",
     CHOICE_AT(common_options, format, table_format_names_no_latex), .role = OPTION_SHOWS},
    {"json", 0, NULL, "results as JSON: of a sweep or machine; the tables of the others have --format csv",
     FLAG_AT(common_options, json), .role = OPTION_SHOWS},
    {"plot", 0, "NAME", "plot: what to draw: list names them, all: each into a file of its own (default: the curves)"},
    {"title", 0, "TEXT", "plot: above the figure"},
    {"width-mm", 0, "MM", "plot: width on paper: 85 a column, 174 a page (default)"},
    {"dpi", 0, "N", "plot: resolution of a PNG (default 300)"},
    {"font", 0, "FAMILY", "plot: type of labels"},
    {"any-environment", 0, NULL, "compare results of unlike machines all the same"},
    {NULL, 0, NULL, NULL},
};

const command command_bench = {
    .name = "bench",
    .summary = "latency sweeps over length, layers, threads and tiers; also: machine, kernel, schedule, compare, plot",
    .arguments = "MODEL | machine | kernel FILES | schedule MODEL | compare A.json B.json | plot F.json",
    .min_arguments = 1,
    .max_arguments = 64,
    .most_outputs = 16,
    .options = options,
    .example = "  deberta bench synthetic:v3-small,vocab=1000 -n 16-512*2 --layers 1-6\n"
               "  deberta bench synthetic:v3-small,vocab=1000 -n 16-128*2 --threads 1,2 --breakdown -o sweep.json\n"
               "  deberta bench plot sweep.json -o sweep.pdf\n"
               "  deberta bench plot sweep.json --plot roofline --width-mm 85 -o roofline.pdf\n"
               "  deberta bench schedule synthetic:v3-base,vocab=1000 -n 512 --threads 2,8,16\n"
               "  deberta bench compare before.json after.json\n",
    .run = run,
};
