/* `deberta eval` measures how often the sequence head is right on labelled texts or pairs of texts, or how often a
 * language model is right on minimal pairs.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/base/numbers.h"
#include "core/base/status.h"
#include "output/scope.h"
#include "program/commands.h"
#include "program/frame/figure_style.h"
#include "program/frame/input/label_numbers.h"
#include "program/frame/input/labelled_text.h"
#include "program/frame/open_model.h"
#include "program/frame/output_names.h"
#include "program/frame/same_files.h"
#include "program/tasks/eval_output.h"
#include "program/tasks/minimal_pairs.h"
#include "program/tasks/task_run.h"

/* ---------------------------------------------------------------------------------------- against another precision */

/* A text whose label the second model changes. Each text is encoded there alone, since bits do not depend on
 * batches. */

typedef struct label_change {
    const char *source; /* path of the file; owned by the stream */
    size_t line, index, found, expected;
} label_change;

/* The model in another precision, and a session for one text; zero if nothing is compared. */
typedef struct eval_against {
    const common_options *options;
    deberta_precision precision;
    deberta_model *model;
    deberta_session *session;
    size_t max_tokens, labels, texts, count, capacity;
    label_change *changes; /* [count] */
} eval_against;

/* Opens the model of the options in the other precision. */
static void eval_against_open(eval_against *against, const common_options *options, deberta_precision precision,
                              size_t labels)
{
    common_options other = *options;
    other.precision = (int)precision;
    *against = (eval_against){.options = options, .precision = precision, .labels = labels};
    against->model = open_model(&other);
}

/* Makes room for the tokens of the longest text so far. */
static deberta_status make_room(eval_against *against, size_t tokens, deberta_error *err)
{
    deberta_session_options options;
    if (against->session && tokens <= against->max_tokens) return DEBERTA_OK;
    deberta_session_free(&against->session);
    against->max_tokens = tokens < 256 ? 256 : 2 * tokens;
    fill_session_options(against->options, &options);
    options.max_tokens = against->max_tokens;
    return deberta_session_create(&against->session, against->model, &options, err);
}

static deberta_status find_label(eval_against *against, const deberta_tokens *tokens, size_t *label, deberta_error *err)
{
    const size_t starts[] = {0, tokens->count}, sequence = 0;
    const bool typed = deberta_model_describe(against->model)->token_types > 0;
    const deberta_batch batch = {.struct_size = sizeof batch,
                                 .ids = tokens->ids,
                                 .token_types = typed ? tokens->token_types : NULL,
                                 .sequence_starts = starts,
                                 .sequences = 1};
    deberta_outputs outputs = {.struct_size = sizeof outputs};
    DEBERTA_TRY(make_room(against, tokens->count, err));
    DEBERTA_TRY(deberta_encode(against->session, &batch, &outputs, err));
    float *logits = memory_take(against->labels, sizeof *logits);
    const deberta_status status =
        deberta_task_logits(against->session, DEBERTA_TASK_SEQUENCE, &sequence, 1, logits, against->labels, err);
    if (status == DEBERTA_OK) *label = logits_largest(logits, against->labels);
    free(logits);
    return status;
}

static void note_change(eval_against *against, const text_record *record, size_t found, size_t expected)
{
    against->changes = memory_grown(against->changes, &against->capacity, against->count + 1, sizeof *against->changes);
    against->changes[against->count++] = (label_change){record->source, record->line, record->index, found, expected};
}

/* Compares the label of one text; does nothing if the model is not open. */
static deberta_status eval_against_compare(eval_against *against, const task_text *text, size_t label,
                                           deberta_error *err)
{
    size_t expected = 0;
    if (!against->model) return DEBERTA_OK;
    DEBERTA_TRY(find_label(against, text->tokens, &expected, err));
    against->texts++;
    if (label != expected) note_change(against, &text->record, label, expected);
    return DEBERTA_OK;
}

static int by_place(const void *a, const void *b)
{
    const label_change *x = a, *y = b;
    return (x->index > y->index) - (x->index < y->index);
}

/* Adds the changed labels to the result, in the order of the texts. */
static void eval_against_tell(eval_against *against, result *r, const char *const *names)
{
    static const result_column columns[] = {{"file", NULL, COLUMN_TEXT, NULL, 0},
                                            {"line", NULL, COLUMN_INTEGER, NULL, 0},
                                            {"label", NULL, COLUMN_TEXT, NULL, 0},
                                            {"expected", "in the other precision", COLUMN_TEXT, NULL, 0},
                                            {.name = NULL}};
    if (!against->model) return;
    const char *precision = deberta_precision_name(against->precision);
    result_set(r, "against", json_string(precision));
    result_set(r, "changed", json_integer((json_int_t)against->count));
    result_say(r, "\n%zu of %zu labels are others than in %s", against->count, against->texts, precision);
    if (against->count) qsort(against->changes, against->count, sizeof *against->changes, by_place);
    result_table *table =
        result_add_table(r, "changes", "texts with another label, and theirs in the other precision", columns);
    for (size_t k = 0; k < against->count; k++) {
        const label_change *one = &against->changes[k];
        cell_text(table, "%s", one->source ? one->source : "");
        cell_integer(table, (int64_t)one->line);
        cell_text(table, "%s", names[one->found]);
        cell_text(table, "%s", names[one->expected]);
    }
}

static void eval_against_free(eval_against *against)
{
    deberta_session_free(&against->session);
    deberta_model_free(&against->model);
    free(against->changes);
    *against = (eval_against){0};
}

/* ------------------------------------------------------------------------------------------------------- evaluation */

static const char too_narrow[] = "each text counts twice, and the interval is narrower than these texts allow";

/* The way to measure heads that do not give a text one of several classes. */
static const char other_measures[] =
    "`deberta finetune choice|sequence|token|qa MODEL --examples F --eval F --steps 1 --learning-rate 0 -o FOLDER` "
    "measures choices, values, words and answers, and changes no weight";

enum { MOST_FILES = 64 };

typedef struct eval_options {
    reading_options reading; /* files: values of --minimal-pairs */
    int against, score, mlm_decoder;
    const char *pair_scores;
    figure_style style;
} eval_options;

typedef struct eval_job {
    eval_against against;
    output_paths paths;
    result_format format;
    eval_findings findings;
    label_numbers numbers;
    size_t files; /* number of files whose labels are settled */
    /* of the codes of each file, see label_numbers.h: [files][2 labels] their classes, [files][2 labels][labels] how
     * often the model gave which class */
    size_t *places, *counts;
} eval_job;

/* Settles the codes of all files before this one. */
static void settle_files(eval_job *job, size_t before)
{
    for (; job->files < before; job->files++)
        label_numbers_settle(&job->numbers, job->places + job->files * 2 * job->numbers.labels);
}

static deberta_status split(task_run *run, task_text *text, deberta_error *err)
{
    eval_job *job = run->context;
    label_numbers *numbers = &job->numbers;
    labelled_text found;
    deberta_status status = labelled_text_split(&found, &run->stream, &text->record, false, err);
    text->skipped = found.skipped;
    if (status == DEBERTA_OK && found.label && !text->record.problem) {
        const size_t file = run->stream.file_index - 1;
        size_t named = 0;
        bool mixed;
        settle_files(job, file);
        while (named < numbers->labels && strcmp(numbers->names[named], found.label) != 0) named++;
        const char *problem = label_numbers_take(numbers, found.label, named < numbers->labels ? named : SIZE_MAX,
                                                 text->record.line, &text->label, &mixed);
        text->label += file * 2 * numbers->labels;
        if (problem && !mixed) text_record_spoil(&text->record, "%s", problem);
        if (mixed) status = status_fail(err, DEBERTA_E_FORMAT, "%s: %s", text->record.source, problem);
    }
    labelled_text_free(&found);
    return status;
}

static deberta_status eval_describe(task_run *run, task_text *text, const float *logits, FILE *out, deberta_error *err)
{
    (void)out;
    eval_job *job = run->context;
    const size_t labels = job->numbers.labels, label = logits_largest(logits, labels);
    job->counts[text->label * labels + label]++;
    return eval_against_compare(&job->against, text, label, err);
}

static deberta_status eval_finish(task_run *run, FILE *out, deberta_error *err)
{
    eval_job *job = run->context;
    job->findings.bad = run->progress.bad;
    const size_t labels = job->numbers.labels, cells = 2 * labels * labels;
    settle_files(job, run->options->argument_count - 1);
    for (size_t cell = 0; cell < job->files * cells; cell++)
        if (job->counts[cell])
            job->findings.confusion.counts[job->places[cell / labels] * labels + cell % labels] += job->counts[cell];
    label_numbers_note(&job->numbers, "");
    if (confusion_score(&job->findings.confusion).texts == 0)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "none of the lines can be used; eval measures classes of texts: %s",
                     other_measures);
    result *r = eval_result(&job->findings);
    const char *precision = low_precision_name(run->options);
    if (precision) {
        result_set(r, "precision", json_string(precision));
        result_say(r, "\nlinear layers in %s", precision);
    }
    if (run->options->ablated.text) {
        result_set(r, "ablate", json_string(run->options->ablated.text));
        result_say(r, "\nablated: %s", run->options->ablated.text);
    }
    eval_against_tell(&job->against, r, job->findings.names);
    result_write(r, out, job->format);
    result_free(&r);
    return DEBERTA_OK;
}

static void eval_begin(task_run *run)
{
    eval_job *job = run->context;
    const size_t labels = run->batches.info.sequence_labels;
    run->out = job->paths.text;
    task_run_check_labels(run, labels);
    if (labels < 2)
        end_with(
            run->options, EXIT_INPUT,
            "%s: a head with one output is a regression or scores choices: 'deberta classify' gives its values, and %s",
            run->batches.info.name, other_measures);
    if (run->batches.info.problem > DEBERTA_PROBLEM_SINGLE_LABEL)
        end_with(run->options, EXIT_INPUT,
                 "%s: config.json says problem_type %s, expected one right label a text: accuracy and F1 are of those",
                 run->batches.info.name,
                 run->batches.info.problem == DEBERTA_PROBLEM_REGRESSION ? "regression" : "multi_label_classification");
    job->findings.confusion = (confusion){labels, options_take(run->options, labels * labels, sizeof(size_t))};
    const char **names = options_take(run->options, labels, sizeof *names);
    for (size_t k = 0; k < labels; k++) /* copied, because they are used after the model is closed */
        names[k] = options_text(run->options, "%s", task_run_label(run, k));
    job->findings.names = names;
    const size_t codes = (run->options->argument_count - 1) * 2 * labels;
    job->numbers = (label_numbers){.options = run->options, .names = names, .labels = labels};
    job->places = options_take(run->options, codes, sizeof *job->places);
    job->counts = options_take(run->options, codes * labels, sizeof *job->counts);
    const eval_options *o = (const eval_options *)run->options;
    if (option_given(run->options, &o->against))
        eval_against_open(&job->against, run->options, (deberta_precision)o->against, labels);
}

static void eval_draw(const common_options *options, const eval_job *job)
{
    const classification_score score = confusion_score(&job->findings.confusion);
    const char *title =
        options_text(options, "%s: accuracy %.1f %% (95 %%: %.1f to %.1f) of %zu text%s", options->arguments[0],
                     100 * score.accuracy, 100 * score.low, 100 * score.high, score.texts, score.texts == 1 ? "" : "s");
    const char *precision = low_precision_name(options);
    const char *note = precision ? options_text(options, "Linear layers in %s.", precision) : NULL;
    if (options->ablated.text)
        note = options_text(options, "%s%sAblated: %s.", note ? note : "", note ? " " : "", options->ablated.text);
    output_draw(options, &job->paths, DRAWING(eval_figure_draw), &job->findings,
                &((const eval_options *)options)->style, title, note);
}

static int run_pairs(const common_options *options)
{
    const eval_options *o = (const eval_options *)options;
    if (options->argument_count > 1)
        usage_wrong(options, "'%s': a file of labelled texts does not go with --minimal-pairs", options->arguments[1]);
    if (o->score == PAIR_SCORE_RTD && option_given(options, &o->mlm_decoder))
        option_wrong(options, &o->mlm_decoder, "--score rtd has no use for a decoder");
    output_paths paths;
    output_paths_read(options, NULL, &paths);
    if (paths.figure_count)
        usage_wrong(options, "--out: '%s' is a picture's name, and of minimal pairs there is none", paths.figures[0]);
    figure_style_refuse(options, &o->style, "changes a picture, and of minimal pairs there is none");
    check_output_name(&o->reading.common, &o->pair_scores, o->pair_scores, ".jsonl .ndjson .json .txt");
    same_files_note(options, o->reading.files.items, o->reading.files.count, too_narrow);
    const pair_request request = {
        .score = o->score, .mlm_decoder = &o->mlm_decoder, .text = paths.text, .scores = o->pair_scores};
    return minimal_pairs_run(&o->reading, &request);
}

static int run_labels(const common_options *options)
{
    static const task_command command = {.names = {.text = "text",
                                                   .pair = "pair",
                                                   .keeps_object = true,
                                                   .file_arguments = true,
                                                   .columns = true,
                                                   .also = {"label"}},
                                         .task = DEBERTA_TASK_SEQUENCE,
                                         .without_head = other_measures,
                                         .begin = eval_begin,
                                         .split = split,
                                         .describe = eval_describe,
                                         .silent = true,
                                         .finish = eval_finish};
    eval_job job = {0};
    const eval_options *o = (const eval_options *)options;
    if (option_given(options, &o->against) && o->against == options->precision)
        option_wrong(options, &o->against, "%s is the precision already: nothing can differ; expected another%s",
                     precision_choices[o->against],
                     option_given(options, &options->precision) ? " than that of --precision" : ", or --precision");
    same_files_note(options, options->arguments + 1, options->argument_count - 1, too_narrow);
    output_paths_read(options, &o->style, &job.paths);
    job.format = result_format_read(options);
    int status = task_run_all(options, &command, &job);
    /* Bad lines among good ones are reported, and the scores are printed; without any good line there is no
     * figure. */
    const bool some_bad =
        status == EXIT_INPUT && job.findings.bad && confusion_score(&job.findings.confusion).texts > 0;
    if (status == EXIT_OK || some_bad) eval_draw(options, &job);
    if (status == EXIT_OK && job.against.count) status = EXIT_CHECK_FAILED;
    eval_against_free(&job.against);
    return status;
}

static int eval_run(const common_options *options)
{
    const eval_options *o = (const eval_options *)options;
    if (o->reading.files.count) return run_pairs(options);
    if (options->argument_count < 2)
        usage_wrong(options, "expected %s, or --minimal-pairs FILE", options->command->arguments);
    return run_labels(options);
}

static const option labels[] = {
    {"against", 0, "NAME", "compare every label with that in this precision, list the others: exit 1 if there are any",
     CHOICE_AT(eval_options, against, precision_choices), .not_with = "minimal-pairs"},
    TEXT_BATCHES_OPTIONS,
    RESULT_FORMAT_OPTIONS,
    {.name = NULL},
};

static const option pairs[] = {
    {"minimal-pairs", 0, "FILE",
     "which sentence of a pair is likelier? Objects with \"sentence_good\", \"sentence_bad\", \"UID\"; may be repeated",
     TEXTS_AT(reading_options, files)},
    {"score", 0, "NAME",
     "of a sentence: pll, each token masked in turn (default), or rtd, by the head for replaced tokens",
     CHOICE_AT(eval_options, score, pair_score_names), .needs = "minimal-pairs"},
    {TASK_MLM_DECODER_ROW(eval_options), .needs = "minimal-pairs"},
    {"pair-scores", 0, "FILE", "the scores of both sentences of each pair as well, an object a line",
     TEXT_AT(eval_options, pair_scores), .needs = "minimal-pairs", .role = OPTION_OUTPUT},
    {.name = NULL},
};

static const option looks[] = {FIGURE_STYLE_ROWS(eval_options, style), {.name = NULL}};
static const option_group groups[] = {{labels, 0, NULL},
                                      {pairs, 0, "minimal pairs"},
                                      {looks, 0, "the picture, which minimal pairs have none of"},
                                      {NULL, 0, NULL}};

const command command_eval = {
    .name = "eval",
    .summary = "accuracy, F1 and confusions of the classifier on labelled texts or pairs; minimal pairs",
    .arguments = "MODEL FILE.tsv ...",
    .writes = WRITES_TABLE,
    .min_arguments = 1,
    .max_arguments = MOST_FILES,
    .groups = groups,
    .size = sizeof(eval_options),
    .most_outputs = OUTPUT_PATHS_MOST,
    .example =
        "  deberta eval models/demo docs/studies/data/books.tsv\n"
        "  deberta eval models/demo docs/studies/data/books.tsv --json -o scores.json -o scores.pdf\n"
        "  deberta eval models/demo --minimal-pairs minimal-pairs.jsonl --json\n"
        "\na line: label, tab, text, and for pairs another tab and the second text; the labels of a file are all "
        "names,\n"
        "or all numbers from 0. A first line that begins with \"label\" is a header; of a .jsonl file an object with\n"
        "\"label\", \"text\", \"pair\".\n"
        "A bad line is reported, the others go on, exit 3.\n"
        "\nminimal pairs, with --json: {\"score\", \"head\", \"pairs\", \"right\", \"accuracy\", \"interval\", "
        "\"ties\", "
        "\"bad\",\n"
        "  \"paradigms\": [{\"name\", \"pairs\", \"right\", \"accuracy\", \"low\", \"high\"}], \"terms\": the same by "
        "\"linguistics_term\"}\n",
    .run = eval_run,
    .without = "seed",
};
