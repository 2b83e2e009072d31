/* Prints the program's messages on stderr, and ends it after an error. SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "program/frame/option_scan.h"
#include "program/frame/unfinished.h"

/* ----------------------------------------------------------------------------------------------------- an early end */

static end_hook *hooks; /* list of hooks, the latest first */

void end_hook_add(end_hook *hook)
{
    hook->earlier = hooks;
    hooks = hook;
}

void end_hook_drop(end_hook *hook)
{
    while (hooks != hook) hooks = hooks->earlier;
    hooks = hook->earlier;
}

_Noreturn void end_program(int status)
{
    unfinished_remove();
    for (end_hook *hook; (hook = hooks);) {
        hooks = hook->earlier;
        status = hook->call(hook, status);
    }
    /* even after printing alone: a full disk must not look like success */
    if (!stream_flush(stdout)) {
        fprintf(stderr, "deberta: standard output cannot be written: %s\n", strerror(errno));
        if (status == EXIT_OK) status = EXIT_SYSTEM;
    }
    exit(status);
}

_Noreturn void usage_wrong_of(const common_options *options, const char *name, const char *format, va_list arguments)
{
    fprintf(stderr, "deberta %s: ", options->teller->name);
    if (name) fprintf(stderr, "--%s: ", name);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\nsee: deberta %s --help\n", options->command->name);
    end_program(EXIT_USAGE);
}

_Noreturn void usage_wrong(const common_options *options, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    usage_wrong_of(options, NULL, format, arguments);
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

_Noreturn void end_with(const common_options *options, int code, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "deberta %s: ", options->teller->name);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    end_program(code);
}

_Noreturn void work_failed(const common_options *options, const deberta_error *error)
{
    end_program(say_error(options, error));
}

void must(const common_options *options, deberta_status status, const deberta_error *error)
{
    if (status != DEBERTA_OK) work_failed(options, error);
}

/* name of the running command; the program runs one at a time */
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
