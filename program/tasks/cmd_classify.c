/* `deberta classify`: the classes of texts or of pairs of texts by the sequence head, or which of several choices fits.
 *
 * SPDX-License-Identifier: MIT */
#include "program/tasks/classify_choices.h"
#include "program/commands.h"
#include "output/shown_text.h"
#include "program/tasks/task_run.h"

enum { MOST_LABELS = 1 << 20 };

typedef struct classify_options {
    reading_options reading;
    text_list choices;
    bool multi_label; /* each label by itself */
    size_t top;
} classify_options;

static int begin(task_run *run) { return task_run_check_labels(run, run->batches.info.sequence_labels); }

static void show_texts(FILE *out, const text_record *record)
{
    print_clean(out, record->text, record->text_bytes);
    if (record->pair) {
        fputs("\n+ ", out);
        print_clean(out, record->pair, record->pair_bytes);
    }
    fputc('\n', out);
}

typedef struct text_class {
    const char *label;
    size_t index;
    double probability;
} text_class;

/* The most probable ones first. */
static size_t find_classes(task_run *run, const float *logits, text_class **classes)
{
    const classify_options *o = (const classify_options *)run->options;
    const size_t labels = run->batches.info.sequence_labels;
    double *probabilities = options_take(run->options, labels, sizeof *probabilities);
    size_t *chosen;
    deberta_softmax(probabilities, logits, labels);
    for (size_t k = 0; o->multi_label && k < labels; k++) probabilities[k] = deberta_sigmoid(logits[k]);
    const size_t count = task_run_choose(run, o->top, probabilities, labels, &chosen);
    *classes = options_take(run->options, count, sizeof **classes);
    for (size_t k = 0; k < count; k++)
        (*classes)[k] = (text_class){task_run_label(run, chosen[k]), chosen[k], probabilities[chosen[k]]};
    return count;
}

static json_t *describe_classes(const text_class *classes, size_t count)
{
    json_t *labels = json_array();
    for (size_t k = 0; k < count; k++)
        json_array_append_new(labels, json_pack("{s:o, s:I, s:f}", "label", json_clean_text(classes[k].label), "index",
                                                (json_int_t)classes[k].index, "probability", classes[k].probability));
    return json_pack("{s:o}", "labels", labels);
}

static void show_classes(FILE *out, const text_class *classes, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        print_probability(out, classes[k].probability, classes[k].label);
        fputc('\n', out);
    }
}

/* One row of logits into an answer. A classifier with a single row is a regression: its value is no probability. */
static deberta_status describe(task_run *run, task_text *text, const float *logits, FILE *out, deberta_error *err)
{
    (void)err;
    const classify_options *o = (const classify_options *)run->options;
    const bool regression = run->batches.info.sequence_labels == 1 && !o->multi_label;
    text_class *classes = NULL;
    const size_t count = regression ? 0 : find_classes(run, logits, &classes);
    if (!out) {
        text->answer = regression ? json_pack("{s:f}", "score", (double)logits[0]) : describe_classes(classes, count);
        return DEBERTA_OK;
    }
    show_texts(out, &text->record);
    if (regression)
        fprintf(out, "  %.3f  (score)\n", (double)logits[0]);
    else
        show_classes(out, classes, count);
    return DEBERTA_OK;
}

static int run(const common_options *options)
{
    const classify_options *o = (const classify_options *)options;
    static const task_command command = {
        .names = {.text = "text", .pair = "pair"}, .task = DEBERTA_TASK_SEQUENCE, .begin = begin, .describe = describe};
    if (o->choices.count == 1) return option_wrong(options, &o->choices, "give at least two");
    return o->choices.count ? classify_choices_run(options, &o->choices, o->top)
                            : task_run_all(options, &command, NULL);
}

static const option options[] = {
    {"text", 0, "TEXT", "what to classify; may be repeated", TEXTS_AT(reading_options, texts)},
    {"pair", 0, "TEXT", "second segment of the text of the same number; an empty one is a segment",
     TEXTS_AT(reading_options, pairs)},
    {"choice", 0, "TEXT", "one of several continuations of each text, for a multiple-choice model; repeat for each",
     TEXTS_AT(classify_options, choices), .not_with = "pair multi-label"},
    TEXT_STREAM_FILE_OPTIONS,
    {"multi-label", 0, NULL, "every label by itself (sigmoid) instead of one of all (softmax)",
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
    .options = options,
    .size = sizeof(classify_options),
    .defaults = &(const classify_options){.top = 5},
    .example =
        "  deberta classify models/demo --text 'Call me Ishmael.'\n"
        "  deberta classify models/demo --file pairs.jsonl --json      # objects with \"text\" and perhaps \"pair\"\n"
        "  deberta classify swag-model --text 'She opened the door and' --choice 'went in.' --choice 'boiled over.'\n"
        "\nwith --json, one line a text:\n"
        "  {\"line\", \"labels\": [{\"label\", \"index\", \"probability\"}]}\n"
        "  {\"line\", \"choices\": [{\"choice\", \"index\", \"score\", \"probability\"}]}      with --choice\n"
        "  {\"line\", \"score\"}                    where the classifier has a single output\n",
    .run = run,
    .spreads = SPREADS_SHARDS,
    .without = "seed",
};
