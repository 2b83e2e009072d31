/* Holds the result of tokenizing: parallel arrays of ids, types, spans and roles, and the text of every token.
 *
 * A list is zero-initialised once, may be filled again and again (buffers stay, so that a loop over lines soon
 * allocates nothing), belongs to one caller at a time, and does not need the tokenizer after it is filled.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

typedef deberta_span text_span;

typedef deberta_token_role token_role;
#define TOKEN_TEXT    DEBERTA_TOKEN_TEXT
#define TOKEN_SPELLED DEBERTA_TOKEN_SPELLED
#define TOKEN_FRAME   DEBERTA_TOKEN_FRAME

typedef struct token_workspace token_workspace;

typedef struct token_list {
    size_t count;
    int32_t *ids;
    int32_t *type_ids; /* also the segment that the spans refer to: 0 for [CLS] A [SEP], 1 for B [SEP] */
    uint8_t *roles;    /* token_role */

    /* Where in its segment, as the caller gave it, a token comes from: in bytes and in Unicode characters (a broken
     * unit of UTF-8 counts as one). A token that stands for part of a character only has the whole one as its
     * characters. Spans may be empty: SentencePiece's added space, all but the last of several tokens made from one
     * character. */
    text_span *byte_spans, *char_spans;

    size_t segments; /* 1, or 2 for a pair */

    /* Broken UTF-8: how many units were replaced by U+FFFD in all segments, and where the first was. */
    size_t replaced, first_replaced_segment, first_replaced_byte;

    /* Private: the texts one after the other, and what the tokenizer reuses. */
    char *texts;
    text_span *text_places; /* in texts, without the terminating NUL */
    size_t capacity, texts_bytes, texts_capacity;
    token_workspace *workspace; /* freed by the function beside it */
    void (*free_workspace)(token_workspace *workspace);
} token_list;

/* The token as the vocabulary writes it ("\u2581the", "\u0120the"), except that SentencePiece reports an unknown
 * stretch by its own (normalised) text. Terminated, but may hold NUL; *bytes may be NULL. Valid until the list changes.
 */
const char *token_list_text(const token_list *list, size_t index, size_t *bytes);

/* Cuts to at most max_tokens tokens, frame included, and tells how many were dropped. The frame stays; of a pair the
 * longer segment loses its last token until all fits. They differ in an odd token of two long segments: the library
 * tokenizers leave it to the longer one, of two equal ones to the second; Microsoft's goes on with the segment that was
 * cut before, the first to begin with. DEBERTA_E_ARGUMENT if not even the frame fits. */
deberta_status token_list_truncate(token_list *list, size_t max_tokens, bool as_microsoft, size_t *dropped,
                                   deberta_error *err);

/* Copies the tokens into as little memory as they need; *copy is overwritten. */
deberta_status token_list_copy(token_list *copy, const token_list *list, deberta_error *err);

/* Accepts a zeroed list and leaves one. */
void token_list_free(token_list *list);

/* ------------------------------------------------------------------------------------------- for the tokenizer */

void token_list_clear(token_list *list);
/* span: in whatever the caller counts; char_spans are left 0. */
deberta_status token_list_append(token_list *list, int32_t id, const char *text, size_t bytes, text_span span,
                                 token_role role, deberta_error *err);
