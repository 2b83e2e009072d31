/* Reads questions about contexts, for fine-tuning: objects with "question"; "context"; "text", the answer; "start", the
 * character of the context at which the answer begins. Without "text" the context has no answer. A context that does
 * not fit is cut into windows that overlap by half.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"
#include "core/base/text.h"
#include "include/deberta_unstable.h"
#include "output/scope.h"
#include "program/train/finetune_lists.h"

enum { FEWEST_CONTEXT_TOKENS = 8 }; /* least room of a window */

/* A question. The reader owns its tokens; its answer is in characters of the context. */
typedef struct question {
    text_record *record;
    const deberta_tokens *tokens;
    bool answered;
    size_t begin, end;         /* characters of the answer */
    size_t first, count;       /* tokens of the context */
    size_t answer, answer_end; /* first and last token of the answer, as indices among these */
} question;

static const char *skip_characters(const char *text, const char *end, size_t count)
{
    for (; count > 0 && text < end; count--) {
        uint32_t character;
        text += utf8_decode(text, (size_t)(end - text), &character);
    }
    return count ? NULL : text;
}

static size_t count_characters(const char *text, size_t bytes)
{
    size_t count = 0;
    for (size_t at = 0; at < bytes; count++) {
        uint32_t character;
        at += utf8_decode(text + at, bytes - at, &character);
    }
    return count;
}

static const char *const other_keys[] = {"answers", "answer", "answer_text", "answer_start", "start"};

static bool find_answer(question *q)
{
    text_record *r = q->record;
    const json_t *text = json_object_get(r->object, "text"), *start = json_object_get(r->object, "start");
    /* a misspelt key of "text" must not mean that there is no answer */
    for (size_t k = 0; !text && k < sizeof other_keys / sizeof *other_keys; k++)
        if (json_object_get(r->object, other_keys[k]))
            return text_record_spoil(
                r, "found \"%s\", expected \"text\", the answer, and \"start\", its first character", other_keys[k]);
    if (text && !json_is_null(text) && !json_is_string(text))
        return text_record_spoil(r, "expected \"text\" to be the answer, one text, or null where there is none");
    q->answered = json_is_string(text) && json_string_length(text) > 0;
    if (!q->answered && json_is_number(start) && json_number_value(start) > 0)
        return text_record_spoil(r, "found \"start\" without an answer: \"text\" is missing or empty");
    if (!q->answered) return true;
    if (!json_is_integer(start) || json_integer_value(start) < 0)
        return text_record_spoil(r, "expected \"start\", the answer's first character in the context");
    const size_t bytes = json_string_length(text);
    const char *end = r->pair + r->pair_bytes;
    q->begin = (size_t)json_integer_value(start);
    q->end = q->begin + count_characters(json_string_value(text), bytes);
    const char *at = skip_characters(r->pair, end, q->begin);
    if (!at || (size_t)(end - at) < bytes || memcmp(at, json_string_value(text), bytes) != 0)
        return text_record_spoil(r, "the context does not have the answer '%.60s' at character %zu",
                                 json_string_value(text), q->begin);
    return true;
}

/* Finds the tokens of the context, and which of them the answer has. */
static bool place_answer(question *q)
{
    const deberta_tokens *tokens = q->tokens;
    size_t asked = 0;
    q->answer = q->answer_end = SIZE_MAX;
    for (size_t t = 0; t < tokens->count; t++) {
        if (tokens->roles[t] == DEBERTA_TOKEN_FRAME) continue;
        asked += tokens->token_types[t] == 0;
        if (tokens->token_types[t] != 1) continue;
        if (q->count++ == 0) q->first = t;
        const deberta_place place = deberta_token_place(tokens, t, q->record->pair);
        if (!q->answered || place.characters.begin >= q->end || place.characters.end <= q->begin) continue;
        if (q->answer == SIZE_MAX) q->answer = t - q->first;
        q->answer_end = t - q->first;
    }
    if (q->count == 0) return text_record_spoil(q->record, "the context holds no tokens");
    if (asked == 0) return text_record_spoil(q->record, "the question holds no tokens");
    if (q->answered && q->answer == SIZE_MAX) return text_record_spoil(q->record, "the answer holds no tokens");
    return true;
}

/* Adds the example [CLS] question [SEP] the window's tokens [SEP]. */
static void add_window(const question *q, size_t offset, size_t count, example_list *list)
{
    const size_t tokens = q->first + count + 1;
    const deberta_tokens *all = q->tokens;
    int32_t *ids = memory_take(2 * tokens, sizeof *ids), *types = ids + tokens;
    list->windows =
        options_grown(list->options, list->windows, &list->window_capacity, list->count, sizeof *list->windows);
    memcpy(ids, all->ids, q->first * sizeof *ids);
    memcpy(types, all->token_types, q->first * sizeof *types);
    memcpy(ids + q->first, all->ids + q->first + offset, count * sizeof *ids);
    for (size_t t = q->first; t < tokens; t++) types[t] = 1;
    ids[tokens - 1] = all->ids[all->count - 1];
    const bool inside = q->answered && q->answer >= offset && q->answer_end < offset + count;
    const int32_t none = q->answered ? NO_LABEL : 0; /* label 0, [CLS], means no answer */
    const deberta_example example = {
        .tokens = tokens,
        .ids = ids,
        .token_types = types,
        .label = NO_LABEL,
        .start = inside ? (int32_t)(q->first + q->answer - offset) : none,
        .end = inside ? (int32_t)(q->first + q->answer_end - offset) : none,
    };
    list->windows[list->count] = (answer_window){list->questions, q->first, count, offset, q->answer, q->answer_end};
    example_list_add(list, &example);
    free(ids);
}

static bool add_windows(const finetune_reader *r, const question *q, example_list *list)
{
    const size_t frame = q->first + 1, room = r->most_tokens > frame ? r->most_tokens - frame : 0;
    if (room < FEWEST_CONTEXT_TOKENS && room < q->count)
        return text_record_spoil(q->record, "the question has %zu tokens, which leaves no room for its context",
                                 q->first);
    for (size_t offset = 0; offset == 0 || offset + room - room / 2 < q->count; offset += room / 2) {
        const size_t count = q->count - offset < room ? q->count - offset : room;
        add_window(q, offset, count, list);
        if (offset + count == q->count) break;
    }
    list->questions++;
    return true;
}

/* Takes one question; returns false if the record has a problem. */
static bool take_question(finetune_reader *r, text_record *record, example_list *list)
{
    finetune_reader whole = *r;
    question q = {.record = record};
    if (record->text_bytes == 0) return text_record_spoil(record, "the question is empty");
    if (!find_answer(&q)) return false;
    whole.most_tokens = SIZE_MAX; /* not cut here, as this file makes windows */
    whole.cuts = false;
    const bool tokenized = reader_tokenize(&whole, record, record->pair, record->pair_bytes);
    q.tokens = r->tokens = whole.tokens;
    return tokenized && place_answer(&q) && add_windows(r, &q, list);
}

deberta_status finetune_read_answers(finetune_reader *r, text_stream *stream, example_list *list, deberta_error *err)
{
    deberta_status status = DEBERTA_OK;
    list->choices = 1;
    for (bool end = false; status == DEBERTA_OK && !end;) {
        text_record record;
        DEBERTA_TRY(text_stream_next(stream, &record, &end, err));
        if (!end && !record.problem) take_question(r, &record, list);
        status = reader_problem(&record, err);
        text_record_free(&record);
    }
    return status;
}
