/* What the program says on stderr: errors, wrong usage, notes. SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "program/frame/option_scan.h"
#include "program/frame/unfinished.h"

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

/* Whose command the program runs: a program has one. */
static const char *at_work;

static void end_for_memory(void)
{
    unfinished_remove();
    fprintf(stderr, "deberta %s: out of memory\n", at_work);
    exit(EXIT_SYSTEM);
}

void say_when_memory_is_short(const command *command)
{
    at_work = command->name;
    memory_on_shortage(end_for_memory);
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
