/* What the program says on stderr: errors, wrong usage, notes. SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>

#include "command/option_scan.h"

static void say(const common_options *options, const char *name, const char *format, va_list arguments)
{
    fprintf(stderr, "deberta %s: ", options->command->name);
    if (name) fprintf(stderr, "--%s: ", name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

static int point_to_help(const common_options *options)
{
    fprintf(stderr, "see: deberta %s --help\n", options->command->name);
    return EXIT_USAGE;
}

int say_usage(const common_options *options, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(options, NULL, format, arguments);
    va_end(arguments);
    return point_to_help(options);
}

int option_wrong(const common_options *options, const void *member, const char *format, ...)
{
    const option *row = option_of_member(options, member);
    va_list arguments;
    va_start(arguments, format);
    say(options, row ? row->name : NULL, format, arguments);
    va_end(arguments);
    return point_to_help(options);
}

int say_error(const common_options *options, const deberta_error *error)
{
    fprintf(stderr, "deberta %s: %s\n", options->command->name, error->message);
    switch (error->code) {
    case DEBERTA_E_MEMORY:
    case DEBERTA_E_SYSTEM: return EXIT_SYSTEM;
    default: return EXIT_INPUT;
    }
}

int say_no_memory(const common_options *options)
{
    return say_error(options, &(deberta_error){.code = DEBERTA_E_MEMORY, .message = "out of memory"});
}

void say_note(const common_options *options, const char *format, ...)
{
    if (options->quiet) return;
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}
