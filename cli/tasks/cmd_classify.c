/* `deberta classify`: the classes of texts or of pairs of texts by the sequence head, or which of several choices fits.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "cli/tasks/classify_choices.h"
#include "cli/commands.h"
#include "cli/tasks/task_output.h"
#include "cli/tasks/task_run.h"
#include "core/base/status.h"

enum { MOST_LABELS = 1 << 20 };

typedef struct classify_job {
    size_t labels, top;
    bool multi_label; /* each label by itself */
} classify_job;

/* One row of logits into an answer. A classifier with a single row is a regression: its value is no probability. */
static json_t *describe(const task_run *run, const float *logits, double *scores, size_t *ranked)
{
    const classify_job *job = run->context;
    if (job->labels == 1 && !job->multi_label) return json_pack("{s:f}", "score", (double)logits[0]);
    deberta_softmax(scores, logits, job->labels);
    for (size_t k = 0; job->multi_label && k < job->labels; k++) scores[k] = deberta_sigmoid(logits[k]);
    const size_t count = deberta_rank(ranked, job->top, scores, job->labels);
    json_t *array = json_array();
    for (size_t k = 0; k < count; k++) {
        char buffer[32];
        const char *label = task_run_label(run->batches.model, ranked[k], buffer);
        json_array_append_new(array, json_pack("{s:o, s:I, s:f}", "label", json_clean_string(label, strlen(label)),
                                               "index", (json_int_t)ranked[k], "probability", scores[ranked[k]]));
    }
    return json_pack("{s:o}", "labels", array);
}

static deberta_status answer(task_run *run, const task_batch *batch, deberta_error *err)
{
    const classify_job *job = run->context;
    size_t *sequences = malloc(batch->count * sizeof *sequences), *ranked = malloc((job->top + 1) * sizeof *ranked);
    float *logits = malloc(batch->count * job->labels * sizeof *logits);
    double *scores = malloc(job->labels * sizeof *scores);
    deberta_status status =
        sequences && ranked && logits && scores ? DEBERTA_OK : status_fail(err, DEBERTA_E_MEMORY, "out of memory");
    if (status == DEBERTA_OK) {
        for (size_t k = 0; k < batch->count; k++) sequences[k] = k;
        status = task_run_logits(batch, DEBERTA_TASK_SEQUENCE, sequences, batch->count, logits, err);
    }
    for (size_t k = 0; status == DEBERTA_OK && k < batch->count; k++)
        batch->texts[k]->answer = describe(run, logits + k * job->labels, scores, ranked);
    free(sequences);
    free(ranked);
    free(logits);
    free(scores);
    return status;
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

typedef struct classify_options {
    reading_options reading;
    text_list choices;
    bool multi_label;
    size_t top;
} classify_options;

static int run(const common_options *options)
{
    const classify_options *o = (const classify_options *)options;
    static const task_command command = {.names = {.text = "text", .pair = "pair"}, .answer = answer, .print = print};
    classify_job job = {.multi_label = o->multi_label, .top = o->top};
    task_run run;
    if (o->choices.count == 1) return option_wrong(options, &o->choices, "give at least two");
    int status = task_run_open(&run, &o->reading, 0);
    if (status == EXIT_OK) status = task_run_require(&run, DEBERTA_TASK_SEQUENCE);
    if (status == EXIT_OK && o->choices.count) {
        status = classify_choices_run(&run, &o->choices, job.top);
        task_run_close(&run);
        return status;
    }
    if (status == EXIT_OK) {
        job.labels = run.batches.info.sequence_labels;
        if (job.top > job.labels) job.top = job.labels;
        status = task_run_check_labels(&run, job.labels);
    }
    if (status == EXIT_OK) status = task_run_all(&run, &command, &job);
    task_run_close(&run);
    return status;
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
    .min_arguments = 1,
    .max_arguments = 1,
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
