/* Builds a text that records, for each byte, which byte of its source it came from. tokenizer_encode.c computes the
 * offsets of tokens by it.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/traced_text.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/text.h"

deberta_status traced_text_reserve(traced_text *traced, size_t bytes, deberta_error *err)
{
    if (bytes < INT32_MAX) {
        char *text = grown(traced->text, &traced->text_capacity, bytes, 1);
        if (text) traced->text = text;
        uint32_t *origin = grown(traced->origin, &traced->origin_capacity, bytes + 1, sizeof *origin);
        if (origin) traced->origin = origin;
        if (text && origin) return DEBERTA_OK;
    }
    DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a text of %zu bytes", bytes);
}

void traced_text_free(traced_text *traced)
{
    free(traced->text);
    free(traced->origin);
    *traced = (traced_text){0};
}

deberta_status traced_text_clean(traced_text *clean, const char *text, size_t bytes, size_t *replaced, size_t *first,
                                 deberta_error *err)
{
    clean->bytes = *replaced = *first = 0;
    DEBERTA_TRY(traced_text_reserve(clean, bytes, err));
    for (size_t at = 0; at < bytes;) {
        uint32_t character;
        const char *from = text + at;
        size_t length = utf8_decode(from, bytes - at, &character);
        DEBERTA_TRY(traced_text_reserve(clean, clean->bytes + UTF8_MAX_BYTES, err));
        if (character == UTF8_INVALID) {
            if ((*replaced)++ == 0) *first = at;
            traced_text_put(clean, UTF8_REPLACEMENT, strlen(UTF8_REPLACEMENT), at);
        } else {
            for (size_t i = 0; i < length; i++) traced_text_put(clean, from + i, 1, at + i);
        }
        at += length;
    }
    traced_text_end(clean, bytes);
    return DEBERTA_OK;
}
