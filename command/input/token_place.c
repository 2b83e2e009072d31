/* SPDX-License-Identifier: MIT */
#include "command/input/token_place.h"

#include "core/base/utf8.h"

token_place token_place_of(const deberta_tokens *list, size_t token, const char *text)
{
    token_place place = {list->byte_spans[token], list->character_spans[token]};
    while (place.bytes.begin < place.bytes.end) {
        uint32_t character;
        const size_t length = utf8_decode(text + place.bytes.begin, place.bytes.end - place.bytes.begin, &character);
        if (!utf8_is_space(character)) break;
        place.bytes.begin += length;
        place.characters.begin++;
    }
    return place;
}
