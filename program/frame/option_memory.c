/* What lives as long as the options of a command. SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/frame/option_scan.h"
#include "program/frame/unfinished.h"

option_memory *options_mark(const common_options *options) { return options->scan->memory; }

void options_release(const common_options *options, option_memory *mark)
{
    option_memory *next;
    for (option_memory *piece = options->scan->memory; piece != mark; piece = next) {
        next = piece->next;
        free(piece);
    }
    options->scan->memory = mark;
}

void options_free(common_options **options)
{
    if (!*options) return;
    option_scan *scan = (*options)->scan;
    options_release(*options, NULL);
    free(scan->given);
    free(scan->arguments);
    free(scan);
    free(*options);
    *options = NULL;
}

void *options_allocate(const common_options *options, size_t bytes)
{
    option_memory *piece = calloc(1, sizeof *piece + bytes);
    if (!piece) return NULL;
    piece->next = options->scan->memory;
    options->scan->memory = piece;
    return piece->bytes;
}

void *options_take(const common_options *options, size_t count, size_t bytes_each)
{
    size_t bytes;
    void *taken = __builtin_mul_overflow(count, bytes_each, &bytes) || bytes > SIZE_MAX / 2
                      ? NULL
                      : options_allocate(options, bytes);
    if (taken) return taken;
    unfinished_remove();
    exit(say_no_memory(options));
}

void *options_grown(const common_options *options, void *items, size_t *capacity, size_t count, size_t bytes_each)
{
    if (count < *capacity) return items;
    *capacity = 2 * *capacity + 16;
    void *larger = options_take(options, *capacity, bytes_each);
    return count ? memcpy(larger, items, count * bytes_each) : larger;
}

const char *options_text(const common_options *options, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, arguments);
    char *text = options_take(options, (size_t)length + 1, 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(arguments);
    return text;
}
