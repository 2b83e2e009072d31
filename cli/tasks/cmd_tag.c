/* `deberta tag`: labels of tokens, grouped to entities.
 *
 * How they are grouped: core/answer/entities.c.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/tasks/task_output.h"
#include "cli/tasks/task_run.h"
#include "core/base/status.h"

typedef enum grouping { GROUPING_FIRST, GROUPING_SIMPLE, GROUPING_NONE } grouping;

typedef struct tag_job {
    grouping grouping;
    size_t labels, top; /* top 0: all entities, or the best label of each token */
} tag_job;

static json_t *describe_place(const task_text *text, const deberta_place *place)
{
    return json_pack("{s:o, s:o, s:o}", "text",
                     json_clean_string(text->record.text + place->bytes.begin, place->bytes.end - place->bytes.begin),
                     "characters", json_span(place->characters), "bytes", json_span(place->bytes));
}

static void add_entity(const task_run *run, const task_text *text, const deberta_entity *e, json_t *array)
{
    char buffer[32];
    const char *type = e->type ? e->type : task_run_label(run->batches.model, e->label, buffer);
    json_t *object = describe_place(text, &e->place);
    json_object_set_new(object, "label", json_clean_string(type, strlen(type)));
    json_object_set_new(object, "probability", json_real(e->probability));
    json_array_append_new(array, object);
}

/* The most probable ones, or all in the order of the text. */
static void add_entities(const task_run *run, task_text *text, const deberta_entity *entities, size_t found,
                         double *scores, size_t *order)
{
    const tag_job *job = run->context;
    size_t shown = 0;
    json_t *array = json_array();
    for (size_t k = 0; k < found; k++) scores[k] = entities[k].probability;
    if (job->top)
        shown = deberta_rank(order, job->top < found ? job->top : found, scores, found);
    else
        for (; shown < found; shown++) order[shown] = shown;
    for (size_t k = 0; k < shown; k++) add_entity(run, text, &entities[order[k]], array);
    text->answer = json_pack("{s:o}", "entities", array);
}

static deberta_status describe_entities(const task_run *run, task_text *text, const float *logits, deberta_error *err)
{
    const tag_job *job = run->context;
    const size_t room = text->tokens->count + 1;
    deberta_entity *entities = calloc(room, sizeof *entities);
    double *scores = calloc(room, sizeof *scores);
    size_t *order = calloc(room, sizeof *order), found = 0;
    deberta_status status =
        entities && scores && order ? DEBERTA_OK : status_fail(err, DEBERTA_E_MEMORY, "out of memory");
    if (status == DEBERTA_OK)
        status = deberta_entities(
            entities, &found, run->batches.model, text->tokens, text->record.text, text->record.text_bytes, logits,
            job->grouping == GROUPING_FIRST ? DEBERTA_ENTITIES_BY_WORD : DEBERTA_ENTITIES_BY_TOKEN, err);
    if (status == DEBERTA_OK) add_entities(run, text, entities, found, scores, order);
    free(entities);
    free(scores);
    free(order);
    return status;
}

/* ----------------------------------------------------------------------------------------------------------- tokens */

static deberta_status describe_tokens(const task_run *run, task_text *text, const float *logits, double *probabilities,
                                      deberta_error *err)
{
    const tag_job *job = run->context;
    const size_t top = job->top == 0 ? 1 : job->top < job->labels ? job->top : job->labels;
    size_t *ranked = malloc(top * sizeof *ranked);
    if (!ranked) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    json_t *tokens = json_array();
    for (size_t t = 0; t < text->tokens->count; t++) {
        if (text->tokens->roles[t] == DEBERTA_TOKEN_FRAME) continue;
        size_t bytes;
        char buffer[32];
        const char *name = deberta_tokens_text(text->tokens, t, &bytes);
        const deberta_place place = deberta_token_place(text->tokens, t, text->record.text);
        json_t *labels = json_array(), *object = describe_place(text, &place);
        deberta_softmax(probabilities, logits + t * job->labels, job->labels);
        deberta_rank(ranked, top, probabilities, job->labels);
        for (size_t k = 0; k < top; k++) {
            const char *label = task_run_label(run->batches.model, ranked[k], buffer);
            json_array_append_new(labels, json_pack("{s:o, s:f}", "label", json_clean_string(label, strlen(label)),
                                                    "probability", probabilities[ranked[k]]));
        }
        json_object_set_new(object, "token", json_clean_string(name, bytes));
        json_object_set_new(object, "labels", labels);
        json_array_append_new(tokens, object);
    }
    free(ranked);
    text->answer = json_pack("{s:o}", "tokens", tokens);
    return DEBERTA_OK;
}

static deberta_status describe(const task_run *run, task_text *text, const float *logits, deberta_error *err)
{
    const tag_job *job = run->context;
    if (job->grouping != GROUPING_NONE) return describe_entities(run, text, logits, err);
    double *probabilities = malloc(job->labels * sizeof *probabilities);
    if (!probabilities) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory");
    const deberta_status status = describe_tokens(run, text, logits, probabilities, err);
    free(probabilities);
    return status;
}

static deberta_status answer(task_run *run, const task_batch *batch, deberta_error *err)
{
    const tag_job *job = run->context;
    float *logits;
    DEBERTA_TRY(task_run_token_logits(batch, DEBERTA_TASK_TOKEN, &logits, err));
    deberta_status status = DEBERTA_OK;
    for (size_t k = 0; status == DEBERTA_OK && k < batch->count; k++)
        status = describe(run, batch->texts[k], logits + batch->starts[k] * job->labels, err);
    free(logits);
    return status;
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
    const tag_job *job = run->context;
    const bool tokens = job->grouping == GROUPING_NONE;
    const json_t *items = json_object_get(text->answer, tokens ? "tokens" : "entities");
    const size_t width = widest_label(items, tokens);
    size_t k;
    json_t *item;
    print_all_marked(out, text->record.text, text->record.text_bytes, tokens ? NULL : items);
    fputc('\n', out);
    if (json_array_size(items) == 0) fprintf(out, tokens ? "  no tokens\n" : "  no entities\n");
    json_array_foreach(items, k, item) print_item(out, text, item, width, tokens);
}

static const char *const groupings[] = {"first", "simple", "none", NULL};

typedef struct tag_options {
    reading_options reading;
    size_t top; /* 0: all */
    int grouping;
} tag_options;

static int run(const common_options *options)
{
    const tag_options *o = (const tag_options *)options;
    static const task_command command = {.names = {.text = "text"}, .answer = answer, .print = print};
    tag_job job = {.top = o->top, .grouping = (grouping)o->grouping};
    task_run run;
    int status = task_run_open(&run, &o->reading, 0);
    if (status == EXIT_OK) status = task_run_require(&run, DEBERTA_TASK_TOKEN);
    if (status == EXIT_OK) {
        job.labels = run.batches.info.token_labels;
        status = task_run_check_labels(&run, job.labels);
    }
    if (status == EXIT_OK) status = task_run_all(&run, &command, &job);
    task_run_close(&run);
    return status;
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
    .min_arguments = 1,
    .max_arguments = 1,
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
