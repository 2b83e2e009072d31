/* `deberta tag`: labels of tokens, grouped to entities.
 *
 * Labels may carry a scheme: B- begins an entity, I- goes on, E- and L- end it, S- and U- are one of a single word; O
 * is none. Labels without a prefix make one entity of neighbours that agree. A word has the label of its first token,
 * because that is the one that such models are trained on; --grouping simple lets every token speak for itself, as
 * token-wise trained models want.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/tasks/task_output.h"
#include "cli/tasks/task_run.h"
#include "core/base/status.h"
#include "core/base/utf8.h"

typedef enum grouping { GROUPING_FIRST, GROUPING_SIMPLE, GROUPING_NONE } grouping;

typedef struct tag_job {
    grouping grouping;
    size_t labels, top; /* top 0: all entities, or the best label of each token */
} tag_job;

/* A word or a token: what has one label. */
typedef struct tagged_unit {
    token_place place;
    size_t label;
    double probability;
} tagged_unit;

typedef struct entity {
    token_place place;
    const char *type;
    size_t units;
    double probability; /* mean over its units */
} entity;

/* ------------------------------------------------------------------------------------------------------------ units */

/* Whether the character at, or the one before, a place between two characters is punctuation. */
static bool touches_punctuation(const char *text, size_t bytes, size_t place)
{
    uint32_t character = 0, before = 0;
    size_t at = place;
    while (at > 0 && utf8_is_continuation(text[--at])) continue;
    if (place > 0) utf8_decode(text + at, place - at, &before);
    if (place < bytes) utf8_decode(text + place, bytes - place, &character);
    return utf8_is_punctuation(character) || utf8_is_punctuation(before);
}

/* Does a new word begin here? Behind a space and on both sides of punctuation, where corpora of this kind split too. */
static bool begins_word(const task_text *text, const token_place *place, const tagged_unit *before)
{
    const size_t begin = place->bytes.begin;
    return !before || begin > before->place.bytes.end ||
           touches_punctuation(text->record.text, text->record.text_bytes, begin);
}

/* probabilities: scratch [labels]. Returns how many units were written, at most one a token. */
static size_t collect_units(const tag_job *job, const task_text *text, const float *logits, double *probabilities,
                            tagged_unit *units)
{
    size_t count = 0, best;
    for (size_t t = 0; t < text->tokens->count; t++) {
        const token_place place = token_place_of(text->tokens, t, text->record.text);
        /* the frame, lone space marks, all but one of the tokens that share a character */
        if (text->tokens->roles[t] == DEBERTA_TOKEN_FRAME || place.bytes.begin >= place.bytes.end) continue;
        if (job->grouping == GROUPING_FIRST && !begins_word(text, &place, count ? &units[count - 1] : NULL)) {
            units[count - 1].place.bytes.end = place.bytes.end;
            units[count - 1].place.characters.end = place.characters.end;
            continue;
        }
        softmax_of(probabilities, logits + t * job->labels, job->labels);
        rank_values(&best, 1, probabilities, job->labels);
        units[count++] = (tagged_unit){place, best, probabilities[best]};
    }
    return count;
}

/* --------------------------------------------------------------------------------------------------------- entities */

/* "B-PER" is 'B' and "PER"; "PER" is 0 and "PER"; "O" is 'O' and "". */
static char split_label(const char *label, const char **type)
{
    *type = label;
    if (strcmp(label, "O") == 0) {
        *type = "";
        return 'O';
    }
    if (label[0] == 0 || label[1] != '-' || !strchr("BIELSU", label[0])) return 0;
    *type = label + 2;
    return label[0];
}

/* Writes at most one entity a unit. label_buffer: one a unit, for labels without a name. */
static size_t group(const task_run *run, const tagged_unit *units, size_t count, char (*label_buffers)[32],
                    entity *entities)
{
    size_t found = 0;
    bool open = false;
    for (size_t k = 0; k < count; k++) {
        const char *type, *label = task_run_label(run->batches.model, units[k].label, label_buffers[k]);
        const char prefix = split_label(label, &type);
        const bool alone = prefix == 'S' || prefix == 'U';
        if (prefix == 'O') {
            open = false;
            continue;
        }
        if (open && prefix != 'B' && !alone && strcmp(entities[found - 1].type, type) == 0) {
            entity *last = &entities[found - 1];
            last->place.bytes.end = units[k].place.bytes.end;
            last->place.characters.end = units[k].place.characters.end;
            last->probability += (units[k].probability - last->probability) / (double)++last->units;
        } else {
            entities[found++] = (entity){units[k].place, type, 1, units[k].probability};
        }
        open = !alone && prefix != 'E' && prefix != 'L';
    }
    return found;
}

static json_t *describe_place(const task_text *text, const token_place *place)
{
    return json_pack("{s:o, s:o, s:o}", "text",
                     json_clean_string(text->record.text + place->bytes.begin, place->bytes.end - place->bytes.begin),
                     "characters", json_span(place->characters), "bytes", json_span(place->bytes));
}

static deberta_status describe_entities(const task_run *run, task_text *text, const tagged_unit *units, size_t count,
                                        deberta_error *err)
{
    const tag_job *job = run->context;
    entity *entities = calloc(count + 1, sizeof *entities);
    char(*label_buffers)[32] = calloc(count + 1, sizeof *label_buffers);
    double *scores = calloc(count + 1, sizeof *scores);
    size_t *order = calloc(count + 1, sizeof *order), shown = 0;
    deberta_status status =
        entities && label_buffers && scores && order ? DEBERTA_OK : status_fail(err, DEBERTA_E_MEMORY, "out of memory");
    if (status == DEBERTA_OK) {
        json_t *array = json_array();
        const size_t found = group(run, units, count, label_buffers, entities);
        for (size_t k = 0; k < found; k++) scores[k] = entities[k].probability;
        if (job->top)
            shown = rank_values(order, job->top < found ? job->top : found, scores, found);
        else
            for (; shown < found; shown++) order[shown] = shown;
        for (size_t k = 0; k < shown; k++) {
            const entity *e = &entities[order[k]];
            json_t *object = describe_place(text, &e->place);
            json_object_set_new(object, "label", json_clean_string(e->type, strlen(e->type)));
            json_object_set_new(object, "probability", json_real(e->probability));
            json_array_append_new(array, object);
        }
        text->answer = json_pack("{s:o}", "entities", array);
    }
    free(entities);
    free(label_buffers);
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
        const token_place place = token_place_of(text->tokens, t, text->record.text);
        json_t *labels = json_array(), *object = describe_place(text, &place);
        softmax_of(probabilities, logits + t * job->labels, job->labels);
        rank_values(ranked, top, probabilities, job->labels);
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
    double *probabilities = malloc(job->labels * sizeof *probabilities);
    tagged_unit *units = calloc(text->tokens->count, sizeof *units);
    deberta_status status = probabilities && units ? DEBERTA_OK : status_fail(err, DEBERTA_E_MEMORY, "out of memory");
    if (status == DEBERTA_OK && job->grouping == GROUPING_NONE)
        status = describe_tokens(run, text, logits, probabilities, err);
    else if (status == DEBERTA_OK)
        status = describe_entities(run, text, units, collect_units(job, text, logits, probabilities, units), err);
    free(probabilities);
    free(units);
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
