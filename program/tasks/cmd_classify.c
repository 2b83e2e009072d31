/* `deberta classify` assigns classes to texts or pairs of texts by the sequence head, or selects the best of several
 * choices.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"
#include "output/shown_text.h"
#include "program/commands.h"
#include "program/frame/input/input.h"
#include "program/tasks/task_run.h"

enum { MOST_LABELS = 1 << 20 };

typedef struct classify_options {
    reading_options reading;
    text_list choices;
    bool multi_label; /* true: each label has a probability of its own */
    size_t top;
} classify_options;

/* State of a run without --choice. */
typedef struct classify_state {
    bool chooses; /* true: the model is one for multiple choice, and nobody was told yet that a text has no choices */
} classify_state;

static void classify_begin(task_run *run)
{
    classify_state *state = run->context;
    task_run_check_labels(run, run->batches.info.sequence_labels);
    state->chooses = task_run_chooses(run);
}

/* Notes, once, that a score of a model for multiple choice says nothing alone. */
static void tell_no_choices(const task_run *run)
{
    classify_state *state = run->context;
    if (state->chooses)
        say_note(run->options,
                 "note: %s is a model for multiple choice (architectures of config.json): a score says something only "
                 "beside those of other choices, which --choice and \"choices\" of an object give",
                 run->batches.info.name);
    state->chooses = false;
}

/* Returns the kind of problem by the model's configuration, unless --multi-label sets it. */
static deberta_problem problem_of(const task_run *run)
{
    const classify_options *o = (const classify_options *)run->options;
    return o->multi_label ? DEBERTA_PROBLEM_MULTI_LABEL : run->batches.info.problem;
}

static void show_texts(FILE *out, const text_record *record)
{
    print_clean(out, record->text, record->text_bytes);
    if (record->pair) {
        fputs("\n+ ", out);
        print_clean(out, record->pair, record->pair_bytes);
    }
    fputc('\n', out);
}

/* ----------------------------------------------------------------------------------------------------------- classes */

typedef struct text_class {
    const char *label;
    size_t index;
    double value; /* probability, or value of a regression */
} text_class;

/* Finds the classes with the largest values. */
static size_t find_classes(task_run *run, const float *logits, text_class **classes)
{
    const classify_options *o = (const classify_options *)run->options;
    const size_t labels = run->batches.info.sequence_labels;
    const deberta_problem problem = problem_of(run);
    double *values = options_take(run->options, labels, sizeof *values);
    size_t *chosen;
    deberta_softmax(values, logits, labels);
    for (size_t k = 0; problem == DEBERTA_PROBLEM_MULTI_LABEL && k < labels; k++)
        values[k] = deberta_sigmoid(logits[k]);
    for (size_t k = 0; problem == DEBERTA_PROBLEM_REGRESSION && k < labels; k++) values[k] = logits[k];
    const size_t count = task_run_choose(run, o->top, values, labels, &chosen);
    *classes = options_take(run->options, count, sizeof **classes);
    for (size_t k = 0; k < count; k++)
        (*classes)[k] = (text_class){task_run_label(run, chosen[k]), chosen[k], values[chosen[k]]};
    return count;
}

static json_t *describe_classes(const text_class *classes, size_t count, const char *value)
{
    json_t *labels = json_array();
    for (size_t k = 0; k < count; k++)
        json_array_append_new(labels, json_pack("{s:o, s:I, s:f}", "label", json_clean_text(classes[k].label), "index",
                                                (json_int_t)classes[k].index, value, classes[k].value));
    return json_pack("{s:o}", "labels", labels);
}

static void show_classes(FILE *out, const text_class *classes, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        print_probability(out, classes[k].value, classes[k].label);
        fputc('\n', out);
    }
}

/* Describes the answer of a classifier with a single output: its value and, unless it is a regression, its sigmoid. */
static void describe_single(task_text *text, double score, bool is_value, FILE *out)
{
    const double probability = deberta_sigmoid(score);
    if (!out && is_value) text->answer = json_pack("{s:f}", "score", score);
    if (!out && !is_value) text->answer = json_pack("{s:f, s:f}", "score", score, "probability", probability);
    if (out && is_value) fprintf(out, "  %.3f  (score)\n", score);
    if (out && !is_value) fprintf(out, "  %.3f  (score; as a probability %.3f)\n", score, probability);
}

/* Turns one row of logits into an answer. */
static deberta_status classify_describe(task_run *run, task_text *text, const float *logits, FILE *out,
                                        deberta_error *err)
{
    (void)err;
    const deberta_problem problem = problem_of(run);
    const bool regression = problem == DEBERTA_PROBLEM_REGRESSION;
    tell_no_choices(run);
    if (out) show_texts(out, &text->record);
    if (run->batches.info.sequence_labels == 1 && problem != DEBERTA_PROBLEM_MULTI_LABEL) {
        describe_single(text, (double)logits[0], regression, out);
        return DEBERTA_OK;
    }
    text_class *classes = NULL;
    const size_t count = find_classes(run, logits, &classes);
    if (out)
        show_classes(out, classes, count);
    else
        text->answer = describe_classes(classes, count, regression ? "score" : "probability");
    return DEBERTA_OK;
}

/* ----------------------------------------------------------------------------------------------------------- choices */

/* The choices of a text. A classifier with one output scores each as the second segment of the text; the softmax over
 * the choices gives their probabilities (SPEC 8.5). */
typedef struct choice_job {
    const char *const *choices; /* [count] */
    size_t count, top;
    deberta_tokens **tokens; /* [count] tokens of the current text with each choice */
    text_piece *pieces;      /* [count] */
    float *scores;           /* [count] */
    double *probabilities;   /* [count] */
    task_run *run;
} choice_job;

/* Tokenizes a choice; one that this model cannot take is a problem of the text. */
static deberta_status tokenize_choice(choice_job *job, text_record *record, size_t choice, deberta_error *err)
{
    text_batches *batches = &job->run->batches;
    text_record one = {.text = record->text,
                       .text_bytes = record->text_bytes,
                       .pair = (char *)job->choices[choice],
                       .pair_bytes = strlen(job->choices[choice]),
                       .source = record->source,
                       .line = record->line};
    deberta_status status = text_batches_tokenize(batches, &one, &job->tokens[choice], err);
    const deberta_tokens *tokens = job->tokens[choice];
    if (status == DEBERTA_OK && !one.problem)
        status = text_batches_check_length(batches, &one, tokens->count, batches->longest, err);
    if (status == DEBERTA_OK && one.problem)
        status = text_record_spoil(record, "with choice %zu: %s", choice, one.problem);
    const bool usable = status == DEBERTA_OK && !one.problem;
    free(one.problem);
    if (!usable) return status; /* there may be no tokens */
    if (input_segment_is_empty(tokens, 1)) {
        char empty[48];
        snprintf(empty, sizeof empty, "choice %zu is empty", choice);
        text_batches_note_empty(batches, record, empty);
    }
    job->pieces[choice] =
        (text_piece){.ids = tokens->ids, .types = tokens->token_types, .tokens = tokens->count, .index = choice};
    return DEBERTA_OK;
}

static deberta_status keep_scores(void *context, const text_piece *pieces, size_t count, const size_t *starts,
                                  const deberta_outputs *outputs, deberta_error *err)
{
    (void)outputs;
    choice_job *job = context;
    const text_batches *batches = &job->run->batches;
    const task_batch batch = {.session = batches->session, .model = batches->model, .count = count, .starts = starts};
    struct scope_piece *mark = options_mark(job->run->options);
    size_t *positions = options_take(job->run->options, count, sizeof *positions);
    float *scores = options_take(job->run->options, count, sizeof *scores);
    for (size_t k = 0; k < count; k++) positions[k] = k;
    const deberta_status status = task_run_logits(&batch, DEBERTA_TASK_SEQUENCE, positions, count, scores, err);
    for (size_t k = 0; status == DEBERTA_OK && k < count; k++) job->scores[pieces[k].index] = scores[k];
    options_release(job->run->options, mark);
    return status;
}

static json_t *describe_choices(const choice_job *job, const size_t *chosen, size_t count)
{
    json_t *choices = json_array();
    for (size_t k = 0; k < count; k++) {
        const size_t choice = chosen[k];
        json_array_append_new(choices,
                              json_pack("{s:o, s:I, s:f, s:f}", "choice", json_clean_text(job->choices[choice]),
                                        "index", (json_int_t)choice, "score", (double)job->scores[choice],
                                        "probability", job->probabilities[choice]));
    }
    return json_pack("{s:o}", "choices", choices);
}

static void show_choices(FILE *out, const choice_job *job, const size_t *chosen, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        print_probability(out, job->probabilities[chosen[k]], job->choices[chosen[k]]);
        fputc('\n', out);
    }
}

static void answer_choices(const choice_job *job, task_text *text, FILE *out)
{
    size_t *chosen;
    deberta_softmax(job->probabilities, job->scores, job->count);
    const size_t count = task_run_choose(job->run, job->top, job->probabilities, job->count, &chosen);
    if (!out) {
        text->answer = describe_choices(job, chosen, count);
        return;
    }
    print_clean(out, text->record.text, text->record.text_bytes);
    fputc('\n', out);
    show_choices(out, job, chosen, count);
}

/* Answers a text itself, because one text is several sequences. */
static deberta_status choose(choice_job *job, task_text *text, deberta_error *err)
{
    task_run *run = job->run;
    FILE *out;
    for (size_t k = 0; k < job->count && !text->record.problem; k++)
        DEBERTA_TRY(tokenize_choice(job, &text->record, k, err));
    if (text->record.problem) return DEBERTA_OK;
    struct scope_piece *mark = options_mark(run->options);
    deberta_status status = text_batches_run(&run->batches, job->pieces, job->count, keep_scores, job, err);
    if (status == DEBERTA_OK) task_text_out(run, text, &out);
    if (status == DEBERTA_OK) answer_choices(job, text, out);
    options_release(run->options, mark);
    return status;
}

static choice_job choice_job_make(const common_options *options, const char *const *choices, size_t count, size_t top)
{
    choice_job job = {.choices = choices, .count = count, .top = top};
    job.tokens = options_take(options, count, sizeof *job.tokens);
    job.pieces = options_take(options, count, sizeof *job.pieces);
    job.scores = options_take(options, count, sizeof *job.scores);
    job.probabilities = options_take(options, count, sizeof *job.probabilities);
    return job;
}

static void choice_job_free(choice_job *job)
{
    for (size_t k = 0; k < job->count; k++) deberta_tokens_free(&job->tokens[k]);
}

/* Reads the choices of an object; returns what is wrong with them, or NULL. */
static const char *read_choices(const json_t *array, const char **choices)
{
    if (json_array_size(array) < 2) return "\"choices\" is not an array of two or more texts";
    for (size_t k = 0; k < json_array_size(array); k++) {
        const json_t *choice = json_array_get(array, k);
        choices[k] = json_string_value(choice);
        if (!choices[k]) return "\"choices\" is not an array of two or more texts";
        if (strlen(choices[k]) < json_string_length(choice)) return "one of \"choices\" holds the character NUL";
    }
    return NULL;
}

/* Answers an object with choices of its own; other texts are left to the batches. */
static deberta_status look_for_choices(task_run *run, task_text *text, deberta_error *err)
{
    const classify_options *o = (const classify_options *)run->options;
    const json_t *array = json_object_get(text->record.object, "choices");
    if (!array || json_is_null(array)) return DEBERTA_OK;
    if (run->batches.info.sequence_labels != 1)
        return text_record_spoil(&text->record,
                                 "\"choices\" need a classifier with a single output, and this one has %zu",
                                 run->batches.info.sequence_labels);
    if (text->record.pair || o->multi_label)
        return text_record_spoil(&text->record, "\"choices\" take the place of %s, give one of them",
                                 text->record.pair ? "a pair" : "--multi-label");
    struct scope_piece *mark = options_mark(run->options);
    const size_t count = json_array_size(array);
    const char **choices = options_take(run->options, count + 1, sizeof *choices);
    const char *problem = read_choices(array, choices);
    deberta_status status = DEBERTA_OK;
    if (problem) {
        text_record_spoil(&text->record, "%s", problem);
    } else {
        choice_job job = choice_job_make(run->options, choices, count, o->top);
        job.run = run;
        status = choose(&job, text, err);
        choice_job_free(&job);
    }
    options_release(run->options, mark);
    return status;
}

static deberta_status look(task_run *run, task_text *text, deberta_error *err)
{
    return choose(run->context, text, err);
}

static void begin_choices(task_run *run)
{
    choice_job *job = run->context;
    const deberta_model_info *info = &run->batches.info;
    task_require(run->options, &run->batches, DEBERTA_TASK_SEQUENCE, NULL);
    job->run = run;
    run->batches.session_options.features |= DEBERTA_ONLY_HEADS;
    if (info->sequence_labels != 1)
        end_with(run->options, EXIT_INPUT,
                 "%s: its classifier has %zu outputs; --choice needs one with a single output, as models for multiple "
                 "choice have",
                 info->name, info->sequence_labels);
}

static int run_choices(const common_options *options, const text_list *choices, size_t top)
{
    static const task_command command = {
        .names = {.text = "text"}, .begin = begin_choices, .look = look, .answers_alone = true};
    choice_job job = choice_job_make(options, choices->items, choices->count, top);
    const int status = task_run_all(options, &command, &job);
    choice_job_free(&job);
    return status;
}

/* -------------------------------------------------------------------------------------------------------- the command */

static int classify_run(const common_options *options)
{
    const classify_options *o = (const classify_options *)options;
    static const task_command command = {
        .names = {.text = "text", .pair = "pair", .keeps_object = true, .also = {"choices"}},
        .task = DEBERTA_TASK_SEQUENCE,
        .begin = classify_begin,
        .look = look_for_choices,
        .describe = classify_describe};
    if (o->choices.count == 1) option_wrong(options, &o->choices, "give at least two");
    return o->choices.count ? run_choices(options, &o->choices, o->top)
                            : task_run_all(options, &command, &(classify_state){0});
}

static const option options[] = {
    {"text", 0, "TEXT", "what to classify; may be repeated", TEXTS_AT(reading_options, texts)},
    {"pair", 0, "TEXT", "second segment of the text of the same number; an empty one is a segment",
     TEXTS_AT(reading_options, pairs)},
    {"choice", 0, "TEXT", "one of several continuations of each text, for a multiple-choice model; repeat for each",
     TEXTS_AT(classify_options, choices), .not_with = "pair multi-label"},
    TEXT_STREAM_FILE_OPTIONS,
    {"multi-label", 0, NULL, "every label by itself (sigmoid), whatever problem_type of config.json says",
     FLAG_AT(classify_options, multi_label)},
    TASK_TOP_ROW(classify_options, MOST_LABELS, "the N most probable labels or choices (default 5)"),
    TEXT_BATCHES_OPTIONS,
    SHARD_OPTIONS,
    {.name = NULL},
};

const command command_classify = {
    .name = "classify",
    .summary = "classes of texts, of pairs of texts, or which of several choices fits",
    .arguments = "MODEL",
    .writes = WRITES_LINES,
    .options = options,
    .size = sizeof(classify_options),
    .defaults = &(const classify_options){.top = 5},
    .example =
        "  deberta classify models/demo --text 'Call me Ishmael.'\n"
        "  deberta classify models/demo --file pairs.jsonl --json      # objects with \"text\" and perhaps \"pair\", "
        "or \"choices\"\n"
        "  deberta finetune choice models/demo --examples choices.tsv --new-head --steps 40 --learning-rate 5e-4 "
        "-o chooser\n"
        "  deberta classify chooser --text 'the baker opened' --choice 'the door' --choice 'a story'\n"
        "\nwith --json, one line a text:\n"
        "  {\"line\", \"labels\": [{\"label\", \"index\", \"probability\"}]}\n"
        "  {\"line\", \"choices\": [{\"choice\", \"index\", \"score\", \"probability\"}]}      with --choice or "
        "\"choices\"\n"
        "  {\"line\", \"score\", \"probability\"}      where the classifier has a single output\n"
        "\nOutputs are read as problem_type of config.json says: one of all labels (softmax; without problem_type "
        "too), "
        "each by\nitself (multi_label_classification), or values (regression: \"score\" in place of "
        "\"probability\").\n",
    .run = classify_run,
    .spreads = SPREADS_SHARDS,
    .without = "seed",
};
