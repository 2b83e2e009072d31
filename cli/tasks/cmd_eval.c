/* `deberta eval`: how often the sequence head is right about labelled texts or pairs of texts.
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/tasks/eval_output.h"
#include "cli/tasks/task_run.h"
#include "command/text_output.h"
#include "command/output_paths.h"
#include "core/base/status.h"

enum { MOST_FILES = 64, LABEL_BYTES = 32 };

typedef struct eval_job {
    output_paths paths;
    result_format format;
    eval_findings findings;
    char (*made_up)[LABEL_BYTES]; /* names of labels that have none */
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

static deberta_status answer(task_run *run, const task_batch *batch, deberta_error *err)
{
    eval_job *job = run->context;
    const size_t labels = job->findings.confusion.labels;
    size_t *sequences = malloc(batch->count * sizeof *sequences);
    float *logits = malloc(batch->count * labels * sizeof *logits);
    deberta_status status = sequences && logits ? DEBERTA_OK : status_fail(err, DEBERTA_E_MEMORY, "out of memory");
    for (size_t k = 0; status == DEBERTA_OK && k < batch->count; k++) sequences[k] = k;
    if (status == DEBERTA_OK)
        status = task_run_logits(batch, DEBERTA_TASK_SEQUENCE, sequences, batch->count, logits, err);
    for (size_t k = 0; status == DEBERTA_OK && k < batch->count; k++) {
        size_t best = 0;
        for (size_t label = 1; label < labels; label++)
            if (logits[k * labels + label] > logits[k * labels + best]) best = label;
        confusion_add(&job->findings.confusion, batch->texts[k]->label, best);
    }
    free(sequences);
    free(logits);
    return status;
}

static deberta_status finish(task_run *run, FILE *out, deberta_error *err)
{
    eval_job *job = run->context;
    job->findings.bad = run->bad;
    if (confusion_score(&job->findings.confusion).texts == 0)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "none of the lines can be used");
    const bool fits = job->format == RESULT_JSON ? write_json(out, eval_json(&job->findings))
                                                 : eval_print(&job->findings, out, job->format);
    if (!fits) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    return DEBERTA_OK;
}

static int make_labels(eval_job *job, const task_run *run)
{
    deberta_error error = {0};
    const size_t labels = run->batches.info.sequence_labels;
    if (labels < 2) {
        status_fail(&error, DEBERTA_E_UNSUPPORTED, "%s: a head with one output is a regression, not a classifier",
                    run->batches.info.name);
        return say_error(run->options, &error);
    }
    const char **names = calloc(labels, sizeof *names);
    job->findings.names = names;
    job->made_up = calloc(labels, sizeof *job->made_up);
    if (!names || !job->made_up) status_fail(&error, DEBERTA_E_MEMORY, "out of memory");
    if (!names || !job->made_up || confusion_create(&job->findings.confusion, labels, &error) != DEBERTA_OK)
        return say_error(run->options, &error);
    for (size_t k = 0; k < labels; k++) names[k] = task_run_label(run->batches.model, k, job->made_up[k]);
    return EXIT_OK;
}

#if HAVE_VIZ
static deberta_status draw(const void *what, const figure_style *style, const char *const *paths, size_t path_count,
                           deberta_error *err)
{
    return eval_figure_draw(what, style, paths, path_count, err);
}

static int draw_findings(const task_run *run, const eval_job *job)
{
    char title[300];
    const classification_score score = confusion_score(&job->findings.confusion);
    snprintf(title, sizeof title, "%s: accuracy %.1f %% (95 %%: %.1f to %.1f) of %zu texts", run->batches.info.name,
             100 * score.accuracy, 100 * score.low, 100 * score.high, score.texts);
    return output_paths_draw(run->options, &job->paths, draw, &job->findings, title, NULL);
}
#else
static int draw_findings(const task_run *run, const eval_job *job)
{
    (void)run, (void)job;
    return EXIT_OK;
}
#endif

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
    static const task_command command = {
        .names = {.text = "text", .file_arguments = true}, .split = split, .answer = answer, .finish = finish};
    eval_job job = {0};
    task_run run;
    if (!output_paths_read(options, &job.paths) || !result_format_read(options, &job.format) || !check_files(options))
        return EXIT_USAGE;
    int status = task_run_open(&run, reading_of(options), 0);
    run.out = job.paths.text;
    if (status == EXIT_OK) status = task_run_require(&run, DEBERTA_TASK_SEQUENCE);
    if (status == EXIT_OK) status = task_run_check_labels(&run, run.batches.info.sequence_labels);
    if (status == EXIT_OK) status = make_labels(&job, &run);
    if (status == EXIT_OK) status = task_run_all(&run, &command, &job);
    /* Bad lines among good ones are reported and the scores stand; without any good one there is nothing to draw. */
    const bool some_bad =
        status == EXIT_INPUT && job.findings.bad && confusion_score(&job.findings.confusion).texts > 0;
    if (status == EXIT_OK || some_bad) {
        const int drawn = draw_findings(&run, &job);
        if (drawn != EXIT_OK) status = drawn;
    }
    confusion_free(&job.findings.confusion);
    free((void *)job.findings.names);
    free(job.made_up);
    task_run_close(&run);
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
