/* Where in a text its tokens lie. SPDX-License-Identifier: MIT */
#ifndef COMMAND_INPUT_TOKEN_PLACE_H
#define COMMAND_INPUT_TOKEN_PLACE_H

#include "include/deberta.h"

/* Where a token lies in its segment, without the space that belongs to it. */
typedef struct token_place {
    deberta_span bytes, characters;
} token_place;
token_place token_place_of(const deberta_tokens *list, size_t token, const char *text);

#endif
