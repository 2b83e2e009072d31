/* Declares the parser's view of a command line, for program/frame alone. SPDX-License-Identifier: MIT */
#pragma once

#include <stdarg.h>
#include <string.h>

#include "output/scope.h"
#include "program/frame/options.h"

typedef struct given_option {
    const option *option;
    size_t offset;     /* offset of the member in its group's struct */
    const char *value; /* NULL: a flag */
} given_option;

typedef struct option_scan {
    int argc;
    char **argv;
    size_t given_count;
    given_option *given;               /* [argc] */
    const char **arguments;            /* [argc + 1] */
    const given_option *surplus_after; /* option right before the first surplus argument; NULL: no option */
    scope memory;                      /* owner of all memory that lives as long as the options */
} option_scan;

/* Returns true if the command line gives an option of this long name. */
static inline bool option_scan_has(const option_scan *scan, const char *name)
{
    for (size_t k = 0; k < scan->given_count; k++)
        if (strcmp(scan->given[k].option->name, name) == 0) return true;
    return false;
}

/* The row that option_find finds by its name or, without a name, by its letter, and the offset of its group's struct; a
 * command's own rows hide common ones. */
typedef struct found_option {
    const option *option;
    size_t offset;
} found_option;
found_option option_find(const command *command, const char *name, size_t length, char letter);
/* Returns true if the command does not take this row of the common table. */
bool option_is_absent(const command *command, const option *row);

/* Reads the name of a tier into options->isa; a tier that cannot run here is wrong usage. source: "--isa" or the
 * variable's name. */
void common_isa_read(common_options *options, const char *source, const char *name);

/* Reports wrong usage of an option by its name; NULL: of the command line as a whole. */
_Noreturn void usage_wrong_of(const common_options *options, const char *name, const char *format, va_list arguments);

/* Returns the row that fills a member of the command's struct; NULL if none does. */
const option *option_of_member(const common_options *options, const void *member);

/* Fills the members of the command's struct in the order of the command line, and checks which options exclude or
 * need others. */
void option_values_fill(common_options *options);
/* Refuses two outputs of one name, and outputs that the command reads. */
void option_outputs_check(const common_options *options);
/* Takes a name such as x.json for --json, where the command has it. */
void output_names_choose(common_options *options);
/* Refuses an --out whose suffix names something else than what is written there. */
void output_names_check(const common_options *options);
