/* Finds tokens in a text by their spelling, before the vocabulary processes it: [MASK] and the like.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "core/text/token_list.h"

typedef struct added_token {
    const char *text; /* terminated; not empty */
    size_t bytes;
    int32_t id;
    bool strip_left, strip_right; /* takes the white space on that side with it */
    bool special;                 /* has a meaning to the model, unlike a word that was merely added */
    bool normalized;              /* looked for in the normalised text: not by added_tokens_search */
} added_token;

/* Zero-initialised at first. */
typedef struct added_tokens {
    added_token *items;
    size_t count, capacity;
    bool first_bytes[256]; /* of those that are searched for */
} added_tokens;

enum { ADDED_TOKEN_MAX_ID = 1 << 24 };

/* The text is copied; the id is at most ADDED_TOKEN_MAX_ID. A token that is there already must have the same id, and
 * keeps its other properties. */
deberta_status added_tokens_add(added_tokens *tokens, const added_token *token, const char *where, deberta_error *err);
void added_tokens_free(added_tokens *tokens);

/* NULL if there is none. */
const added_token *added_tokens_find(const added_tokens *tokens, const char *text, size_t bytes);
const added_token *added_tokens_with_id(const added_tokens *tokens, int32_t id);
void added_tokens_remove(added_tokens *tokens, const added_token *token);

/* The first token (of those that are not `normalized`) spelled in text[from, bytes), the longest if several begin
 * there, and the span it takes with stripped white space (never before `from`). NULL: none. text must be valid UTF-8.
 */
const added_token *added_tokens_search(const added_tokens *tokens, const char *text, size_t bytes, size_t from,
                                       text_span *span);
