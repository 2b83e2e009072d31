/* Declares the parser's view of a command line. Private to command/. SPDX-License-Identifier: MIT */
#pragma once

#include <stdarg.h>

#include "output/scope.h"
#include "program/frame/options.h"

typedef struct given_option {
    const option *option;
    size_t offset;     /* of its group's struct */
    const char *value; /* NULL: a flag */
} given_option;

typedef struct option_scan {
    int argc;
    char **argv;
    size_t given_count;
    given_option *given;               /* [argc] */
    const char **arguments;            /* [argc + 1] */
    const given_option *surplus_after; /* the option right before the first argument too many; NULL: no option */
    scope memory;                      /* of what lives as long as the options */
} option_scan;

/* The command's table that has the name or, without one, the letter; its own hide the common ones. */
typedef struct found_option {
    const option *option;
    size_t offset;
} found_option;
found_option option_find(const command *command, const char *name, size_t length, char letter);
/* Whether the command lacks this row of the common table. */
bool option_is_absent(const command *command, const option *row);

/* A tier by name into options->isa; one that cannot run here is wrong usage. source: "--isa" or the variable's name. */
void common_isa_read(common_options *options, const char *source, const char *name);

/* usage_wrong of an option by its name, or NULL. */
_Noreturn void usage_wrong_of(const common_options *options, const char *name, const char *format, va_list arguments);

/* The row that fills a member of the command's struct; NULL: none does. */
const option *option_of_member(const common_options *options, const void *member);

/* Fills the members of the command's struct from what was given, in order, and checks what excludes or needs what. */
void option_values_fill(common_options *options);
/* Refuses outputs of one name, and those that the command reads. */
void option_outputs_check(const common_options *options);
/* Takes a name such as x.json for --json, where the command has it. */
void output_names_choose(common_options *options);
/* Refuses an --out whose suffix names something else than what is written there. */
void output_names_check(const common_options *options);
