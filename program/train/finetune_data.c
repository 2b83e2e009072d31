/* Reads files of examples for a task, settles labels, and adds both to the trainer's options.
 *
 * SPDX-License-Identifier: MIT */
#include "program/train/finetune_data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"
#include "program/frame/open_model.h"
#include "program/train/task_scores.h"

enum { DEFAULT_TOKENS = 512, MOST_NEW_LABELS = 100000 };

/* ----------------------------------------------------------------------------------------------------------- labels */

/* Takes labels from "3", a number of labels without names, or "a,b,c", their names. */
static deberta_status take_given_labels(finetune_reader *r, const char *text, deberta_error *err)
{
    label_list *labels = &r->labels;
    char *end;
    errno = 0;
    const unsigned long number = strtoul(text, &end, 10);
    const bool counted = *text >= '0' && *text <= '9' && !*end;
    const unsigned long least = r->task == DEBERTA_TRAIN_SEQUENCE ? 1 : 2; /* a single one is a regression */
    if (counted && (errno || number < least || number > MOST_NEW_LABELS))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "--labels: expected %lu to %d labels, found %s", least, MOST_NEW_LABELS,
                     text);
    labels->count = counted ? number : 1;
    for (const char *c = text; !counted && *c; c++) labels->count += *c == ',';
    if (!counted && labels->count == 1)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "--labels: '%s' is one name, and classes are two at least%s", text,
                     r->task == DEBERTA_TRAIN_SEQUENCE ? "; 1 makes a regression" : "");
    labels->capacity = labels->count;
    labels->names = options_take(labels->options, labels->count, sizeof *labels->names);
    for (size_t k = 0; !counted && k < labels->count; k++, text++) {
        const size_t length = strcspn(text, ",");
        if (length == 0) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "--labels: name %zu is empty", k);
        labels->names[k] = options_text(labels->options, "%.*s", (int)length, text);
        text += length;
    }
    for (size_t k = 0; !counted && k < labels->count; k++)
        if (label_list_number(labels, labels->names[k]) < k)
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "--labels: '%s' is there twice", labels->names[k]);
    return DEBERTA_OK;
}

static void take_model_labels(label_list *labels, const deberta_model *model, size_t count)
{
    labels->names = options_take(labels->options, count, sizeof *labels->names);
    labels->count = labels->capacity = count;
    labels->of_model = true;
    for (size_t k = 0; k < count; k++) {
        const char *name = deberta_model_label(model, k);
        labels->names[k] = name ? options_text(labels->options, "%s", name) : NULL;
    }
}

static deberta_task head_of(deberta_training_task task)
{
    if (task == DEBERTA_TRAIN_TOKEN) return DEBERTA_TASK_TOKEN;
    return task == DEBERTA_TRAIN_QA ? DEBERTA_TASK_QA : DEBERTA_TASK_SEQUENCE;
}

static bool has_names(deberta_training_task task)
{
    return task == DEBERTA_TRAIN_SEQUENCE || task == DEBERTA_TRAIN_TOKEN;
}

/* Takes --labels. A choice has one score and an answer two ends, so these tasks have no labels to choose. */
static deberta_status choose_new_labels(finetune_reader *r, const char *text, deberta_error *err)
{
    const size_t outputs = r->task == DEBERTA_TRAIN_QA ? 2 : 1;
    if (has_names(r->task)) return take_given_labels(r, text, err);
    if (strlen(text) == 1 && (size_t)(*text - '0') == outputs) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "--labels: this head has %zu output%s, found '%s'", outputs,
                 outputs == 1 ? "" : "s", text);
}

/* Refuses kinds of problems that are not trained, before reading labels would fail on their data; the trainer refuses
 * them as well. */
static deberta_status check_problem(const deberta_model *model, size_t outputs, deberta_error *err)
{
    const deberta_model_info *info = deberta_model_describe(model);
    const bool values = info->problem == DEBERTA_PROBLEM_REGRESSION && outputs > 1;
    if (info->problem != DEBERTA_PROBLEM_MULTI_LABEL && !values) return DEBERTA_OK;
    DEBERTA_FAIL(
        err, DEBERTA_E_UNSUPPORTED,
        "%s: config.json says problem_type %s of %zu outputs, which is not trained: --labels or --new-head makes "
        "a head for one label a text",
        info->name, values ? "regression" : "multi_label_classification", outputs);
}

static deberta_status choose_labels(finetune_data *data, const deberta_model *model, deberta_error *err)
{
    const train_options *o = data->options;
    finetune_reader *r = &data->reader;
    const size_t width = deberta_task_width(model, head_of(r->task));
    if (o->labels) {
        DEBERTA_TRY(choose_new_labels(r, o->labels, err));
    } else if (o->new_head) {
        r->labels.collects = has_names(r->task);
    } else {
        if (width == 0)
            DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s has no head for this task: %s makes one", r->model,
                         has_names(r->task) ? "--labels or --new-head" : "--new-head");
        if (r->task == DEBERTA_TRAIN_SEQUENCE) DEBERTA_TRY(check_problem(model, width, err));
        take_model_labels(&r->labels, model, width);
    }
    r->regression = r->task == DEBERTA_TRAIN_SEQUENCE && !r->labels.collects && r->labels.count == 1;
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------------- reading */

static deberta_status choose_length(finetune_data *data, const deberta_model *model, deberta_error *err)
{
    const deberta_model_info *info = deberta_model_describe(model);
    finetune_reader *r = &data->reader;
    const size_t places = info->position_biased_input ? info->max_positions : 0,
                 asked = data->options->trainer.sequence_tokens;
    if (places && asked > places)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "--sequence-tokens %zu: the position table of %s has %zu rows", asked,
                     r->model, places);
    r->most_tokens = asked ? asked : places && places < DEFAULT_TOKENS ? places : DEFAULT_TOKENS;
    r->cuts = data->options->cut;
    return DEBERTA_OK;
}

static deberta_status read_file(finetune_reader *r, text_stream *stream, example_list *list, deberta_error *err)
{
    switch (r->task) {
    case DEBERTA_TRAIN_TOKEN: return finetune_read_tags(r, stream, list, err);
    case DEBERTA_TRAIN_CHOICE: return finetune_read_choices(r, stream, list, err);
    case DEBERTA_TRAIN_QA: return finetune_read_answers(r, stream, list, err);
    default: return finetune_read_texts(r, stream, list, err);
    }
}

/* Returns the names of the keys of objects; for answers those of `deberta answer`. */
static const text_stream_names *names_of(deberta_training_task task)
{
    static const text_stream_names
        texts = {.text = "text", .pair = "pair", .keeps_object = true, .columns = true, .also = {"label"}},
        choices = {.text = "text", .keeps_object = true, .columns = true, .also = {"label", "choices"}},
        words = {.keeps_object = true, .columns = true, .also = {"words", "labels"}},
        answers = {.text = "question",
                   .pair = "context",
                   .pair_required = true,
                   .keeps_object = true,
                   .also = {"text", "start"}};
    if (task == DEBERTA_TRAIN_TOKEN) return &words;
    if (task == DEBERTA_TRAIN_CHOICE) return &choices;
    return task == DEBERTA_TRAIN_QA ? &answers : &texts;
}

/* Notes how many texts --cut has shortened: what stood behind it is neither learned nor measured. */
static void note_cut(const finetune_reader *r, const char *option)
{
    if (r->cut_texts)
        say_note(r->options, "note: --cut: %zu of %zu texts of --%s are cut to %zu tokens%s", r->cut_texts, r->texts,
                 option, r->most_tokens,
                 r->task == DEBERTA_TRAIN_TOKEN ? "; labels of words behind the cut do not count" : "");
}

static void read_files(finetune_data *data, const text_list *files, const char *option, example_list *list)
{
    finetune_reader *r = &data->reader;
    r->texts = r->cut_texts = 0;
    for (size_t i = 0; i < files->count; i++) {
        text_stream stream;
        deberta_error error = {0};
        const reading_options reading = {.common = data->options->common, .files = {&files->items[i], 1}};
        const size_t before = list->count;
        text_stream_open(&stream, &reading, names_of(r->task));
        must(&data->options->common, read_file(r, &stream, list, &error), &error);
        if (list->count == before) end_with(&data->options->common, EXIT_INPUT, "%s holds no example", files->items[i]);
        text_stream_close(&stream);
        const size_t *places = label_list_settle(&r->labels);
        if (places) example_list_renumber(list, before, places);
    }
    note_cut(r, option);
}

/* -------------------------------------------------------------------------------------------------------------- all */

/* Reads the model's labels and its longest text, then opens its tokenizer. */
static void open_reader(finetune_data *data)
{
    deberta_error error = {0};
    const common_options *common = &data->options->common;
    finetune_reader *r = &data->reader;
    deberta_model *model = open_description(common);
    must(common, choose_labels(data, model, &error), &error);
    must(common, choose_length(data, model, &error), &error);
    must(common, deberta_tokenizer_open(&r->tokenizer, r->model, &error), &error);
    note_tokenizer(common, r->tokenizer);
    deberta_model_free(&model);
}

static size_t new_outputs(const finetune_data *data)
{
    const finetune_reader *r = &data->reader;
    if (!data->options->labels && !data->options->new_head) return 0;
    if (r->task == DEBERTA_TRAIN_QA) return 2;
    return r->task == DEBERTA_TRAIN_CHOICE ? 1 : r->labels.count;
}

static void give_labels(const finetune_data *data, deberta_trainer_options *t)
{
    const finetune_reader *r = &data->reader;
    t->new_labels = new_outputs(data);
    t->labels = has_names(r->task) && !r->regression && r->labels.count && r->labels.names[0] ? r->labels.names : NULL;
}

static deberta_status finetune_data_finish(finetune_data *data, deberta_trainer_options *t, deberta_error *err)
{
    finetune_reader *r = &data->reader;
    if (data->train.choices && data->held_out.choices && data->held_out.choices != data->train.choices)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "held-out questions have %zu choices, the others %zu",
                     data->held_out.choices, data->train.choices);
    give_labels(data, t);
    t->examples = data->train.items;
    t->example_count = data->train.count;
    t->choices = data->train.choices;
    t->held_out_examples = data->held_out.items;
    t->held_out_example_count = data->held_out.count;
    t->held_out_count = 0;
    if (data->held_out.count == 0) return DEBERTA_OK;
    task_scorer_make(&data->scorer, r->task, &data->held_out, &r->labels, r->labels.count, r->regression);
    t->scorer = &data->scorer;
    return DEBERTA_OK;
}

/* Notes the labels that the head tells apart; columns in the wrong order are noticed here. */
static void note_labels(const finetune_data *data)
{
    enum { SHOWN = 8 };
    char names[512] = "";
    size_t used = 0;
    const label_list *labels = &data->reader.labels;
    const common_options *options = &data->options->common;
    for (size_t k = 0; k < labels->count && k < SHOWN && used < sizeof names; k++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%.40s", k ? ", " : "",
                                 labels->names[k] ? labels->names[k] : options_text(options, "LABEL_%zu", k));
    say_note(options, "%zu label%s: %s%s", labels->count, labels->count == 1 ? "" : "s", names,
             labels->count > SHOWN ? " ..." : "");
    if (data->reader.task == DEBERTA_TRAIN_SEQUENCE && !labels->of_model && labels->count > 2 &&
        2 * labels->count > data->train.count)
        say_note(options, "note: %zu labels for %zu text%s; a line is the label, a tab, the text, in this order",
                 labels->count, data->train.count, data->train.count == 1 ? "" : "s");
}

static const char *label_text(const common_options *options, const label_list *labels, int32_t label)
{
    const char *name = labels->names ? labels->names[label] : NULL;
    return name ? options_text(options, "'%s'", name) : options_text(options, "%d", (int)label);
}

/* Notes held-out texts of a single class, which do not measure the others: often a file sorted by label was cut. */
static void note_held_out(const finetune_data *data)
{
    const example_list *held_out = &data->held_out;
    const common_options *options = &data->options->common;
    size_t same = 0;
    if (data->reader.task != DEBERTA_TRAIN_SEQUENCE || data->reader.regression || held_out->count < 2) return;
    for (size_t k = 0; k < held_out->count; k++) same += held_out->items[k].label == held_out->items[0].label;
    if (same == held_out->count)
        say_note(options,
                 "note: all %zu texts of --eval have one label, %s: a model that always says so has an accuracy of 1",
                 same, label_text(options, &data->reader.labels, held_out->items[0].label));
}

/* Chooses the labels of a new head for batches that other programs made. */
static void open_labels(finetune_data *data, deberta_trainer_options *trainer)
{
    deberta_error error = {0};
    must(&data->options->common, choose_new_labels(&data->reader, data->options->labels, &error), &error);
    data->reader.regression = data->reader.task == DEBERTA_TRAIN_SEQUENCE && data->reader.labels.count == 1;
    give_labels(data, trainer);
}

static void take_collected_labels(finetune_data *data)
{
    const common_options *common = &data->options->common;
    label_list *labels = &data->reader.labels;
    deberta_error error = {0};
    if (data->reader.task == DEBERTA_TRAIN_SEQUENCE && label_list_has_fractions(labels))
        say_note(common, "note: labels are fractions, and each is a class: --labels 1 makes a regression");
    must(common, label_list_check(labels, data->reader.task, &error), &error);
    label_list_note(labels, data->reader.task);
    example_list_renumber(&data->train, 0, label_list_sort(labels));
    if (labels->count < 2)
        end_with(common, EXIT_INPUT, "the data has one label, '%s': there is nothing to learn", labels->names[0]);
    note_labels(data);
}

void finetune_data_open(finetune_data *data, const train_options *o, deberta_trainer_options *trainer)
{
    const common_options *common = &o->common;
    deberta_error error = {0};
    *data = (finetune_data){.options = o, .train.options = common, .held_out.options = common};
    data->reader = (finetune_reader){
        .options = common, .model = common->arguments[0], .task = trainer->task, .labels.options = common};
    if (o->data.count == 0) {
        if (o->labels) open_labels(data, trainer);
        return;
    }
    open_reader(data);
    read_files(data, &o->data, "examples", &data->train);
    if (data->reader.labels.collects) take_collected_labels(data);
    read_files(data, &o->held_out, "eval", &data->held_out);
    const label_list *labels = &data->reader.labels;
    if (labels->numbers.options &&
        label_numbers_note(&labels->numbers,
                           labels->of_model ? "; --new-head makes a head for the labels of the file" : "") &&
        labels->of_model)
        note_labels(data);
    note_held_out(data);
    must(common, finetune_data_finish(data, trainer, &error), &error);
}

void finetune_data_close(finetune_data *data)
{
    deberta_tokens_free(&data->reader.tokens);
    deberta_tokenizer_free(&data->reader.tokenizer);
}
