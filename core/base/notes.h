/* Collects sentences for the caller about input that the library ignores. The library prints nothing, so it keeps them.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/status.h"

typedef struct notes {
    char **sentences;
    size_t count, capacity;
} notes;

/* Appends one sentence: the input found, its place, its effect here, and the remedy. A sentence that the list holds
 * already is not repeated. */
deberta_status notes_add(notes *list, deberta_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns sentence `index`, or NULL after the last. */
const char *notes_at(const notes *list, size_t index);
void notes_free(notes *list);
