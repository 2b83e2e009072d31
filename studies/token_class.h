/* What kind of token it is, by its place in the text and its characters there. SPDX-License-Identifier: MIT */
#ifndef STUDIES_TOKEN_CLASS_H
#define STUDIES_TOKEN_CLASS_H

#include "include/deberta.h"

typedef enum token_class {
    TOKEN_CLASS_SPECIAL,      /* frame, and special tokens that a text spells out */
    TOKEN_CLASS_PUNCTUATION,  /* nothing but punctuation (utf8_is_punctuation) */
    TOKEN_CLASS_WORD,         /* a word, or its first piece: at the beginning, after a space or after punctuation */
    TOKEN_CLASS_CONTINUATION, /* a later piece */
    TOKEN_CLASSES
} token_class;

/* text: what the list was made from, one segment, with a NUL after it. */
token_class token_class_of(const deberta_tokens *list, size_t index, const char *text);
const char *token_class_name(token_class class);

#endif
