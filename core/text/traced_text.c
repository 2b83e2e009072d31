/* A text that remembers where its bytes came from.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/traced_text.h"

#include <stdlib.h>

#include "core/base/grow.h"

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
