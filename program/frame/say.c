/* What the program says on stderr: errors, wrong usage, notes. SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>

#include "program/frame/option_scan.h"

int say_usage_of(const common_options *options, const char *name, const char *format, va_list arguments)
{
    fprintf(stderr, "deberta %s: ", options->teller->name);
    if (name) fprintf(stderr, "--%s: ", name);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\nsee: deberta %s --help\n", options->command->name);
    return EXIT_USAGE;
}

int say_usage(const common_options *options, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int status = say_usage_of(options, NULL, format, arguments);
    va_end(arguments);
    return status;
}

int say_error(const common_options *options, const deberta_error *error)
{
    fprintf(stderr, "deberta %s: %s\n", options->teller->name, error->message);
    switch (error->code) {
    case DEBERTA_E_MEMORY:
    case DEBERTA_E_SYSTEM: return EXIT_SYSTEM;
    case DEBERTA_E_NOT_FINITE: return EXIT_CHECK_FAILED;
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
