/* `deberta tag`: labels of tokens, grouped to entities.
 *
 * How they are grouped: core/answer/entities.c.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "output/shown_text.h"
#include "cli/tasks/task_run.h"
#include "core/base/status.h"

typedef enum grouping { GROUPING_FIRST, GROUPING_SIMPLE, GROUPING_NONE } grouping;
static const char *const groupings[] = {"first", "simple", "none", NULL};

typedef struct tag_options {
    reading_options reading;
    size_t top; /* 0: all entities, or the best label of each token */
    int grouping;
} tag_options;

static const tag_options *options_of(const task_run *run) { return (const tag_options *)run->options; }

static json_t *describe_place(const task_text *text, const deberta_place *place)
{
    return json_pack("{s:o, s:o, s:o}", "text",
                     json_clean_string(text->record.text + place->bytes.begin, place->bytes.end - place->bytes.begin),
                     "characters", json_span(place->characters), "bytes", json_span(place->bytes));
}

static json_t *describe_entity(const task_run *run, const task_text *text, const deberta_entity *e)
{
    char buffer[32];
    const char *type = e->type ? e->type : task_run_label(run->batches.model, e->label, buffer);
    json_t *object = describe_place(text, &e->place);
    json_object_set_new(object, "label", json_clean_text(type));
    json_object_set_new(object, "probability", json_real(e->probability));
    return object;
}

/* The most probable ones, or all in the order of the text. */
static deberta_status describe_entities(const task_run *run, task_text *text, const float *logits, deberta_error *err)
{
    const size_t tokens = text->tokens->count;
    deberta_entity *entities = options_take(run->options, tokens, sizeof *entities);
    double *scores = options_take(run->options, tokens, sizeof *scores);
    size_t *chosen, found;
    DEBERTA_TRY(deberta_entities(
        entities, &found, run->batches.model, text->tokens, text->record.text, text->record.text_bytes, logits,
        options_of(run)->grouping == GROUPING_FIRST ? DEBERTA_ENTITIES_BY_WORD : DEBERTA_ENTITIES_BY_TOKEN, err));
    json_t *array = json_array();
    for (size_t k = 0; k < found; k++) scores[k] = entities[k].probability;
    for (size_t k = 0, shown = task_run_choose(run, options_of(run)->top, scores, found, &chosen); k < shown; k++)
        json_array_append_new(array, describe_entity(run, text, &entities[chosen[k]]));
    text->answer = json_pack("{s:o}", "entities", array);
    return DEBERTA_OK;
}

/* ----------------------------------------------------------------------------------------------------------- tokens */

static json_t *describe_labels(const task_run *run, const float *logits)
{
    const size_t labels = run->batches.info.token_labels, top = options_of(run)->top;
    double *probabilities = options_take(run->options, labels, sizeof *probabilities);
    size_t *chosen;
    json_t *array = json_array();
    deberta_softmax(probabilities, logits, labels);
    for (size_t k = 0, count = task_run_choose(run, top ? top : 1, probabilities, labels, &chosen); k < count; k++) {
        char buffer[32];
        const char *label = task_run_label(run->batches.model, chosen[k], buffer);
        json_array_append_new(
            array, json_pack("{s:o, s:f}", "label", json_clean_text(label), "probability", probabilities[chosen[k]]));
    }
    return array;
}

static void describe_tokens(const task_run *run, task_text *text, const float *logits)
{
    json_t *tokens = json_array();
    for (size_t t = 0; t < text->tokens->count; t++) {
        if (text->tokens->roles[t] == DEBERTA_TOKEN_FRAME) continue;
        size_t bytes;
        const char *name = deberta_tokens_text(text->tokens, t, &bytes);
        const deberta_place place = deberta_token_place(text->tokens, t, text->record.text);
        json_t *object = describe_place(text, &place);
        json_object_set_new(object, "token", json_clean_string(name, bytes));
        json_object_set_new(object, "labels", describe_labels(run, logits + t * run->batches.info.token_labels));
        json_array_append_new(tokens, object);
    }
    text->answer = json_pack("{s:o}", "tokens", tokens);
}

static deberta_status describe(task_run *run, task_text *text, const float *logits, deberta_error *err)
{
    if (options_of(run)->grouping != GROUPING_NONE) return describe_entities(run, text, logits, err);
    describe_tokens(run, text, logits);
    return DEBERTA_OK;
}

/* ---------------------------------------------------------------------------------------------------- for a person */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* The label in a column as wide as the widest. */
static void print_label(FILE *out, const json_t *owner, size_t width)
{
    const char *label = text_of(owner, "label");
    const size_t own = clean_width(label, strlen(label));
    fprintf(out, "  %.3f  ", json_number_value(json_object_get(owner, "probability")));
    print_clean(out, label, strlen(label));
    fprintf(out, "%*s", (int)(own < width ? width - own : 0), "");
}

static size_t widest_label(const json_t *items, bool tokens)
{
    size_t widest = 1, k;
    json_t *item;
    json_array_foreach(items, k, item)
    {
        const char *label = text_of(tokens ? json_array_get(json_object_get(item, "labels"), 0) : item, "label");
        if (clean_width(label, strlen(label)) > widest) widest = clean_width(label, strlen(label));
    }
    return widest;
}

static void print_item(FILE *out, const task_text *text, const json_t *item, size_t width, bool tokens)
{
    const json_t *labels = json_object_get(item, "labels");
    size_t k;
    json_t *label;
    print_label(out, tokens ? json_array_get(labels, 0) : item, width);
    fputs("  ", out);
    print_place(out, text->record.text, item);
    json_array_foreach(labels, k, label)
    {
        if (k == 0) continue;
        print_label(out, label, 0);
        fputc('\n', out);
    }
}

/* The text with its entities marked, and a line for each. */
static void print(FILE *out, const task_run *run, const task_text *text)
{
    const bool tokens = options_of(run)->grouping == GROUPING_NONE;
    const json_t *items = json_object_get(text->answer, tokens ? "tokens" : "entities");
    const size_t width = widest_label(items, tokens);
    size_t k;
    json_t *item;
    print_all_marked(out, text->record.text, text->record.text_bytes, tokens ? NULL : items);
    fputc('\n', out);
    if (json_array_size(items) == 0) fprintf(out, tokens ? "  no tokens\n" : "  no entities\n");
    json_array_foreach(items, k, item) print_item(out, text, item, width, tokens);
}

static int begin(task_run *run) { return task_run_check_labels(run, run->batches.info.token_labels); }

static int run(const common_options *options)
{
    static const task_command command = {
        .names = {.text = "text"}, .task = DEBERTA_TASK_TOKEN, .begin = begin, .describe = describe, .print = print};
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
    {.name = NULL},
};

const command command_tag = {
    .name = "tag",
    .summary = "labels of tokens, grouped to entities",
    .arguments = "MODEL",
    .options = options,
    .size = sizeof(tag_options),
    .example = "  deberta tag deberta-v3-ner --text 'Ada Lovelace was born in London.'\n"
               "\nwith --json, one line a text:\n"
               "  {\"line\", \"entities\": [{\"text\", \"characters\": [begin, end], \"bytes\", \"label\", "
               "\"probability\"}]}\n"
               "  {\"line\", \"tokens\": [{\"text\", \"characters\", \"bytes\", \"token\", \"labels\": [{\"label\", "
               "\"probability\"}]}]}\n",
    .run = run,
};
