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
    bool strip_left, strip_right; /* whether it also removes the white space on that side */
    bool special;                 /* whether it has a meaning to the model, unlike an added word */
    bool normalized;              /* whether it is searched in the normalised text, not by added_tokens_search */
} added_token;

/* Must be zero-initialised. */
typedef struct added_tokens {
    added_token *items;
    size_t count, capacity;
    bool first_bytes[256]; /* first bytes of the searched tokens */
} added_tokens;

enum { ADDED_TOKEN_MAX_ID = 1 << 24 };

/* Adds a token. The text is copied; the id is at most ADDED_TOKEN_MAX_ID. A token that exists already must have the
 * same id, and keeps its other properties. */
deberta_status added_tokens_add(added_tokens *tokens, const added_token *token, const char *where, deberta_error *err);
void added_tokens_free(added_tokens *tokens);

/* Finds a token by its text; NULL if there is none. */
const added_token *added_tokens_find(const added_tokens *tokens, const char *text, size_t bytes);
const added_token *added_tokens_with_id(const added_tokens *tokens, int32_t id);
void added_tokens_remove(added_tokens *tokens, const added_token *token);

/* Finds the first token (except those that are `normalized`) spelled in text[from, bytes), the longest if several begin
 * there, and its span with stripped white space (never before `from`). NULL: none. text must be valid UTF-8. */
const added_token *added_tokens_search(const added_tokens *tokens, const char *text, size_t bytes, size_t from,
                                       text_span *span);
