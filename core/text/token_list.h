/* Holds the result of tokenizing: parallel arrays of ids, token types, spans (offsets in the text) and roles, and the
 * text of every token.
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
    int32_t *type_ids; /* also the segment of the spans: 0 for [CLS] A [SEP], 1 for B [SEP] */
    uint8_t *roles;    /* token_role */

    /* Source spans of each token in its segment of the caller's text: in bytes and in Unicode characters (a broken unit
     * of UTF-8 counts as one). A token for part of a character has the whole character in char_spans. Spans may be
     * empty: SentencePiece's added space, and all but the last of several tokens made from one character. */
    text_span *byte_spans, *char_spans;

    size_t segments; /* number of segments: 1, or 2 for a pair */

    /* Broken UTF-8: the number of units replaced by U+FFFD in all segments, and the place of the first. */
    size_t replaced, first_replaced_segment, first_replaced_byte;

    /* Private: the texts one after the other, and the tokenizer's reusable memory. */
    char *texts;
    text_span *text_places; /* places in texts, without the terminating NUL */
    size_t capacity, texts_bytes, texts_capacity;
    token_workspace *workspace; /* function that frees the workspace */
    void (*free_workspace)(token_workspace *workspace);
} token_list;

/* Returns the token in the vocabulary's spelling ("\u2581the", "\u0120the"), except that SentencePiece reports an
 * unknown range by its own (normalised) text. Terminated, but may contain NUL; *bytes may be NULL. Valid until the list
 * changes. */
const char *token_list_text(const token_list *list, size_t index, size_t *bytes);

/* Cuts to at most max_tokens tokens, frame included, and returns how many were dropped. The frame stays; the longer
 * segment of a pair loses its last token until all fits. The two rules differ in an odd token of two long segments. The
 * library tokenizers takes it from the longer one, or from the second of two equal ones; Microsoft's code continues
 * with the segment that was cut before, beginning with the first. DEBERTA_E_ARGUMENT if not even the frame fits. */
deberta_status token_list_truncate(token_list *list, size_t max_tokens, bool as_microsoft, size_t *dropped,
                                   deberta_error *err);

/* Copies the tokens into as little memory as they need; *copy is overwritten. */
deberta_status token_list_copy(token_list *copy, const token_list *list, deberta_error *err);

/* Frees a list, and leaves a zeroed one, which it also accepts. */
void token_list_free(token_list *list);

/* ------------------------------------------------------------------------------------------- for the tokenizer */

void token_list_clear(token_list *list);
/* Appends a token. span: in the caller's unit; char_spans stay 0. */
deberta_status token_list_append(token_list *list, int32_t id, const char *text, size_t bytes, text_span span,
                                 token_role role, deberta_error *err);
