/* `deberta report`: sweep, verification and attention figures of one model in a folder with an index.html.
 *
 * It runs the other commands with the options one would type, and the page lists exactly those lines: whatever is in
 * the folder can be made again one by one. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/range.h"
#include "cli/commands.h"
#include "cli/report_page.h"
#include "cli/run.h"
#include "core/text/tokenizer.h"

enum { MOST_WORDS = 32 };

typedef struct report_job {
    const parsed_options *options;
    const char *model, *folder;
    const char *input_option, *input; /* --text or --ids */
    report_step steps[8];
    size_t step_count;
} report_job;

/* folder/name, in new memory. */
static char *in_folder(const report_job *job, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", job->folder, name) < 0 ? NULL : path;
}

/* Of the common options those that change results go on to every step. */
static int forward_common(const report_job *job, char **argv, int argc)
{
    static const char *const forwarded[][2] = {
        {"threads", "--threads"}, {"memory-limit", "--memory-limit"}, {"reference", "--reference"}, {"seed", "--seed"}};
    for (size_t k = 0; k < sizeof forwarded / sizeof *forwarded; k++) {
        const char *value = options_value(job->options, forwarded[k][0], NULL);
        if (!value || argc + 2 > MOST_WORDS) continue;
        argv[argc++] = (char *)(uintptr_t)forwarded[k][1];
        argv[argc++] = (char *)(uintptr_t)value;
    }
    return argc;
}

/* Runs one command given as words (NULL-terminated; the first is its name) and keeps its line for the page. */
static int run_step(report_job *job, const char *title, const command *command, const char *const *words)
{
    char *argv[MOST_WORDS + 1];
    int argc = 0;
    for (; words[argc] && argc < MOST_WORDS; argc++) argv[argc] = (char *)(uintptr_t)words[argc];
    argc = forward_common(job, argv, argc);
    argv[argc] = NULL;
    parsed_options *options;
    int status = options_parse(&options, command, argc, argv);
    if (!options) return status;
    run_note(job->options, "%s ...", title);
    report_step *step = &job->steps[job->step_count++];
    *step = (report_step){.title = title, .command = options_command_line(options, NULL)};
    status = command->run(options);
    step->failed = status == EXIT_CHECK_FAILED;
    options_free(&options);
    return status == EXIT_CHECK_FAILED ? EXIT_OK : status;
}

/* What takes longest comes last, so that most mistakes show at once. */
static int run_steps(report_job *job, char *paths[6])
{
    const char *lengths = options_value(job->options, "tokens", "16-256*2"),
               *layers = options_value(job->options, "layers", "0");
    const char *heads = options_value(job->options, "heads", "0"), *reps = options_value(job->options, "reps", "7");
    const char *tiers = options_value(job->options, "isa", "all");
    const char *const info[] = {"info", job->model, "--json", "-o", paths[0], NULL};
    const char *const sweep[] = {"bench",  job->model, "-n",     lengths, "--isa",  tiers,
                                 "--reps", reps,       "--json", "-o",    paths[1], NULL};
    const char *const verify[] = {"verify", job->model, job->input_option, job->input, "--json", "-o", paths[2], NULL};
    int status = run_step(job, "The machine and the model", &command_info, info);
#if HAVE_VIZ
    const char *const plot[] = {"bench", "plot", paths[1], "-o", paths[3], NULL};
    const char *const attention[] = {
        "attention", job->model, job->input_option, job->input, "--layers", layers, "--heads",
        heads,       "-o",       paths[4],          "-o",       paths[5],   NULL};
    if (status == EXIT_OK) status = run_step(job, "Attention components", &command_attention, attention);
#else
    (void)layers;
    (void)heads;
#endif
    if (status == EXIT_OK) status = run_step(job, "Verification", &command_verify, verify);
    if (status == EXIT_OK) status = run_step(job, "Latency", &command_bench, sweep);
#if HAVE_VIZ
    if (status == EXIT_OK && (strchr(lengths, ',') || strchr(lengths, '-')))
        status = run_step(job, "Latency, drawn", &command_bench, plot);
#endif
    return status;
}

/* A list that is wrong should not be found out after minutes. */
static bool check_lengths(const parsed_options *options)
{
    size_list list = {0};
    deberta_error error;
    const char *text = options_value(options, "tokens", NULL);
    if (!text || range_parse(&list, text, "--tokens", 1, 1 << 24, &error) == DEBERTA_OK) {
        size_list_free(&list);
        return true;
    }
    report_usage(options, "%s", error.message);
    return false;
}

static int make_folder(const report_job *job)
{
    struct stat about;
    if (stat(job->folder, &about) == 0 && !S_ISDIR(about.st_mode)) {
        fprintf(stderr, "deberta report: %s: is a file, expected a folder\n", job->folder);
        return EXIT_SYSTEM;
    }
    if (mkdir(job->folder, 0777) == 0 || (errno == EEXIST && stat(job->folder, &about) == 0 && S_ISDIR(about.st_mode)))
        return EXIT_OK;
    fprintf(stderr, "deberta report: %s: the folder cannot be made: %s\n", job->folder, strerror(errno));
    return EXIT_SYSTEM;
}

/* A text where the model has a tokenizer, ids where it has none; what the user gives goes first. */
static void choose_input(report_job *job)
{
    job->input_option = options_has(job->options, "ids") ? "--ids" : "--text";
    job->input = options_value(job->options, job->input_option + 2, NULL);
    if (job->input) return;
    deberta_error error;
    tokenizer *tokenizer = NULL;
    if (strncmp(job->model, "synthetic:", 10) != 0 && tokenizer_open(&tokenizer, job->model, &error) == DEBERTA_OK) {
        job->input = "a new store opened beside the new mall";
        tokenizer_free(&tokenizer);
        return;
    }
    job->input_option = "--ids";
    job->input = "1,7,3,5,9,4,8,6,7,3,10,2";
}

static int run(const parsed_options *options)
{
    static const char *const names[6] = {"info.json", "sweep.json",    "verify.json",
                                         "sweep.png", "attention.png", "attention.pdf"};
    report_job job = {
        .options = options, .model = options_argument(options, 0), .folder = options_value(options, "out", "report")};
    char *paths[6] = {0};
    size_t reps;
    if (!check_lengths(options) || !options_size(options, "reps", 7, 1, 1000, &reps)) return EXIT_USAGE;
    if (options_has(options, "text") && options_has(options, "ids"))
        return report_usage(options, "give one of --text and --ids");
    if (!run_is_model_place(options)) return EXIT_INPUT;
    int status = make_folder(&job);
    bool fine = true;
    for (size_t k = 0; k < 6; k++) fine = (paths[k] = in_folder(&job, names[k])) && fine;
    if (!fine) status = EXIT_SYSTEM;
    choose_input(&job);
    if (status == EXIT_OK) status = run_steps(&job, paths);
    if (status == EXIT_OK) {
        char *page = in_folder(&job, "index.html");
        status = page ? report_page_write(options, page, job.model, job.input, job.steps, job.step_count, paths)
                      : EXIT_SYSTEM;
        if (status == EXIT_OK) run_note(options, "report: %s", page);
        free(page);
    }
    for (size_t k = 0; k < 6; k++) free(paths[k]);
    for (size_t k = 0; k < job.step_count; k++) {
        if (status == EXIT_OK && job.steps[k].failed) status = EXIT_CHECK_FAILED;
        free(job.steps[k].command);
    }
    return status;
}

static const option_spec options[] = {
    {"text", 0, "TEXT", "what the figures show"},
    {"ids", 0, "LIST", "the same as token ids"},
    {"tokens", 'n', "LIST", "lengths of the sweep (default 16-256*2)"},
    {"layers", 0, "LIST", "layers of the figure, counted from 0 (default 0)"},
    {"heads", 0, "LIST", "heads of the figure (default 0)"},
    {"reps", 0, "N", "samples a point of the sweep (default 7)"},
    {"out", 'o', "FOLDER", "where everything goes (default report)"},
    {NULL, 0, NULL, NULL},
};

const command command_report = {
    .name = "report",
    .summary = "sweep, verification and attention figures of one model in a folder with an index.html",
    .arguments = "MODEL",
    .min_arguments = 1,
    .max_arguments = 1,
    .options = options,
    .example = "  deberta report models/demo --text 'a new store opened beside the new mall' -o out/report\n"
               "  deberta report synthetic:v3-xsmall,vocab=1000 -o out/report\n",
    .run = run,
};
