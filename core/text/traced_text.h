/* A text derived from another one, with the source offset of every byte.
 *
 * Cleaning, lower-casing and normalising each derive one; spans of tokens are mapped back through them, last one first.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <assert.h>
#include <stdint.h>

#include "core/base/status.h"

/* Must be zero-initialised; reusable. */
typedef struct traced_text {
    char *text;       /* [bytes] */
    uint32_t *origin; /* [bytes + 1], ascending: where in the source that began which gave this byte; last: the source's
                         end */
    size_t bytes, text_capacity, origin_capacity;
} traced_text;

/* Reserves memory for `bytes` in all. DEBERTA_E_MEMORY also at 2 GiB: offsets have 32 bits. */
deberta_status traced_text_reserve(traced_text *traced, size_t bytes, deberta_error *err);
void traced_text_free(traced_text *traced);

/* Both functions need memory reserved before. */
static inline void traced_text_put(traced_text *traced, const char *text, size_t bytes, size_t origin)
{
    assert(traced->bytes + bytes <= traced->text_capacity);
    for (size_t i = 0; i < bytes; i++) {
        traced->text[traced->bytes] = text[i];
        traced->origin[traced->bytes++] = (uint32_t)origin;
    }
}

static inline void traced_text_end(traced_text *traced, size_t origin)
{
    assert(traced->bytes < traced->origin_capacity);
    traced->origin[traced->bytes] = (uint32_t)origin;
}

/* Copies the text with every broken unit replaced by U+FFFD; *replaced counts them, *first is the byte of the first.
 * bytes < 2^31. DEBERTA_E_MEMORY is the only failure. */
deberta_status traced_text_clean(traced_text *clean, const char *text, size_t bytes, size_t *replaced, size_t *first,
                                 deberta_error *err);
