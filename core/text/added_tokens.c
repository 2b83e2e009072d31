/* Finds added tokens, such as [MASK], in a text by their spelling. SPDX-License-Identifier: MIT */
#include "core/text/added_tokens.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/io/quote.h"

deberta_status added_tokens_add(added_tokens *tokens, const added_token *token, const char *where, deberta_error *err)
{
    quoted name = quote_bytes(token->text, token->bytes);
    if (token->bytes == 0) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: an added token is empty", where);
    assert(token->id >= 0 && token->id <= ADDED_TOKEN_MAX_ID);
    const added_token *same = added_tokens_find(tokens, token->text, token->bytes);
    if (same && same->id != token->id)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: added token '%s' has the id %d, but %d was found before", where,
                     name.text, (int)token->id, (int)same->id);
    if (same) return DEBERTA_OK;
    const added_token *other = added_tokens_with_id(tokens, token->id);
    if (other)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: added tokens '%s' and '%s' share the id %d", where, QUOTE(other->text),
                     name.text, (int)token->id);

    added_token *items = grown(tokens->items, &tokens->capacity, tokens->count + 1, sizeof *items);
    if (items) tokens->items = items;
    char *text = malloc(token->bytes + 1);
    if (!items || !text) {
        free(text);
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for its added tokens", where);
    }
    memcpy(text, token->text, token->bytes);
    text[token->bytes] = '\0';
    items[tokens->count] = *token;
    items[tokens->count++].text = text;
    tokens->first_bytes[(unsigned char)text[0]] = true;
    return DEBERTA_OK;
}

void added_tokens_free(added_tokens *tokens)
{
    for (size_t i = 0; i < tokens->count; i++) free((char *)tokens->items[i].text);
    free(tokens->items);
    *tokens = (added_tokens){0};
}

const added_token *added_tokens_find(const added_tokens *tokens, const char *text, size_t bytes)
{
    for (size_t i = 0; i < tokens->count; i++)
        if (tokens->items[i].bytes == bytes && memcmp(tokens->items[i].text, text, bytes) == 0)
            return &tokens->items[i];
    return NULL;
}

const added_token *added_tokens_with_id(const added_tokens *tokens, int32_t id)
{
    for (size_t i = 0; i < tokens->count; i++)
        if (tokens->items[i].id == id) return &tokens->items[i];
    return NULL;
}

void added_tokens_remove(added_tokens *tokens, const added_token *token)
{
    size_t at = (size_t)(token - tokens->items);
    assert(at < tokens->count);
    free((char *)tokens->items[at].text);
    memmove(&tokens->items[at], &tokens->items[at + 1], (--tokens->count - at) * sizeof *tokens->items);
    memset(tokens->first_bytes, 0, sizeof tokens->first_bytes);
    for (size_t i = 0; i < tokens->count; i++) tokens->first_bytes[(unsigned char)*tokens->items[i].text] = true;
}

static const added_token *longest_at(const added_tokens *tokens, const char *text, size_t bytes)
{
    const added_token *longest = NULL;
    for (size_t i = 0; i < tokens->count; i++) {
        const added_token *token = &tokens->items[i];
        if (token->normalized || (longest && token->bytes <= longest->bytes)) continue;
        if (token->bytes <= bytes && memcmp(token->text, text, token->bytes) == 0) longest = token;
    }
    return longest;
}

static size_t skip_space_left(const char *text, size_t from, size_t at)
{
    while (at > from) {
        size_t before = at - 1;
        while (before > from && utf8_is_continuation(text[before])) before--;
        uint32_t character;
        utf8_decode(text + before, at - before, &character);
        if (!utf8_is_space(character)) break;
        at = before;
    }
    return at;
}

static size_t skip_space_right(const char *text, size_t bytes, size_t at)
{
    while (at < bytes) {
        uint32_t character;
        size_t length = utf8_decode(text + at, bytes - at, &character);
        if (!utf8_is_space(character)) break;
        at += length;
    }
    return at;
}

const added_token *added_tokens_search(const added_tokens *tokens, const char *text, size_t bytes, size_t from,
                                       text_span *span)
{
    for (size_t at = from; at < bytes; at++) {
        if (!tokens->first_bytes[(unsigned char)text[at]]) continue;
        const added_token *token = longest_at(tokens, text + at, bytes - at);
        if (!token) continue;
        size_t end = at + token->bytes;
        span->begin = token->strip_left ? skip_space_left(text, from, at) : at;
        span->end = token->strip_right ? skip_space_right(text, bytes, end) : end;
        return token;
    }
    return NULL;
}
