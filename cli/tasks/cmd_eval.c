/* `deberta eval`: how often the sequence head is right about labelled texts or pairs of texts.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/tasks/eval_output.h"
#include "cli/tasks/task_run.h"
#include "command/text_output.h"
#include "command/output_paths.h"
#include "command/result_output.h"
#include "core/base/status.h"

enum { MOST_FILES = 64 };

typedef struct eval_job {
    output_paths paths;
    result_format format;
    eval_findings findings;
} eval_job;

/* By name or, where no label has that name, by number. SIZE_MAX: neither. */
static size_t find_label(const eval_findings *findings, const char *text)
{
    char *end;
    for (size_t k = 0; k < findings->confusion.labels; k++)
        if (strcmp(findings->names[k], text) == 0) return k;
    if (*text < '0' || *text > '9') return SIZE_MAX;
    const unsigned long long number = strtoull(text, &end, 10);
    return *end || number >= findings->confusion.labels ? SIZE_MAX : (size_t)number;
}

/* The line is label, tab, text, perhaps tab and second text. A first line whose label is "label" names the columns. */
static deberta_status split(task_run *run, task_text *text, deberta_error *err)
{
    const eval_job *job = run->context;
    text_record *record = &text->record;
    if (record->problem) return DEBERTA_OK;
    char *line = record->text, *tab = memchr(line, '\t', record->text_bytes);
    const size_t label_bytes = tab ? (size_t)(tab - line) : record->text_bytes;
    text->skipped =
        record->text_bytes == 0 || (record->line == 1 && label_bytes == 5 && strncmp(line, "label", 5) == 0);
    if (text->skipped) return DEBERTA_OK;
    if (!tab) return text_record_spoil(record, err, "expected a label, a tab and a text, found no tab");
    *tab = 0;
    text->label = find_label(&job->findings, line);
    if (text->label == SIZE_MAX)
        return text_record_spoil(record, err, "the model has no label '%.80s', expected a name or 0 to %zu", line,
                                 job->findings.confusion.labels - 1);
    const size_t begin = label_bytes + 1, left = record->text_bytes - begin;
    char *second = memchr(line + begin, '\t', left);
    const size_t bytes = second ? (size_t)(second - line) - begin : left;
    if (bytes == 0) return text_record_spoil(record, err, "the text is empty");
    if (second && memchr(second + 1, '\t', left - bytes - 1))
        return text_record_spoil(record, err, "expected a label, a text and perhaps a second text, found more fields");
    if (second) {
        record->pair_bytes = left - bytes - 1;
        if (!(record->pair = malloc(record->pair_bytes + 1))) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
        memcpy(record->pair, second + 1, record->pair_bytes + 1);
    }
    memmove(line, line + begin, bytes);
    line[bytes] = 0;
    record->text_bytes = bytes;
    return DEBERTA_OK;
}

static deberta_status describe(task_run *run, task_text *text, const float *logits, deberta_error *err)
{
    (void)err;
    confusion *c = &((eval_job *)run->context)->findings.confusion;
    size_t best = 0;
    for (size_t label = 1; label < c->labels; label++)
        if (logits[label] > logits[best]) best = label;
    confusion_add(c, text->label, best);
    return DEBERTA_OK;
}

static deberta_status finish(task_run *run, FILE *out, deberta_error *err)
{
    eval_job *job = run->context;
    job->findings.bad = run->bad;
    if (confusion_score(&job->findings.confusion).texts == 0)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "none of the lines can be used");
    result *r = eval_result(&job->findings);
    const deberta_status status = result_write(r, out, job->format, err);
    result_free(&r);
    return status;
}

static int begin(task_run *run)
{
    eval_job *job = run->context;
    deberta_error error = {0};
    const size_t labels = run->batches.info.sequence_labels;
    run->out = job->paths.text;
    const int status = task_run_check_labels(run, labels);
    if (status != EXIT_OK) return status;
    if (labels < 2)
        status_fail(&error, DEBERTA_E_UNSUPPORTED, "%s: a head with one output is a regression, not a classifier",
                    run->batches.info.name);
    if (labels < 2 || confusion_create(&job->findings.confusion, labels, &error) != DEBERTA_OK)
        return say_error(run->options, &error);
    const char **names = options_take(run->options, labels, sizeof *names);
    char buffer[32];
    for (size_t k = 0; k < labels; k++) /* they outlive the model */
        names[k] = options_text(run->options, "%s", task_run_label(run->batches.model, k, buffer));
    job->findings.names = names;
    return EXIT_OK;
}

static int draw(const common_options *options, const eval_job *job)
{
    const classification_score score = confusion_score(&job->findings.confusion);
    const char *title =
        options_text(options, "%s: accuracy %.1f %% (95 %%: %.1f to %.1f) of %zu texts", options->arguments[0],
                     100 * score.accuracy, 100 * score.low, 100 * score.high, score.texts);
    return output_draw(options, job->paths.figures, job->paths.figure_count, DRAWING(eval_figure_draw), &job->findings,
                       &(const figure_style){.title = title});
}

static bool check_files(const common_options *options)
{
    for (size_t k = 1; k < options->argument_count; k++) {
        if (!text_stream_is_jsonl(options->arguments[k])) continue;
        say_usage(options, "'%s': expected lines of label, tab, text", options->arguments[k]);
        return false;
    }
    return true;
}

static int run(const common_options *options)
{
    static const task_command command = {.names = {.text = "text", .file_arguments = true},
                                         .task = DEBERTA_TASK_SEQUENCE,
                                         .begin = begin,
                                         .split = split,
                                         .describe = describe,
                                         .finish = finish};
    eval_job job = {0};
    if (!output_paths_read(options, &job.paths) || !result_format_read(options, &job.format) || !check_files(options))
        return EXIT_USAGE;
    int status = task_run_all(options, &command, &job);
    /* Bad lines among good ones are reported and the scores stand; without any good one there is nothing to draw. */
    const bool some_bad =
        status == EXIT_INPUT && job.findings.bad && confusion_score(&job.findings.confusion).texts > 0;
    if (status == EXIT_OK || some_bad) {
        const int drawn = draw(options, &job);
        if (drawn != EXIT_OK) status = drawn;
    }
    confusion_free(&job.findings.confusion);
    return status;
}

static const option options[] = {
    TEXT_BATCHES_OPTIONS,
    RESULT_FORMAT_OPTIONS,
    {.name = NULL},
};

const command command_eval = {
    .name = "eval",
    .summary = "accuracy, F1 and confusions of the classifier on labelled texts or pairs",
    .arguments = "MODEL FILE.tsv ...",
    .min_arguments = 2,
    .max_arguments = MOST_FILES,
    .options = options,
    .size = sizeof(reading_options),
    .most_outputs = OUTPUT_PATHS_MOST,
    .example =
        "  deberta eval models/demo docs/studies/data/books.tsv\n"
        "  deberta eval models/demo docs/studies/data/books.tsv --json -o scores.json -o scores.pdf\n"
        "\na line: label (its name or its number), tab, text, and for pairs another tab and the second text;\n"
        "a first line that begins with \"label\" is a header. A bad line is reported, the others go on, exit 3.\n",
    .run = run,
};
