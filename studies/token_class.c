/* SPDX-License-Identifier: MIT */
#include "studies/token_class.h"

#include <string.h>

#include "core/base/utf8.h"

static bool holds_only_punctuation(const char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        uint32_t character;
        at += utf8_decode(text + at, bytes - at, &character);
        if (!utf8_is_punctuation(character)) return false;
    }
    return bytes > 0;
}

/* By the characters that the token comes from, whole ones: byte-level vocabularies may cut inside them. Of several
 * tokens that are made from one character all but the last have an empty place, and say themselves what they are. */
static bool is_punctuation(const deberta_tokens *list, size_t index, const char *text)
{
    static const char space[] = "\xE2\x96\x81"; /* SentencePiece's */
    deberta_span span = deberta_token_place(list, index, text).bytes;
    if (span.begin == span.end) {
        const char *own = deberta_tokens_text(list, index, NULL);
        if (strncmp(own, space, strlen(space)) == 0) own += strlen(space);
        return holds_only_punctuation(own, strlen(own));
    }
    while (span.begin > 0 && utf8_is_continuation(text[span.begin])) span.begin--;
    while (utf8_is_continuation(text[span.end])) span.end++;
    return holds_only_punctuation(text + span.begin, span.end - span.begin);
}

token_class token_class_of(const deberta_tokens *list, size_t index, const char *text)
{
    if (list->roles[index] != DEBERTA_TOKEN_TEXT) return TOKEN_CLASS_SPECIAL;
    if (is_punctuation(list, index, text)) return TOKEN_CLASS_PUNCTUATION;
    const size_t begin = list->byte_spans[index].begin;
    const bool behind_space = begin < deberta_token_place(list, index, text).bytes.begin;
    const bool behind_mark =
        index > 0 && list->roles[index - 1] == DEBERTA_TOKEN_TEXT && is_punctuation(list, index - 1, text);
    return begin == 0 || behind_space || behind_mark ? TOKEN_CLASS_WORD : TOKEN_CLASS_CONTINUATION;
}

const char *token_class_name(token_class class)
{
    static const char *const names[TOKEN_CLASSES] = {"special", "punctuation", "word", "continuation"};
    return names[class];
}
