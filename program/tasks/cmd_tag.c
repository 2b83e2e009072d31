/* `deberta tag` labels tokens and groups them to entities; core/answer/entities.c does the grouping.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/base/status.h"
#include "output/shown_text.h"
#include "program/commands.h"
#include "program/tasks/task_run.h"

typedef enum grouping { GROUPING_FIRST, GROUPING_SIMPLE, GROUPING_NONE } grouping;
static const char *const groupings[] = {"first", "simple", "none", NULL};

typedef struct tag_options {
    reading_options reading;
    size_t top; /* number of entities listed; 0: all, or the best label of each token */
    int grouping;
} tag_options;

static const tag_options *options_of(const task_run *run) { return (const tag_options *)run->options; }

typedef struct tag_label {
    const char *name;
    double probability;
} tag_label;

/* An entity, which has one label, or a token with its best labels. */
typedef struct tagged {
    deberta_place place;
    size_t token;      /* index of the token; unused for an entity */
    tag_label *labels; /* [count] */
    size_t count;
} tagged;

/* Finds the most probable entities, or all in the order of the text. */
static deberta_status find_entities(const task_run *run, const task_text *text, const float *logits, tagged *items,
                                    size_t *count, deberta_error *err)
{
    const size_t tokens = text->tokens->count;
    deberta_entity *entities = options_take(run->options, tokens, sizeof *entities);
    double *scores = options_take(run->options, tokens, sizeof *scores);
    tag_label *labels = options_take(run->options, tokens, sizeof *labels);
    size_t *chosen, found;
    DEBERTA_TRY(deberta_entities(
        entities, &found, run->batches.model, text->tokens, text->record.text, text->record.text_bytes, logits,
        options_of(run)->grouping == GROUPING_FIRST ? DEBERTA_ENTITIES_BY_WORD : DEBERTA_ENTITIES_BY_TOKEN, err));
    for (size_t k = 0; k < found; k++) scores[k] = entities[k].probability;
    *count = task_run_choose(run, options_of(run)->top, scores, found, &chosen);
    for (size_t k = 0; k < *count; k++) {
        const deberta_entity *e = &entities[chosen[k]];
        labels[k] = (tag_label){e->type ? e->type : task_run_label(run, e->label), e->probability};
        items[k] = (tagged){.place = e->place, .labels = &labels[k], .count = 1};
    }
    return DEBERTA_OK;
}

static size_t find_tokens(const task_run *run, const task_text *text, const float *logits, tagged *items)
{
    const size_t labels = run->batches.info.token_labels, top = options_of(run)->top;
    double *probabilities = options_take(run->options, labels, sizeof *probabilities);
    size_t *chosen, found = 0;
    for (size_t t = 0; t < text->tokens->count; t++) {
        if (text->tokens->roles[t] == DEBERTA_TOKEN_FRAME) continue;
        tagged *item = &items[found++];
        deberta_softmax(probabilities, logits + t * labels, labels);
        *item = (tagged){.place = deberta_token_place(text->tokens, t, text->record.text), .token = t};
        item->count = task_run_choose(run, top ? top : 1, probabilities, labels, &chosen);
        item->labels = options_take(run->options, item->count, sizeof *item->labels);
        for (size_t k = 0; k < item->count; k++)
            item->labels[k] = (tag_label){task_run_label(run, chosen[k]), probabilities[chosen[k]]};
    }
    return found;
}

/* ------------------------------------------------------------------------------------------------------------- JSON */

static void set_label(json_t *object, const tag_label *label)
{
    json_object_set_new(object, "label", json_clean_text(label->name));
    json_object_set_new(object, "probability", json_real(label->probability));
}

static json_t *describe_item(const task_text *text, const tagged *item, bool is_token)
{
    const deberta_span bytes = item->place.bytes;
    json_t *object = json_pack("{s:o, s:o, s:o}", "text",
                               json_clean_string(text->record.text + bytes.begin, bytes.end - bytes.begin),
                               "characters", json_span(item->place.characters), "bytes", json_span(bytes));
    if (is_token) {
        size_t name_bytes;
        const char *name = deberta_tokens_text(text->tokens, item->token, &name_bytes);
        json_t *labels = json_array();
        for (size_t k = 0; k < item->count; k++) {
            json_t *label = json_object();
            set_label(label, &item->labels[k]);
            json_array_append_new(labels, label);
        }
        json_object_set_new(object, "token", json_clean_string(name, name_bytes));
        json_object_set_new(object, "labels", labels);
    } else {
        set_label(object, item->labels);
    }
    return object;
}

/* ---------------------------------------------------------------------------------------------------- for a person */

static size_t tag_width_of(const tag_label *label) { return clean_width(label->name, strlen(label->name)); }

/* Prints the text with its entities marked, and a line for each; tokens also get lines for their other labels. */
static void tag_show(FILE *out, const task_run *run, const text_record *record, const tagged *items, size_t count,
                     bool are_tokens)
{
    deberta_span *spans = options_take(run->options, count, sizeof *spans);
    size_t width = 1;
    for (size_t k = 0; k < count; k++) {
        spans[k] = items[k].place.bytes;
        if (tag_width_of(items[k].labels) > width) width = tag_width_of(items[k].labels);
    }
    print_all_marked(out, record->text, record->text_bytes, spans, are_tokens ? 0 : count);
    fputc('\n', out);
    if (count == 0) fprintf(out, are_tokens ? "  no tokens\n" : "  no entities\n");
    for (size_t k = 0; k < count; k++) {
        const tag_label *labels = items[k].labels;
        print_probability(out, labels->probability, labels->name);
        fprintf(out, "%*s", (int)(width - tag_width_of(labels) + 2), "");
        print_place(out, record->text, &items[k].place);
        for (size_t l = 1; l < items[k].count; l++) {
            print_probability(out, labels[l].probability, labels[l].name);
            fputc('\n', out);
        }
    }
}

static deberta_status tag_describe(task_run *run, task_text *text, const float *logits, FILE *out, deberta_error *err)
{
    const bool tokens = options_of(run)->grouping == GROUPING_NONE;
    tagged *items = options_take(run->options, text->tokens->count, sizeof *items);
    size_t count = 0;
    if (tokens)
        count = find_tokens(run, text, logits, items);
    else
        DEBERTA_TRY(find_entities(run, text, logits, items, &count, err));
    if (out) {
        tag_show(out, run, &text->record, items, count, tokens);
        return DEBERTA_OK;
    }
    json_t *array = json_array();
    for (size_t k = 0; k < count; k++) json_array_append_new(array, describe_item(text, &items[k], tokens));
    text->answer = json_pack("{s:o}", tokens ? "tokens" : "entities", array);
    return DEBERTA_OK;
}

static void tag_begin(task_run *run) { task_run_check_labels(run, run->batches.info.token_labels); }

static int tag_run(const common_options *options)
{
    static const task_command command = {
        .names = {.text = "text"}, .task = DEBERTA_TASK_TOKEN, .begin = tag_begin, .describe = tag_describe};
    return task_run_all(options, &command, NULL);
}

static const option options[] = {
    {"text", 0, "TEXT", "what to tag; may be repeated", TEXTS_AT(reading_options, texts)},
    TEXT_STREAM_FILE_OPTIONS,
    {"grouping", 0, "HOW",
     "first: words by their first token, words to entities (default); simple: tokens to entities; none: tokens",
     CHOICE_AT(tag_options, grouping, groupings)},
    TASK_TOP_ROW(tag_options, SIZE_MAX,
                 "the N most probable entities (default all); with --grouping none, N labels a token (default 1)"),
    TEXT_BATCHES_OPTIONS,
    SHARD_OPTIONS,
    {.name = NULL},
};

const command command_tag = {
    .name = "tag",
    .summary = "labels of tokens, grouped to entities",
    .arguments = "MODEL",
    .writes = WRITES_LINES,
    .options = options,
    .size = sizeof(tag_options),
    .example = "  deberta tag models/tags --text 'Come in, said the captain to Tom.'\n"
               "\nwith --json, one line a text:\n"
               "  {\"line\", \"entities\": [{\"text\", \"characters\": [begin, end], \"bytes\", \"label\", "
               "\"probability\"}]}\n"
               "  {\"line\", \"tokens\": [{\"text\", \"characters\", \"bytes\", \"token\", \"labels\": [{\"label\", "
               "\"probability\"}]}]}\n",
    .run = tag_run,
    .spreads = SPREADS_SHARDS,
    .without = "seed",
};
