/* `deberta report` writes a folder with an index.html to explore: attention of texts, receptive field, machine, and
 * on request latency and verification.
 *
 * It runs the other commands with the options that a user would type, and the page and commands.sh list exactly those
 * lines, so everything in the folder can be made again one by one.
 *
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/range.h"
#include "core/base/text.h"
#include "program/commands.h"
#include "program/frame/ablate.h"
#include "program/frame/input/input.h"
#include "program/frame/open_model.h"
#include "program/frame/text_output.h"
#include "program/frame/unfinished.h"
#include "program/report/explorer_steps.h"
#include "program/report/report_folder.h"

static void check_indices(const common_options *options, const char *const *list, size_t limit)
{
    if (*list) parse_index_list(options, list, options_take(options, limit, sizeof(bool)), limit);
}

static void check_sweep_layers(const explorer_job *job, const deberta_model_info *info)
{
    size_list list = {0};
    deberta_error error;
    if (!job->o->sweep_layers) return;
    if (range_parse(options_memory(job->options), &list, job->o->sweep_layers, "--depth", 1, info->layers, false,
                    &error) != DEBERTA_OK)
        usage_wrong(job->options, "%s; %s has %zu layer%s", error.message, info->name, info->layers,
                    info->layers == 1 ? "" : "s");
}

/* Checks the options that need the model, before the folder exists and minutes of work have passed. */
static void check_against_model(explorer_job *job)
{
    deberta_model *model = open_description(job->options);
    const deberta_model_info info = *deberta_model_describe(model);
    deberta_error error;
    job->layers = info.layers;
    job->has_relative_positions = info.relative_rows > 0;
    check_indices(job->options, &job->o->layers, info.layers);
    check_indices(job->options, &job->o->heads, info.heads);
    check_sweep_layers(job, &info);
    const deberta_status status = input_check(&job->input, &info, "--ids", &error);
    if (status == DEBERTA_E_ARGUMENT) usage_wrong(job->options, "%s", error.message);
    must(job->options, status, &error);
    deberta_model_free(&model);
}

/* Makes the folder and its parents, like mkdir -p. */
static void report_make_folder(explorer_job *job)
{
    const common_options *options = job->options;
    char *path = (char *)(uintptr_t)options_text(options, "%s", job->contents.folder);
    unfinished_hold(); /* until the folder is registered: a signal in between would leave it */
    for (char *at = path, end = '/'; end; at++) {
        end = *at;
        if (end && (end != '/' || at == path)) continue;
        struct stat about;
        *at = '\0';
        const int reason = mkdir(path, 0777) == 0 ? 0 : errno;
        if (reason && stat(path, &about) != 0)
            end_with(options, EXIT_SYSTEM, "%s: the folder cannot be made: %s", path, strerror(reason));
        if (reason && !S_ISDIR(about.st_mode)) end_with(options, EXIT_SYSTEM, "%s: is a file, expected a folder", path);
        if (!reason) made_files_add(&job->made, options_text(options, "%s", path));
        *at = end;
    }
    if (job->contents.is_alone) unfinished_add_folder(job->contents.folder);
    unfinished_add(NULL);
}

/* Chooses the folder. A page alone is made from a new folder next to it, which is removed afterwards. */
static void choose_place(explorer_job *job)
{
    explorer_contents *contents = &job->contents;
    const char *out = job->options->outs.count ? options_out(job->options) : "report";
    contents->is_alone = path_has_suffix(out, ".html") || path_has_suffix(out, ".htm");
    if (!contents->is_alone) {
        contents->folder = out;
        contents->page = options_text(job->options, "%s/index.html", out);
        return;
    }
    contents->page = out;
    contents->folder = options_text(job->options, "%s.parts", out);
    if (access(contents->folder, F_OK) == 0)
        end_with(job->options, EXIT_SYSTEM, "%s: is there already; the page is put together in a folder of that name",
                 contents->folder);
}

/* Reads a default input if the user gives none: a text if the model has a tokenizer, else ids. */
static void read_default(explorer_job *job)
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
    input_read(&reading, model, NULL, &job->input);
}

static void read_input(explorer_job *job)
{
    const reading_options *reading = &job->o->reading;
    if (reading->texts.count || reading->files.count || reading->ids.count) {
        input_read(reading, job->contents.model, NULL, &job->input);
    } else {
        input_refuse_text_options(reading, "");
        read_default(job);
    }
    if (job->input.rows > EXPLORER_MOST_TEXTS)
        usage_wrong(job->options, "a page holds at most %d texts, found %zu", EXPLORER_MOST_TEXTS, job->input.rows);
    job->contents.text_count = job->input.rows;
    for (size_t k = 0; k < job->input.rows; k++) {
        explorer_text *text = &job->texts[k];
        *text = (explorer_text){.input = &job->input, .row = k};
        text->data = options_text(job->options, "%s/text%zu.safetensors", job->contents.folder, k);
        text->figure = options_text(job->options, "%s/text%zu.png", job->contents.folder, k);
        text->attribution = options_text(job->options, "%s/attribution%zu.json", job->contents.folder, k);
        text->document = options_text(job->options, "%s/text%zu.pdf", job->contents.folder, k);
    }
}

static void write_commands(explorer_job *job)
{
    text_output output;
    const char *path = options_text(job->options, "%s/commands.sh", job->contents.folder);
    made_files_expect(&job->made, path);
    text_output_open(job->options, path, &output);
    fputs(REPORT_COMMANDS_HEAD " Where\n# deberta is not on the PATH: DEBERTA=build/deberta sh commands.sh\nset -e\n"
                               "deberta() { command \"${DEBERTA:-deberta}\" \"$@\"; }\n",
          output.file);
    for (size_t k = 0; k < job->contents.step_count; k++) fprintf(output.file, "%s\n", job->steps[k].command);
    text_output_close(job->options, &output);
}

typedef struct report_end {
    end_hook hook; /* first member */
    made_files *made;
} report_end;

/* Removes everything of a report that cannot be finished. */
static int take_away(end_hook *hook, int status)
{
    made_files_remove(((report_end *)hook)->made);
    return status;
}

static void run_job(explorer_job *job)
{
    report_end end = {.hook.call = take_away, .made = &job->made};
    const char *earlier = NULL;
    check_model_place(job->options);
    live_parts_find(job->options, &job->contents.live);
    choose_place(job);
    if (!job->contents.is_alone) earlier = report_folder_check(job->options, job->contents.folder);
    read_input(job);
    check_against_model(job);
    end_hook_add(&end.hook);
    report_make_folder(job);
    explorer_steps_run(job);
    if (!job->contents.is_alone) write_commands(job);
    explorer_page_write(job->options, &job->contents);
    if (!job->contents.is_alone) report_folder_clean(job->options, job->contents.folder, earlier);
    end_hook_drop(&end.hook);
    if (job->contents.is_alone) unfinished_release_folder(); /* the folder was temporary */
    say_note(job->options, "report: %s", job->contents.page);
}

static int report_run(const common_options *options)
{
    const report_options *o = (const report_options *)options;
    explorer_job job = {.o = o, .options = options, .contents = {.model = options->arguments[0], .live = o->live}};
    job.contents.command = options_command_line(options, true);
    bool failed = false;
    job.contents.texts = job.texts;
    job.contents.steps = job.steps;
    run_job(&job);
    for (size_t k = 0; k < job.contents.step_count; k++) failed = failed || job.steps[k].failed;
    input_free(&job.input);
    return failed ? EXIT_CHECK_FAILED : EXIT_OK;
}

/* Keeps the text of a list of sizes. It is parsed here only to be checked, since an error should not show after
 * minutes. */
static void parse_sizes(common_options *options, const char *text, void *target)
{
    size_list list = {0};
    deberta_error error;
    char name[24];
    snprintf(name, sizeof name, "--%s", option_name(options, target));
    *(const char **)target = text;
    if (range_parse(options_memory(options), &list, text, name, 1, 1 << 24, false, &error) != DEBERTA_OK)
        usage_wrong(options, "%s", error.message);
}

static const char *const part_names[] = {[PART_LATENCY] = "latency",
                                         [PART_VERIFY] = "verify",
                                         [PART_RECEPTIVE_FIELD] = "receptive-field",
                                         [PART_COUNT] = NULL};
static const char *const measured_names[] = {[PART_LATENCY] = "latency", [PART_VERIFY] = "verify", NULL};

/* Fills report_options.parts. */
static void parse_parts(common_options *options, const char *text, part_choice *parts, part_choice choice,
                        const char *const *names)
{
    int length;
    unsigned chosen;
    const char *wrong = options_names_read(text, names, &chosen, &length);
    if (wrong)
        usage_wrong(options, "--%s: expected some of latency,verify%s, found '%.*s'",
                    choice == PART_ASKED_FOR ? "with" : "skip", names == part_names ? ",receptive-field" : "", length,
                    wrong);
    for (size_t k = 0; k < PART_COUNT; k++)
        if (chosen >> k & 1) parts[k] = choice;
}

static void parse_with(common_options *options, const char *text, void *target)
{
    parse_parts(options, text, target, PART_ASKED_FOR, measured_names);
}

static void parse_skip(common_options *options, const char *text, void *target)
{
    parse_parts(options, text, target, PART_LEFT_OUT, part_names);
}

static const option options[] = {
    {"text", 0, "TEXT", "what to look into; may be repeated", TEXTS_AT(reading_options, texts)},
    {"pair", 0, "TEXT", "second segment of the text of the same number; an empty one is a segment",
     TEXTS_AT(reading_options, pairs)},
    {"file", 'f', "FILE", "texts, one a line, or objects (.jsonl); - is standard input",
     TEXTS_AT(reading_options, files)},
    {"max-tokens", 0, "N", "cut longer texts to N tokens, frame included",
     PARSED_AT(reading_options, max_tokens, token_limit_parse)},
    {"strict", 0, NULL, "refuse broken UTF-8 instead of replacing it by U+FFFD and saying so",
     FLAG_AT(reading_options, strict)},
    {"ids", 0, "LIST", "token ids such as 1,7,3,2, taken as they are; may be repeated", TEXTS_AT(reading_options, ids)},
    {"layers", 0, "LIST",
     "layers of the printed figure, counted from 0 (default 0, without --heads that of the head which the page opens "
     "on)",
     TEXT_AT(report_options, layers)},
    {"heads", 0, "LIST", "heads of the printed figure, in the same way; the page has all",
     TEXT_AT(report_options, heads)},
    {"with", 0, "LIST",
     "also measure latency (sweeps of lengths and layers, ten seconds or more) or verify the numbers against float64: "
     "latency,verify",
     PARSED_AT(report_options, parts, parse_with), .adds_up = true, .choices = measured_names},
    {"tokens", 'n', "LIST", "lengths of the sweep (default 16-256*2); asks for latency, as --depth and --reps do",
     PARSED_AT(report_options, lengths, parse_sizes)},
    {"depth", 0, "LIST", "numbers of layers of the other sweep (default 1 to all, at most 12 of them)",
     PARSED_AT(report_options, sweep_layers, parse_sizes)},
    {"reps", 0, "N", "samples a point of the sweeps (default 7)", SIZE_AT(report_options, reps, 1, 1000)},
    {"skip", 0, "LIST", "leave out some of latency,verify,receptive-field; of --with and --skip the last decides",
     PARSED_AT(report_options, parts, parse_skip), .adds_up = true, .choices = part_names},
#if HAVE_VIZ
    {"training-log", 0, "RUN", "show this run of training, a folder or its log.jsonl (default: that beside the model)",
     TEXT_AT(report_options, training_log)},
#endif
    ABLATE_OPTION,
    {"live", 0, NULL, "the page computes sentences that are typed into it, in the browser",
     FLAG_AT(report_options, live.wanted), .not_with = "ablate max-tokens reference"},
    {"no-model", 0, NULL, "leave the model out of the page: the reader opens its folder",
     FLAG_AT(report_options, live.without_model), .needs = "live"},
    {"modules", 0, "DIR", "where the page's WebAssembly is (default: where ./build.sh wasm puts it)",
     TEXT_AT(report_options, live.modules), .needs = "live"},
    {"out", 'o', "PATH", "the folder where everything goes (default report), or one page.html alone",
     TEXTS_AT(common_options, outs), .role = OPTION_OUTPUT},
    {.name = NULL},
};

const command command_report = {
    .name = "report",
    .summary = "a page to explore in: attention of texts, what the model answers, receptive field, latency",
    .arguments = "MODEL",
    .writes = WRITES_PAGE,
    .options = options,
    .size = sizeof(report_options),
    .defaults = &(const report_options){.lengths = "16-256*2", .reps = 7},
    .example = "  deberta report models/demo --text 'a new store opened beside the new mall' -o out/report\n"
               "  deberta report models/demo --file texts.txt --with verify -o out/report\n"
               "  deberta report models/demo --live -o page.html\n"
               "  deberta report synthetic:v3-xsmall,vocab=1000 -o out/report\n",
    .run = report_run,
    .without = "json",
};
