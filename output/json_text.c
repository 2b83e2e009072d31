/* Broken UTF-8 is replaced before jansson sees a string. SPDX-License-Identifier: MIT */
#include "output/json_text.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"

json_t *json_clean_string(const char *text, size_t bytes)
{
    if (utf8_valid_prefix(text, bytes, NULL) == bytes) return json_stringn(text, bytes);
    char *clean = malloc(3 * bytes + 1);
    size_t length = 0;
    if (!clean) return NULL;
    for (size_t at = 0; at < bytes;) {
        uint32_t character;
        const size_t step = utf8_decode(text + at, bytes - at, &character);
        const size_t copied = character == UTF8_INVALID ? strlen(UTF8_REPLACEMENT) : step;
        memcpy(clean + length, character == UTF8_INVALID ? UTF8_REPLACEMENT : text + at, copied);
        length += copied;
        at += step;
    }
    json_t *string = json_stringn(clean, length);
    free(clean);
    return string;
}

json_t *json_clean_text(const char *text) { return json_clean_string(text, strlen(text)); }
