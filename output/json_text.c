/* Replaces broken UTF-8 before jansson sees a string. SPDX-License-Identifier: MIT */
#include "output/json_text.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "output/scope.h"

json_t *json_clean_string(const char *text, size_t bytes)
{
    json_t *string = utf8_valid_prefix(text, bytes, NULL) == bytes ? json_stringn(text, bytes) : NULL;
    if (string) return string;
    char *clean = memory_take(3 * bytes + 1, 1);
    size_t length = 0;
    for (size_t at = 0; at < bytes;) {
        uint32_t character;
        const size_t step = utf8_decode(text + at, bytes - at, &character);
        const size_t copied = character == UTF8_INVALID ? strlen(UTF8_REPLACEMENT) : step;
        memcpy(clean + length, character == UTF8_INVALID ? UTF8_REPLACEMENT : text + at, copied);
        length += copied;
        at += step;
    }
    string = json_stringn(clean, length);
    if (!string) memory_short();
    free(clean);
    return string;
}

json_t *json_clean_text(const char *text) { return json_clean_string(text, strlen(text)); }

void json_put(json_t *object, const char *name, json_t *value)
{
    if (json_object_set_new(object, name, value) != 0) memory_short();
}

void json_add(json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) != 0) memory_short();
}
