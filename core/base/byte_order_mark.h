/* The three bytes EF BB BF that some editors put before UTF-8: no part of a text, nor of JSON.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <string.h>

/* How many bytes of the beginning of a file to skip: 3 or 0. */
static inline size_t byte_order_mark(const char *text, size_t bytes)
{
    return bytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
}
