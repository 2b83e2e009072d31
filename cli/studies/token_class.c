/* SPDX-License-Identifier: MIT */
#include "cli/studies/token_class.h"

#include <ctype.h>
#include <string.h>

/* How vocabularies write a space before a word: SentencePiece's U+2581, byte-level BPE's U+0120. */
static size_t space_bytes(const char *text)
{
    static const char *const spaces[] = {"\xE2\x96\x81", "\xC4\xA0"};
    for (size_t k = 0; k < sizeof spaces / sizeof *spaces; k++)
        if (strncmp(text, spaces[k], strlen(spaces[k])) == 0) return strlen(spaces[k]);
    return 0;
}

/* ASCII, and General Punctuation (U+2000 to U+206F: quotes, dashes, ellipses). */
static bool is_punctuation(const char *text)
{
    if (!*text) return false;
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        if (c[0] < 0x80 && ispunct(c[0]))
            c++;
        else if (c[0] == 0xE2 && (c[1] == 0x80 || (c[1] == 0x81 && c[2] < 0xB0)))
            c += 3;
        else
            return false;
    }
    return true;
}

token_class token_class_of(const token_list *list, size_t index)
{
    if (list->roles[index] != TOKEN_TEXT) return TOKEN_CLASS_SPECIAL;
    const char *text = token_list_text(list, index, NULL);
    const size_t space = space_bytes(text);
    if (is_punctuation(text + space)) return TOKEN_CLASS_PUNCTUATION;
    return space || list->byte_spans[index].begin == 0 ? TOKEN_CLASS_WORD : TOKEN_CLASS_CONTINUATION;
}

const char *token_class_name(token_class class)
{
    static const char *const names[TOKEN_CLASSES] = {"special", "punctuation", "word", "continuation"};
    return names[class];
}
