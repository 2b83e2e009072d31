/* A token is named by its piece of the text; bytes that are no text are written in hexadecimal.
 *
 * SPDX-License-Identifier: MIT */
#include "program/frame/input/input_batch.h"

#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"

const char *token_segment(const input_batch *input, size_t row, size_t column)
{
    return input->token_lists[row]->token_types[column] ? input->pairs[row] : input->texts[row];
}

/* "<E4BD>" */
static const char *bytes_in_hexadecimal(scope *memory, const char *bytes, size_t count)
{
    char *text = scope_take(memory, 2 * count + 3, 1);
    text[0] = '<';
    for (size_t k = 0; k < count; k++) snprintf(text + 1 + 2 * k, 3, "%02X", (unsigned char)bytes[k]);
    text[2 * count + 1] = '>';
    return text;
}

const char *token_label(input_batch *input, size_t row, size_t column)
{
    const deberta_tokens *list = input->token_lists[row];
    const char *name = deberta_tokens_text(list, column, NULL);
    if (strncmp(name, "\u2581", 3) == 0 && name[3]) return name + 3;
    if (strcmp(deberta_tokenizer_kind_name(input->tokenizer), "byte-level BPE") != 0 ||
        list->roles[column] != DEBERTA_TOKEN_TEXT)
        return name;
    const char *text = token_segment(input, row, column) + list->byte_spans[column].begin;
    size_t bytes = list->byte_spans[column].end - list->byte_spans[column].begin;
    if (bytes > 1 && *text == ' ') {
        text++;
        bytes--;
    }
    if (!bytes || strspn(text, " \t\r\n") >= bytes || memchr(text, 0, bytes)) return name;
    return utf8_is_valid(text, bytes) ? scope_text(&input->memory, "%.*s", (int)bytes, text)
                                      : bytes_in_hexadecimal(&input->memory, text, bytes);
}
