/* Stores the result of tokenizing (ids, token types, offsets) in growing parallel arrays, and truncates it.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/token_list.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

const char *token_list_text(const token_list *list, size_t index, size_t *bytes)
{
    assert(index < list->count);
    text_span place = list->text_places[index];
    if (bytes) *bytes = place.end - place.begin;
    return list->texts + place.begin;
}

void token_list_clear(token_list *list)
{
    list->count = list->texts_bytes = list->segments = 0;
    list->replaced = list->first_replaced_segment = list->first_replaced_byte = 0;
}

void token_list_free(token_list *list)
{
    free(list->ids);
    free(list->type_ids);
    free(list->roles);
    free(list->byte_spans);
    free(list->char_spans);
    free(list->text_places);
    free(list->texts);
    if (list->workspace) list->free_workspace(list->workspace);
    *list = (token_list){0};
}

/* Grows the six arrays, which share one capacity: it is raised only when all of them have grown. */
static bool reserve(token_list *list, size_t count)
{
    if (count <= list->capacity) return true;
    size_t target = list->capacity + list->capacity / 2;
    if (target < count) target = count;
#define GROW(member)                                                                                                   \
    do {                                                                                                               \
        size_t capacity = list->capacity;                                                                              \
        void *larger = grown(list->member, &capacity, target, sizeof *list->member);                                   \
        if (!larger) return false;                                                                                     \
        list->member = larger;                                                                                         \
    } while (0)
    GROW(ids);
    GROW(type_ids);
    GROW(roles);
    GROW(byte_spans);
    GROW(char_spans);
    GROW(text_places);
#undef GROW
    list->capacity = target;
    return true;
}

deberta_status token_list_append(token_list *list, int32_t id, const char *text, size_t bytes, text_span span,
                                 token_role role, deberta_error *err)
{
    char *texts = grown(list->texts, &list->texts_capacity, list->texts_bytes + bytes + 1, 1);
    if (texts) list->texts = texts;
    if (!texts || !reserve(list, list->count + 1))
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for more than %zu tokens", list->count);

    memcpy(texts + list->texts_bytes, text, bytes);
    texts[list->texts_bytes + bytes] = '\0';

    size_t i = list->count++;
    list->text_places[i] = (text_span){list->texts_bytes, list->texts_bytes + bytes};
    list->texts_bytes += bytes + 1;
    list->ids[i] = id;
    list->type_ids[i] = list->segments > 1;
    list->roles[i] = (uint8_t)role;
    list->byte_spans[i] = span;
    list->char_spans[i] = (text_span){0, 0};
    return DEBERTA_OK;
}

deberta_status token_list_copy(token_list *copy, const token_list *list, deberta_error *err)
{
    *copy = (token_list){0};
    copy->texts = malloc(list->texts_bytes + 1);
    if (!copy->texts || !reserve(copy, list->count)) {
        token_list_free(copy);
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a copy of %zu tokens", list->count);
    }
#define COPY(member, count) memcpy(copy->member, list->member, (count) * sizeof *list->member)
    if (list->count > 0) {
        COPY(ids, list->count);
        COPY(type_ids, list->count);
        COPY(roles, list->count);
        COPY(byte_spans, list->count);
        COPY(char_spans, list->count);
        COPY(text_places, list->count);
        COPY(texts, list->texts_bytes);
    }
#undef COPY
    copy->count = list->count;
    copy->texts_bytes = copy->texts_capacity = list->texts_bytes;
    copy->segments = list->segments;
    copy->replaced = list->replaced;
    copy->first_replaced_segment = list->first_replaced_segment;
    copy->first_replaced_byte = list->first_replaced_byte;
    return DEBERTA_OK;
}

/* -------------------------------------------------------------------------------------------------- truncation */

/* Computes the number of tokens that each segment keeps. Microsoft's code sorts the segments by length before every
 * step, stably and starting from the order of the step before, and cuts the first one, which `head` tracks. The steps
 * follow that rule literally; there are at most as many as tokens. */
static void share_as_microsoft(size_t lengths[2], size_t budget)
{
    size_t head = 0;
    while (lengths[0] + lengths[1] > budget) {
        if (lengths[!head] > lengths[head]) head = !head;
        lengths[head]--;
    }
}

/* Applies the library tokenizers' longest_first. The shorter segment stays whole if cutting the longer one is enough;
 * else each keeps half, and the odd token goes to the longer one, or to the second of two equally long ones. */
static void share_as_library(size_t lengths[2], size_t budget)
{
    const size_t shorter = lengths[0] > lengths[1], half = budget / 2;
    if (lengths[0] + lengths[1] <= budget) return;
    if (lengths[shorter] > half) lengths[shorter] = half;
    lengths[!shorter] = budget - lengths[shorter];
}

static void move_token(token_list *list, size_t to, size_t from)
{
    list->ids[to] = list->ids[from];
    list->type_ids[to] = list->type_ids[from];
    list->roles[to] = list->roles[from];
    list->byte_spans[to] = list->byte_spans[from];
    list->char_spans[to] = list->char_spans[from];
    list->text_places[to] = list->text_places[from];
}

deberta_status token_list_truncate(token_list *list, size_t max_tokens, bool as_microsoft, size_t *dropped,
                                   deberta_error *err)
{
    *dropped = 0;
    if (list->count <= max_tokens) return DEBERTA_OK;
    size_t frame = 0, lengths[2] = {0, 0};
    for (size_t i = 0; i < list->count; i++)
        if (list->roles[i] == TOKEN_FRAME)
            frame++;
        else
            lengths[list->type_ids[i]]++;
    if (max_tokens < frame)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "at most %zu tokens wanted, but the frame around %s alone takes %zu",
                     max_tokens, list->segments == 1 ? "a text" : "two texts", frame);
    (as_microsoft ? share_as_microsoft : share_as_library)(lengths, max_tokens - frame);

    size_t kept = 0, seen[2] = {0, 0};
    for (size_t i = 0; i < list->count; i++) {
        bool keep = list->roles[i] == TOKEN_FRAME || seen[list->type_ids[i]]++ < lengths[list->type_ids[i]];
        if (keep) move_token(list, kept++, i);
    }
    *dropped = list->count - kept;
    list->count = kept;
    return DEBERTA_OK;
}
