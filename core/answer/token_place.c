/* Locates tokens in a text. SPDX-License-Identifier: MIT */
#include "core/base/text.h"
#include "include/deberta_unstable.h"

deberta_place deberta_token_place(const deberta_tokens *tokens, size_t token, const char *text)
{
    deberta_place place = {tokens->byte_spans[token], tokens->character_spans[token]};
    while (place.bytes.begin < place.bytes.end) {
        uint32_t character;
        const size_t length = utf8_decode(text + place.bytes.begin, place.bytes.end - place.bytes.begin, &character);
        if (!utf8_is_space(character)) break;
        place.bytes.begin += length;
        place.characters.begin++;
    }
    return place;
}
