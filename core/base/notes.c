/* Implements a growing list of sentences. SPDX-License-Identifier: MIT */
#include "core/base/notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

deberta_status notes_add(notes *list, deberta_error *err, const char *format, ...)
{
    va_list arguments;
    char *sentence = NULL;
    va_start(arguments, format);
    const int length = vasprintf(&sentence, format, arguments);
    va_end(arguments);
    if (length < 0) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a note");
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->sentences[i], sentence) == 0) {
            free(sentence);
            return DEBERTA_OK;
        }
    char **larger = grown(list->sentences, &list->capacity, list->count + 1, sizeof *larger);
    if (!larger) {
        free(sentence);
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a note");
    }
    list->sentences = larger;
    larger[list->count++] = sentence;
    return DEBERTA_OK;
}

const char *notes_at(const notes *list, size_t index) { return index < list->count ? list->sentences[index] : NULL; }

void notes_free(notes *list)
{
    for (size_t i = 0; i < list->count; i++) free(list->sentences[i]);
    free(list->sentences);
    *list = (notes){0};
}
