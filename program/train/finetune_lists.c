/* Copies examples into growing lists, and reports records that cannot be used. SPDX-License-Identifier: MIT */
#include "program/train/finetune_lists.h"

#include <string.h>

#include "core/base/status.h"
#include "output/scope.h"

/* --------------------------------------------------------------------------------------------------------- examples */

/* Copies numbers; NULL stays NULL. */
static int32_t *copy_numbers(const common_options *options, const int32_t *numbers, size_t count)
{
    int32_t *copy = numbers ? options_take(options, count, sizeof *copy) : NULL;
    if (copy && count) memcpy(copy, numbers, count * sizeof *copy);
    return copy;
}

void example_list_add(example_list *list, const deberta_example *example)
{
    list->items = options_grown(list->options, list->items, &list->capacity, list->count, sizeof *list->items);
    deberta_example *item = &list->items[list->count++];
    *item = *example;
    item->ids = copy_numbers(list->options, example->ids, example->tokens);
    item->token_types = copy_numbers(list->options, example->token_types, example->tokens);
    item->token_labels = copy_numbers(list->options, example->token_labels, example->tokens);
}

void example_list_renumber(example_list *list, size_t first, const size_t *places)
{
    for (size_t i = first; i < list->count; i++) {
        deberta_example *e = &list->items[i];
        int32_t *tags = (int32_t *)e->token_labels;
        if (e->label >= 0) e->label = (int32_t)places[e->label];
        for (size_t t = 0; tags && t < e->tokens; t++)
            if (tags[t] >= 0) tags[t] = (int32_t)places[tags[t]];
    }
}

/* ----------------------------------------------------------------------------------------------------------- records */

deberta_status reader_problem(const text_record *record, deberta_error *err)
{
    char place[256];
    if (!record->problem) return DEBERTA_OK;
    text_record_place(record, place);
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %s", place, record->problem);
}

bool reader_tokenize(finetune_reader *r, text_record *record, const char *pair, size_t pair_bytes)
{
    const deberta_text text = {.struct_size = sizeof text,
                               .text = record->text,
                               .text_bytes = record->text_bytes,
                               .pair = pair,
                               .pair_bytes = pair_bytes,
                               .max_tokens = r->cuts ? r->most_tokens : 0,
                               .strict = 1};
    deberta_error reason = {0};
    const deberta_status status = deberta_tokenize(&r->tokens, r->tokenizer, &text, &reason);
    if (status == DEBERTA_E_MEMORY) memory_short();
    if (status != DEBERTA_OK) return text_record_spoil(record, "%s", reason.message);
    if (r->tokens->count > r->most_tokens)
        return text_record_spoil(record, "%s has %zu tokens, expected at most %zu: --cut shortens it",
                                 pair ? "the pair" : "the text", r->tokens->count, r->most_tokens);
    r->texts++;
    r->cut_texts += r->tokens->dropped > 0;
    return true;
}
