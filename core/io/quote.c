/* Quoting of foreign text for messages, and the UTF-8 check it rests on.
 *
 * SPDX-License-Identifier: MIT */
#include "core/io/quote.h"

#include <stdint.h>

/* Longer texts keep their beginning and their end: names of tensors and files differ at the end. */
enum { HEAD_BYTES = 44, TAIL_BYTES = 72, LONGEST_BYTES = HEAD_BYTES + TAIL_BYTES };

/* Bytes of the well-formed UTF-8 sequence at `at`, 0 if there is none (Unicode 15, table 3-7). */
static size_t utf8_sequence(const uint8_t *at, size_t left)
{
    uint8_t first = at[0];
    if (first < 0x80) return 1;
    size_t length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    if (length == 0 || length > left) return 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80) return 0;
    bool overlong = (first == 0xe0 && at[1] < 0xa0) || (first == 0xf0 && at[1] < 0x90);
    bool surrogate = first == 0xed && at[1] > 0x9f;
    bool too_large = first == 0xf4 && at[1] > 0x8f;
    return overlong || surrogate || too_large ? 0 : length;
}

bool utf8_is_valid(const void *bytes, size_t count_bytes)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < count_bytes;) {
        size_t length = utf8_sequence(at + i, count_bytes - i);
        if (length == 0) return false;
        i += length;
    }
    return true;
}

/* C0, DEL and C1 (U+0080 to U+009F) may act on a terminal. */
static bool is_control(const uint8_t *at, size_t length)
{
    return (length == 1 && (at[0] < 0x20 || at[0] == 0x7f)) || (length == 2 && at[0] == 0xc2 && at[1] < 0xa0);
}

static void append(quoted *out, size_t *used, const uint8_t *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count;) {
        size_t length = utf8_sequence(bytes + i, count - i);
        char escape[4] = {'\\', 'x', digits[bytes[i] >> 4], digits[bytes[i] & 15]};
        bool plain = length > 0 && !is_control(bytes + i, length);
        const void *piece = plain ? (const void *)(bytes + i) : escape;
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
    const uint8_t *at = bytes;
    size_t used = 0;
    if (count_bytes <= LONGEST_BYTES) {
        append(&out, &used, at, count_bytes);
        return out;
    }
    /* Do not cut inside a character: step back to, or on to, the next first byte. */
    size_t head = HEAD_BYTES, tail = count_bytes - TAIL_BYTES;
    while (head > HEAD_BYTES - 3 && (at[head] & 0xc0) == 0x80) head--;
    while (tail < count_bytes - TAIL_BYTES + 3 && (at[tail] & 0xc0) == 0x80) tail++;
    append(&out, &used, at, head);
    append(&out, &used, (const uint8_t *)"...", 3);
    append(&out, &used, at + tail, count_bytes - tail);
    return out;
}
