/* Implements deberta_tokenize and deberta_token_place for callers of the library: ids and offsets of a text, as a view
 * of a token_list.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "core/text/tokenizer.h"
#include "core/text/tokenizer_inside.h"
#include "include/deberta_unstable.h"

/* The view comes first: callers hold a pointer to it. */
typedef struct tokens_with_list {
    deberta_tokens view;
    token_list list;
} tokens_with_list;

static void show_list(tokens_with_list *tokens, size_t dropped)
{
    const token_list *list = &tokens->list;
    tokens->view = (deberta_tokens){.count = list->count,
                                    .ids = list->ids,
                                    .token_types = list->type_ids,
                                    .byte_spans = list->byte_spans,
                                    .character_spans = list->char_spans,
                                    .dropped = dropped,
                                    .replaced = list->replaced,
                                    .first_replaced_segment = list->first_replaced_segment,
                                    .first_replaced_byte = list->first_replaced_byte,
                                    .segments = list->segments,
                                    .roles = list->roles};
}

static deberta_status fill_list(token_list *list, size_t *dropped, const deberta_tokenizer *tokenizer,
                                const deberta_text *given, deberta_error *err)
{
    deberta_text text;
    if (!tokenizer || !given)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "deberta_tokenize: %s is NULL", tokenizer ? "the text" : "the tokenizer");
    DEBERTA_TRY(copy_struct(&text, given, sizeof text, "deberta_text", err));
    if (!text.pair && text.pair_bytes > 0)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "the second text is NULL, but has %zu bytes", text.pair_bytes);
    if (text.text && text.text_bytes == 0) text.text_bytes = strlen(text.text);
    if (text.pair && text.pair_bytes == 0) text.pair_bytes = strlen(text.pair);
    const tokenizer_options options = {.strict = text.strict != 0, .literal_specials = text.literal_specials != 0};
    DEBERTA_TRY(
        tokenizer_encode(tokenizer, text.text, text.text_bytes, text.pair, text.pair_bytes, &options, list, err));
    return text.max_tokens ? token_list_truncate(list, text.max_tokens, tokenizer->cuts_as_microsoft, dropped, err)
                           : DEBERTA_OK;
}

deberta_status deberta_tokenize(deberta_tokens **result, const deberta_tokenizer *tokenizer, const deberta_text *text,
                                deberta_error *err)
{
    if (!result) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "deberta_tokenize needs a place for the tokens");
    tokens_with_list *tokens = (tokens_with_list *)*result;
    if (!tokens) tokens = calloc(1, sizeof *tokens);
    if (!tokens) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory to tokenize");
    size_t dropped = 0;
    const deberta_status status = fill_list(&tokens->list, &dropped, tokenizer, text, err);
    if (status != DEBERTA_OK) token_list_clear(&tokens->list);
    show_list(tokens, dropped);
    if (status != DEBERTA_OK && !*result) {
        deberta_tokens *unused = &tokens->view;
        deberta_tokens_free(&unused);
        return status;
    }
    *result = &tokens->view;
    return status;
}

deberta_status deberta_tokens_copy(deberta_tokens **result, const deberta_tokens *given, deberta_error *err)
{
    if (result) *result = NULL;
    if (!result || !given)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "deberta_tokens_copy needs tokens and a place for their copy");
    tokens_with_list *copy = calloc(1, sizeof *copy);
    if (!copy) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a copy of %zu tokens", given->count);
    const deberta_status status = token_list_copy(&copy->list, &((const tokens_with_list *)given)->list, err);
    if (status != DEBERTA_OK) {
        free(copy);
        return status;
    }
    show_list(copy, given->dropped);
    *result = &copy->view;
    return DEBERTA_OK;
}

const char *deberta_tokens_text(const deberta_tokens *tokens, size_t index, size_t *bytes)
{
    if (!tokens || index >= tokens->count) return NULL;
    return token_list_text(&((const tokens_with_list *)tokens)->list, index, bytes);
}

void deberta_tokens_free(deberta_tokens **result)
{
    if (!result || !*result) return;
    tokens_with_list *tokens = (tokens_with_list *)*result;
    token_list_free(&tokens->list);
    free(tokens);
    *result = NULL;
}

deberta_place deberta_token_place(const deberta_tokens *tokens, size_t token, const char *text)
{
    deberta_place place = {tokens->byte_spans[token], tokens->character_spans[token]};
    while (place.bytes.begin < place.bytes.end) {
        uint32_t character;
        const size_t length = utf8_decode(text + place.bytes.begin, place.bytes.end - place.bytes.begin, &character);
        if (!utf8_is_space(character)) break;
        place.bytes.begin += length;
        place.characters.begin++;
    }
    return place;
}
