/* Allocates memory that lives as long as the options of a command. SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdlib.h>

#include "program/frame/option_scan.h"

struct scope_piece *options_mark(const common_options *options) { return scope_mark(&options->scan->memory); }

void options_release(const common_options *options, struct scope_piece *mark)
{
    scope_release(&options->scan->memory, mark);
}

void options_free(common_options **options)
{
    if (!*options) return;
    option_scan *scan = (*options)->scan;
    scope_free(&scan->memory);
    free(scan);
    free(*options);
    *options = NULL;
}

scope *options_memory(const common_options *options) { return &options->scan->memory; }

void *options_take(const common_options *options, size_t count, size_t bytes_each)
{
    return scope_take(&options->scan->memory, count, bytes_each);
}

void *options_grown(const common_options *options, void *items, size_t *capacity, size_t count, size_t bytes_each)
{
    return scope_grown(&options->scan->memory, items, capacity, count, bytes_each);
}

const char *options_print(const common_options *options, const char *format, va_list arguments)
{
    return scope_print(&options->scan->memory, format, arguments);
}

const char *options_text(const common_options *options, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *text = options_print(options, format, arguments);
    va_end(arguments);
    return text;
}
