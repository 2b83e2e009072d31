/* `deberta classify`: the classes of texts or of pairs of texts by the sequence head, or which of several choices fits.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "cli/tasks/classify_choices.h"
#include "cli/commands.h"
#include "output/shown_text.h"
#include "cli/tasks/task_run.h"
#include "core/base/status.h"

enum { MOST_LABELS = 1 << 20 };

typedef struct classify_options {
    reading_options reading;
    text_list choices;
    bool multi_label; /* each label by itself */
    size_t top;
} classify_options;

static int begin(task_run *run) { return task_run_check_labels(run, run->batches.info.sequence_labels); }

/* One row of logits into an answer. A classifier with a single row is a regression: its value is no probability. */
static deberta_status describe(task_run *run, task_text *text, const float *logits, deberta_error *err)
{
    (void)err;
    const classify_options *o = (const classify_options *)run->options;
    const size_t labels = run->batches.info.sequence_labels;
    if (labels == 1 && !o->multi_label) {
        text->answer = json_pack("{s:f}", "score", (double)logits[0]);
        return DEBERTA_OK;
    }
    double *scores = options_take(run->options, labels, sizeof *scores);
    size_t *chosen;
    json_t *array = json_array();
    deberta_softmax(scores, logits, labels);
    for (size_t k = 0; o->multi_label && k < labels; k++) scores[k] = deberta_sigmoid(logits[k]);
    for (size_t k = 0, count = task_run_choose(run, o->top, scores, labels, &chosen); k < count; k++) {
        char buffer[32];
        const char *label = task_run_label(run->batches.model, chosen[k], buffer);
        json_array_append_new(array, json_pack("{s:o, s:I, s:f}", "label", json_clean_text(label), "index",
                                               (json_int_t)chosen[k], "probability", scores[chosen[k]]));
    }
    text->answer = json_pack("{s:o}", "labels", array);
    return DEBERTA_OK;
}

static void print(FILE *out, const task_run *run, const task_text *text)
{
    (void)run;
    const json_t *score = json_object_get(text->answer, "score");
    print_clean(out, text->record.text, text->record.text_bytes);
    if (text->record.pair) {
        fputs("\n+ ", out);
        print_clean(out, text->record.pair, text->record.pair_bytes);
    }
    fputc('\n', out);
    if (score) fprintf(out, "  %.3f  (score)\n", json_number_value(score));
    print_probabilities(out, json_object_get(text->answer, "labels"), "label");
}

static int run(const common_options *options)
{
    const classify_options *o = (const classify_options *)options;
    static const task_command command = {.names = {.text = "text", .pair = "pair"},
                                         .task = DEBERTA_TASK_SEQUENCE,
                                         .begin = begin,
                                         .describe = describe,
                                         .print = print};
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
};
