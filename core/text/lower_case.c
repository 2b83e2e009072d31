/* Lower-cases a text and records where each byte came from.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/unicode.h"

#include "core/base/text.h"

deberta_status lower_case_run(traced_text *out, const char *text, size_t bytes, deberta_error *err)
{
    out->bytes = 0;
    DEBERTA_TRY(traced_text_reserve(out, bytes, err));
    for (size_t at = 0; at < bytes;) {
        uint32_t character;
        size_t length = utf8_decode(text + at, bytes - at, &character);
        char lowered[2 * UTF8_MAX_BYTES];
        size_t put = utf8_encode(lowered, letter_lower_case(character));
        /* The lower case of this character is two characters: i, which is already written, and a combining dot above.
         */
        if (character == 0x130) put += utf8_encode(lowered + put, 0x307);
        DEBERTA_TRY(traced_text_reserve(out, out->bytes + put, err));
        traced_text_put(out, lowered, put, at);
        at += length;
    }
    traced_text_end(out, bytes);
    return DEBERTA_OK;
}
