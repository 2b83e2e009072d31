/* `deberta report`: one folder with an index.html to explore in: attention of texts, latency, verification, receptive
 * field, the machine.
 *
 * It runs the other commands with the options one would type, and the page lists exactly those lines (commands.sh holds
 * them): whatever is in the folder can be made again one by one. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/range.h"
#include "command/ablate.h"
#include "cli/commands.h"
#include "explorer/explorer.h"
#include "command/input/input.h"
#include "explorer/explorer_page.h"
#include "command/open_model.h"
#include "command/options.h"
#include "command/text_output.h"

typedef enum skipped { SKIP_LATENCY, SKIP_VERIFY, SKIP_RECEPTIVE_FIELD, SKIP_COUNT } skipped;

enum {
    MOST_WORDS = 128,
    MOST_TEXTS = 16,
    MOST_STEPS = 2 * MOST_TEXTS + 8,
    LAYER_SWEEP_TOKENS = 64,  /* length at which numbers of layers are compared */
    LAYER_SWEEP_POINTS = 12,  /* at most, unless the user says which */
    MOST_VERIFIED_TOKENS = 96 /* the float64 model is slow: longer texts give way to a few made-up ids */
};

typedef struct report_options {
    reading_options reading;
    const char *layers, *heads;         /* of the printed figure */
    const char *lengths, *sweep_layers; /* size lists; sweep_layers NULL: chosen by the model */
    size_t reps;
    bool skip[SKIP_COUNT];
} report_options;

typedef struct explorer_job {
    const report_options *o;
    const common_options *options; /* the first of its members */
    explorer_contents contents;
    input_batch input;
    explorer_text texts[MOST_TEXTS];
    explorer_step steps[MOST_STEPS];
    size_t layers;
    bool has_relative_positions;
} explorer_job;

/* ------------------------------------------------------------------------------------------------------------- words */

/* A command line that grows; the words that were made for it are freed with it. */
typedef struct word_list {
    const char *words[MOST_WORDS + 1]; /* NULL-terminated */
    char *made[MOST_WORDS];
    int count, made_count;
    bool failed;
} word_list;

static void add_word(word_list *list, const char *word)
{
    if (!word || list->count == MOST_WORDS)
        list->failed = true;
    else
        list->words[list->count++] = word;
}

static void add_option(word_list *list, const char *option, const char *value)
{
    add_word(list, option);
    add_word(list, value);
}

/* Takes over `word`, which may be NULL for want of memory. */
static void add_made(word_list *list, const char *option, char *word)
{
    add_option(list, option, word);
    if (word) list->made[list->made_count++] = word;
}

static void add_number(word_list *list, const char *option, uint64_t value)
{
    char *word;
    add_made(list, option, asprintf(&word, "%" PRIu64, value) < 0 ? NULL : word);
}

/* Those of the report's options that change results go on to every step. */
static void add_forwarded(word_list *list, const common_options *options)
{
    if (option_given(options, &options->threads)) add_number(list, "--threads", options->threads);
    if (option_given(options, &options->memory_limit_bytes))
        add_number(list, "--memory-limit", options->memory_limit_bytes);
    if (option_given(options, &options->reference)) add_option(list, "--reference", reference_name(options->reference));
    if (option_given(options, &options->seed)) add_number(list, "--seed", options->seed);
}

/* What a step says while it runs; not kept in its line. */
static void add_talk(word_list *list, const common_options *options)
{
    if (options->quiet) add_word(list, "--quiet");
    if (options->progress == PROGRESS_NEVER) add_option(list, "--progress", "never");
}

/* For the steps that look inside: receptive field and sweeps are about the model as it is. */
static void add_ablations(word_list *list, const explorer_job *job)
{
    if (job->options->ablate_text) add_option(list, "--ablate", job->options->ablate_text);
}

static char *document_path(const explorer_job *job, explorer_document document, const char *suffix)
{
    char *path;
    const char *name = explorer_document_name(document);
    return asprintf(&path, "%s/%s.%s", job->contents.folder, name, suffix) < 0 ? NULL : path;
}

/* The step writes a document of the page. */
static void add_document(word_list *list, explorer_job *job, explorer_document document)
{
    add_made(list, "-o", document_path(job, document, "json"));
    job->contents.has_document[document] = true;
}

/* Runs one command given as words (the first is its name) and keeps its line for the page. */
static int run_step(explorer_job *job, const char *title, const command *command, word_list *list)
{
    add_forwarded(list, job->options);
    add_talk(list, job->options);
    common_options *options = NULL;
    int status = EXIT_SYSTEM;
    if (list->failed)
        fprintf(stderr, "deberta report: out of memory\n");
    else
        status = options_parse(&options, command, job->options->commands, list->count, (char **)(uintptr_t)list->words);
    if (options) {
        say_note(job->options, "%s ...", title);
        explorer_step *step = &job->steps[job->contents.step_count++];
        *step = (explorer_step){.title = title, .command = options_command_line(options, true)};
        status = command->run(options);
        step->failed = status == EXIT_CHECK_FAILED;
        options_free(&options);
    }
    for (int k = 0; k < list->made_count; k++) free(list->made[k]);
    return status == EXIT_CHECK_FAILED ? EXIT_OK : status;
}

/* ------------------------------------------------------------------------------------------------------------- steps */

static char *list_ids(const explorer_job *job, size_t row)
{
    const size_t first = job->input.sequence_starts[job->input.row[row].sequence], count = job->input.row[row].tokens;
    char *text = malloc(12 * count + 1), *at = text;
    for (size_t t = 0; text && t < count; t++) at += sprintf(at, t ? ",%d" : "%d", job->input.ids[first + t]);
    return text;
}

/* A text as it was given; ids where there is none, or one that no command line can hold. */
static void add_input(word_list *list, const explorer_job *job, size_t row)
{
    const input_batch *input = &job->input;
    const bool typed = input->texts && strlen(input->texts[row]) == input->text_bytes[row];
    if (!typed) {
        add_made(list, "--ids", list_ids(job, row));
        return;
    }
    const token_limit *limit = &job->o->reading.max_tokens;
    add_option(list, "--text", input->texts[row]);
    if (input->pairs && input->pairs[row]) add_option(list, "--pair", input->pairs[row]);
    if (limit->kind == LIMIT_TOKENS) add_number(list, "--max-tokens", limit->tokens);
}

static int run_text(explorer_job *job, size_t row)
{
    const explorer_text *text = &job->texts[row];
    word_list encode = {.words = {"encode", job->contents.model}, .count = 2};
    add_input(&encode, job, row);
    add_option(&encode, "--component-layers", "all");
    add_option(&encode, "--attention-layers", "all");
    add_ablations(&encode, job);
    add_option(&encode, "-o", text->data);
    int status = run_step(job, "Components and probabilities", &command_encode, &encode);
#if HAVE_VIZ
    word_list figure = {.words = {"attention", job->contents.model}, .count = 2};
    add_input(&figure, job, row);
    add_option(&figure, "--layers", job->contents.printed_layers);
    add_option(&figure, "--heads", job->contents.printed_heads);
    add_ablations(&figure, job);
    add_option(&figure, "-o", text->figure);
    add_option(&figure, "-o", text->document);
    if (status == EXIT_OK) status = run_step(job, "Attention, drawn", &command_attention, &figure);
#endif
    return status;
}

static int run_verify(explorer_job *job)
{
    word_list list = {.words = {"verify", job->contents.model, "--json"}, .count = 3};
    if (job->input.row[0].tokens <= MOST_VERIFIED_TOKENS) add_made(&list, "--ids", list_ids(job, 0));
    add_ablations(&list, job);
    add_document(&list, job, DOCUMENT_VERIFY);
    return run_step(job, "Verification", &command_verify, &list);
}

static int run_receptive_field(explorer_job *job)
{
    word_list list = {.words = {"receptive-field", job->contents.model, "--json"}, .count = 3};
#if HAVE_VIZ
    add_made(&list, "--plot", document_path(job, DOCUMENT_RECEPTIVE_FIELD, "png"));
#endif
    add_document(&list, job, DOCUMENT_RECEPTIVE_FIELD);
    return run_step(job, "Receptive field", &command_receptive_field, &list);
}

/* One sweep, and its drawing where there is a curve to draw. */
static int run_sweep(explorer_job *job, const char *title, explorer_document document, word_list *sweep, bool is_curve)
{
    add_document(sweep, job, document);
    int status = run_step(job, title, &command_bench, sweep);
#if HAVE_VIZ
    if (status != EXIT_OK || !is_curve) return status;
    word_list plot = {.words = {"bench plot"}, .count = 1};
    char *measured = document_path(job, document, "json");
    add_word(&plot, measured);
    if (measured) plot.made[plot.made_count++] = measured;
    add_made(&plot, "-o", document_path(job, document, "png"));
    status = run_step(job, "Latency, drawn", &command_bench_plot, &plot);
#else
    (void)is_curve;
#endif
    return status;
}

static int run_latency(explorer_job *job)
{
    const size_t layers = job->layers;
    const char *lengths = job->o->lengths, *chosen = job->o->sweep_layers;
    const bool one_tier = option_given(job->options, &job->options->isa);
    const char *isa = deberta_isa_name(job->options->isa);
    char numbers[64], tokens[24], reps[24];
    snprintf(reps, sizeof reps, "%zu", job->o->reps);
    snprintf(numbers, sizeof numbers, "1-%zu+%zu", layers, (layers + LAYER_SWEEP_POINTS - 1) / LAYER_SWEEP_POINTS);
    snprintf(tokens, sizeof tokens, "%d", LAYER_SWEEP_TOKENS);
    word_list over_lengths = {.words = {"bench", job->contents.model, "-n", lengths, "--isa", one_tier ? isa : "all",
                                        "--reps", reps, "--json"},
                              .count = 9};
    word_list over_layers = {.words = {"bench", job->contents.model, "-n", tokens, "--layers",
                                       chosen ? chosen : numbers, "--reps", reps, "--no-peak", "--json"},
                             .count = 10};
    if (one_tier) add_option(&over_layers, "--isa", isa);
    const int status =
        run_sweep(job, "Latency against length", DOCUMENT_LENGTHS, &over_lengths, strpbrk(lengths, ",-") != NULL);
    if (status != EXIT_OK || (layers < 2 && !chosen)) return status;
    return run_sweep(job, "Latency against layers", DOCUMENT_LAYERS, &over_layers,
                     !chosen || strpbrk(chosen, ",-") != NULL);
}

/* What takes longest comes last, so that most mistakes show at once. */
static int run_steps(explorer_job *job)
{
    word_list info = {.words = {"info", job->contents.model, "--json"}, .count = 3};
    add_document(&info, job, DOCUMENT_INFO);
    int status = run_step(job, "The machine and the model", &command_info, &info);
    for (size_t k = 0; status == EXIT_OK && k < job->contents.text_count; k++) status = run_text(job, k);
    if (status == EXIT_OK && job->has_relative_positions && !job->o->skip[SKIP_RECEPTIVE_FIELD])
        status = run_receptive_field(job);
    if (status == EXIT_OK && !job->o->skip[SKIP_VERIFY]) status = run_verify(job);
    if (status == EXIT_OK && !job->o->skip[SKIP_LATENCY]) status = run_latency(job);
    return status;
}

/* ----------------------------------------------------------------------------------------------------- before and after */

static bool check_indices(const common_options *options, const char *const *list, size_t limit)
{
    bool *selected = calloc(limit, sizeof *selected);
    if (!selected) {
        say_no_memory(options);
        return false;
    }
    const bool fine = parse_index_list(options, list, selected, limit);
    free(selected);
    return fine;
}

static bool check_sweep_layers(const explorer_job *job, const deberta_model_info *info)
{
    size_list list = {0};
    deberta_error error;
    if (!job->o->sweep_layers) return true;
    bool fine = range_parse(&list, job->o->sweep_layers, "--sweep-layers", 1, info->layers, &error) == DEBERTA_OK;
    size_list_free(&list);
    if (!fine)
        say_usage(job->options, "%s; %s has %zu layer%s", error.message, info->name, info->layers,
                  info->layers == 1 ? "" : "s");
    return fine;
}

/* What only the model can tell to be wrong, before there is a folder and minutes of work in it. */
static int check_against_model(explorer_job *job)
{
    deberta_model *model;
    int status = open_description(job->options, &model);
    if (status != EXIT_OK) return status;
    const deberta_model_info info = *deberta_model_describe(model);
    deberta_error error;
    job->layers = info.layers;
    job->has_relative_positions = info.relative_rows > 0;
    if (!check_indices(job->options, &job->o->layers, info.layers) ||
        !check_indices(job->options, &job->o->heads, info.heads) || !check_sweep_layers(job, &info))
        status = EXIT_USAGE;
    else if (input_check(&job->input, &info, "--ids", &error) != DEBERTA_OK)
        status = error.code == DEBERTA_E_ARGUMENT ? say_usage(job->options, "%s", error.message)
                                                  : say_error(job->options, &error);
    deberta_model_free(&model);
    return status;
}

/* Like mkdir -p: the folders on the way are made too. */
static int make_folder(const char *folder)
{
    char *path = strdup(folder);
    bool fine = path != NULL;
    for (char *at = path; fine; at++) {
        const char end = *at;
        if (end && (end != '/' || at == path)) continue;
        struct stat about;
        *at = '\0';
        if (mkdir(path, 0777) != 0) {
            const int why = errno;
            const bool exists = stat(path, &about) == 0;
            fine = exists && S_ISDIR(about.st_mode);
            if (!fine)
                fprintf(stderr, "deberta report: %s: %s%s\n", path,
                        exists ? "is a file, expected a folder" : "the folder cannot be made: ",
                        exists ? "" : strerror(why));
        }
        *at = end;
        if (!end) break;
    }
    if (!path) fprintf(stderr, "deberta report: out of memory\n");
    free(path);
    return fine ? EXIT_OK : EXIT_SYSTEM;
}

/* Where the user gives nothing: a text if the model has a tokenizer, ids if it has none. */
static int read_default(explorer_job *job)
{
    deberta_tokenizer *tokenizer = NULL;
    const char *model = job->contents.model;
    const bool text =
        strncmp(model, "synthetic:", 10) != 0 && deberta_tokenizer_open(&tokenizer, model, NULL) == DEBERTA_OK;
    deberta_tokenizer_free(&tokenizer);
    static const char *const sentence = "a new store opened beside the new mall", *const ids =
                                                                                      "1,7,3,5,9,4,8,6,7,3,10,2";
    reading_options reading = job->o->reading;
    if (text)
        reading.texts = (text_list){&sentence, 1};
    else
        reading.ids = (text_list){&ids, 1};
    return input_read(&reading, model, NULL, &job->input);
}

static int read_input(explorer_job *job)
{
    const bool given = job->o->reading.texts.count || job->o->reading.files.count || job->o->reading.ids.count;
    if (!given && input_refuse_text_options(&job->o->reading, "") != EXIT_OK) return EXIT_USAGE;
    const int status = given ? input_read(&job->o->reading, job->contents.model, NULL, &job->input) : read_default(job);
    if (status != EXIT_OK) return status;
    if (job->input.rows > MOST_TEXTS)
        return say_usage(job->options, "a page holds at most %d texts, found %zu", MOST_TEXTS, job->input.rows);
    job->contents.text_count = job->input.rows;
    for (size_t k = 0; k < job->input.rows; k++) {
        explorer_text *text = &job->texts[k];
        *text = (explorer_text){.input = &job->input, .row = k};
        if (asprintf(&text->data, "%s/text%zu.safetensors", job->contents.folder, k) < 0 ||
            asprintf(&text->figure, "%s/text%zu.png", job->contents.folder, k) < 0 ||
            asprintf(&text->document, "%s/text%zu.pdf", job->contents.folder, k) < 0)
            return say_no_memory(job->options);
    }
    return EXIT_OK;
}

static int write_commands(const explorer_job *job)
{
    text_output output;
    char *path = explorer_path(job->contents.folder, "commands.sh");
    int status = path ? text_output_open(job->options, path, &output) : EXIT_SYSTEM;
    if (status == EXIT_OK) {
        fputs(
            "#!/bin/sh\n# Makes everything in this folder again but the page; run it where the report was made. Where\n"
            "# deberta is not on the PATH: DEBERTA=build/deberta sh commands.sh\nset -e\n"
            "deberta() { command \"${DEBERTA:-deberta}\" \"$@\"; }\n",
            output.file);
        for (size_t k = 0; k < job->contents.step_count; k++)
            fprintf(output.file, "%s\n", job->steps[k].command ? job->steps[k].command : "");
        status = text_output_close(job->options, &output);
    }
    free(path);
    return status;
}

static int run_job(explorer_job *job)
{
    if (job->options->json)
        return say_usage(job->options, "--json: the folder has a JSON file of every step, whatever is asked for");
    if (!check_model_place(job->options)) return EXIT_INPUT;
    int status = read_input(job);
    if (status == EXIT_OK) status = check_against_model(job);
    if (status == EXIT_OK) status = make_folder(job->contents.folder);
    if (status == EXIT_OK) status = run_steps(job);
    if (status == EXIT_OK) status = write_commands(job);
    if (status == EXIT_OK) status = explorer_page_write(job->options, &job->contents);
    if (status == EXIT_OK) say_note(job->options, "report: %s/index.html", job->contents.folder);
    return status;
}

static int run(const common_options *options)
{
    const report_options *o = (const report_options *)options;
    explorer_job job = {.o = o,
                        .options = options,
                        .contents = {.folder = options->outs.count ? options_out(options) : "report",
                                     .model = options->arguments[0],
                                     .printed_layers = o->layers,
                                     .printed_heads = o->heads}};
    job.contents.texts = job.texts;
    job.contents.steps = job.steps;
    int status = run_job(&job);
    for (size_t k = 0; k < MOST_TEXTS; k++) {
        free(job.texts[k].data);
        free(job.texts[k].figure);
        free(job.texts[k].document);
    }
    for (size_t k = 0; k < job.contents.step_count; k++) {
        if (status == EXIT_OK && job.steps[k].failed) status = EXIT_CHECK_FAILED;
        free(job.steps[k].command);
    }
    input_free(&job.input);
    return status;
}

/* A list that is wrong should not be found out after minutes. Fills a text of report_options. */
static int parse_sizes(common_options *options, const char *text, void *target)
{
    size_list list = {0};
    deberta_error error;
    char name[24];
    snprintf(name, sizeof name, "--%s", option_name(options, target));
    const deberta_status status = range_parse(&list, text, name, 1, 1 << 24, &error);
    size_list_free(&list);
    *(const char **)target = text;
    return status == DEBERTA_OK ? EXIT_OK : say_usage(options, "%s", error.message);
}

static const char *const skip_names[] = {
    [SKIP_LATENCY] = "latency", [SKIP_VERIFY] = "verify", [SKIP_RECEPTIVE_FIELD] = "receptive-field", NULL};

static int parse_skip(common_options *options, const char *text, void *target)
{
    bool *skip = target;
    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const size_t length = strcspn(at, ",");
        size_t k = 0;
        while (k < SKIP_COUNT && (strlen(skip_names[k]) != length || strncmp(at, skip_names[k], length) != 0)) k++;
        if (k == SKIP_COUNT)
            return option_wrong(options, target, "expected some of latency,verify,receptive-field, found '%.*s'",
                                (int)length, at);
        skip[k] = true;
    }
    return EXIT_OK;
}

static const option options[] = {
    {"text", 0, "TEXT", "what to look into; may be repeated", TEXTS_AT(reading_options, texts)},
    {"pair", 0, "TEXT", "second segment of the text of the same number; an empty one is a segment",
     TEXTS_AT(reading_options, pairs)},
    {"file", 'f', "FILE", "texts, one a line; - is standard input", TEXTS_AT(reading_options, files)},
    {"max-tokens", 0, "N", "cut longer texts to N tokens, frame included",
     PARSED_AT(reading_options, max_tokens, token_limit_parse)},
    {"strict", 0, NULL, "refuse broken UTF-8 instead of replacing it by U+FFFD and saying so",
     FLAG_AT(reading_options, strict)},
    {"ids", 0, "LIST", "token ids such as 1,7,3,2, taken as they are; may be repeated", TEXTS_AT(reading_options, ids)},
    {"layers", 0, "LIST", "layers of the printed figure, counted from 0 (default 0); the page has all",
     TEXT_AT(report_options, layers)},
    {"heads", 0, "LIST", "heads of the printed figure (default 0); the page has all", TEXT_AT(report_options, heads)},
    {"tokens", 'n', "LIST", "lengths of the sweep (default 16-256*2)", PARSED_AT(report_options, lengths, parse_sizes)},
    {"sweep-layers", 0, "LIST", "numbers of layers of the other sweep (default 1 to all, at most 12 of them)",
     PARSED_AT(report_options, sweep_layers, parse_sizes)},
    {"reps", 0, "N", "samples a point of the sweeps (default 7)", SIZE_AT(report_options, reps, 1, 1000)},
    {"skip", 0, "LIST", "leave out some of latency,verify,receptive-field",
     PARSED_AT(report_options, skip, parse_skip)},
    ABLATE_OPTION,
    {"out", 'o', "FOLDER", "where everything goes (default report)", TEXTS_AT(common_options, outs),
     .role = OPTION_OUTPUT},
    {.name = NULL},
};

const command command_report = {
    .name = "report",
    .summary = "a page to explore in: attention of texts, latency, verification, receptive field",
    .arguments = "MODEL",
    .min_arguments = 1,
    .max_arguments = 1,
    .options = options,
    .size = sizeof(report_options),
    .defaults = &(const report_options){.layers = "0", .heads = "0", .lengths = "16-256*2", .reps = 7},
    .example = "  deberta report models/demo --text 'a new store opened beside the new mall' -o out/report\n"
               "  deberta report models/demo --file texts.txt --skip latency -o out/report\n"
               "  deberta report synthetic:v3-xsmall,vocab=1000 -o out/report\n",
    .run = run,
};
