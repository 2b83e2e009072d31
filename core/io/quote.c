/* Quotes untrusted text for messages.
 *
 * SPDX-License-Identifier: MIT */
#include "core/io/quote.h"

#include <stdint.h>

#include "core/base/text.h"

/* Longer texts keep their beginning and their end, because names of tensors and files differ at the end. */
enum { HEAD_BYTES = 44, TAIL_BYTES = 72, LONGEST_BYTES = HEAD_BYTES + TAIL_BYTES };

static void quote_append(quoted *out, size_t *used, const char *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count;) {
        uint32_t character;
        size_t length = utf8_decode(bytes + i, count - i, &character);
        uint8_t first = (uint8_t)bytes[i];
        char escape[4] = {'\\', 'x', digits[first >> 4], digits[first & 15]};
        bool plain = character != UTF8_INVALID && !utf8_is_control(character);
        const char *piece = plain ? bytes + i : escape;
        size_t piece_bytes = plain ? length : sizeof escape;
        if (*used + piece_bytes >= QUOTE_BYTES) return;
        memcpy(out->text + *used, piece, piece_bytes);
        *used += piece_bytes;
        i += plain ? length : 1;
    }
}

quoted quote_bytes(const void *bytes, size_t count_bytes)
{
    quoted out = {{0}};
    const char *at = bytes;
    size_t used = 0;
    if (count_bytes <= LONGEST_BYTES) {
        quote_append(&out, &used, at, count_bytes);
        return out;
    }
    /* The cuts must not be inside a character, so they move to the nearest first byte before, or after. */
    size_t head = HEAD_BYTES, tail = count_bytes - TAIL_BYTES;
    while (head > HEAD_BYTES - 3 && utf8_is_continuation(at[head])) head--;
    while (tail < count_bytes - TAIL_BYTES + 3 && utf8_is_continuation(at[tail])) tail++;
    quote_append(&out, &used, at, head);
    quote_append(&out, &used, "...", 3);
    quote_append(&out, &used, at + tail, count_bytes - tail);
    return out;
}
