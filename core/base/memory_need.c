/* Parts of a piece of work are added up, and a sentence names them where they exceed the limit.
 *
 * SPDX-License-Identifier: MIT */
#include "core/base/memory_need.h"

#include <stdint.h>
#include <stdio.h>

byte_text bytes_describe(size_t bytes)
{
    byte_text described;
    if (bytes < 1 << 20)
        snprintf(described.text, sizeof described.text, "%zu bytes", bytes);
    else
        snprintf(described.text, sizeof described.text, "%.1f MiB (%zu bytes)", (double)bytes / (1 << 20), bytes);
    return described;
}

deberta_status memory_need_check(const memory_need *need, size_t limit_bytes, deberta_error *err)
{
    size_t total;
    if (!size_add(need->model_bytes, need->session_bytes, &total) || !size_add(total, need->kept_bytes, &total))
        total = SIZE_MAX;
    if (limit_bytes == 0 || total <= limit_bytes) return DEBERTA_OK;
    if (need->kept_bytes == 0)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "needs %s: %s for the model, %s for the session; the limit is %s",
                     bytes_describe(total).text, bytes_describe(need->model_bytes).text,
                     bytes_describe(need->session_bytes).text, bytes_describe(limit_bytes).text);
    DEBERTA_FAIL(err, DEBERTA_E_MEMORY,
                 "needs %s: %s for the model, %s for the session, %s to keep attention and hidden states; the limit is "
                 "%s; choose fewer layers or components",
                 bytes_describe(total).text, bytes_describe(need->model_bytes).text,
                 bytes_describe(need->session_bytes).text, bytes_describe(need->kept_bytes).text,
                 bytes_describe(limit_bytes).text);
}
