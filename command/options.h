/* The command line: one table a command, from which parsing, --help, the man page check and shell completion are made.
 *
 * An option that takes a value takes the next argument whatever it looks like: values may be empty or begin with a
 * dash.
 * `--name=value` works too. Arguments that are no options are positional; `--` ends the options; `-` is a positional
 * argument.
 *
 * SPDX-License-Identifier: MIT */
#ifndef COMMAND_OPTIONS_H
#define COMMAND_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/deberta.h"

/* Exit codes of the program. */
enum { EXIT_OK = 0, EXIT_CHECK_FAILED = 1, EXIT_USAGE = 2, EXIT_INPUT = 3, EXIT_SYSTEM = 4 };

typedef struct option_spec {
    const char *name;  /* without dashes */
    char letter;       /* 0: none */
    const char *value; /* what --help calls the value; NULL: a flag */
    const char *help;  /* one line */
} option_spec;

typedef struct parsed_options parsed_options;

typedef struct command {
    const char *name, *summary; /* the summary is one line, lower case, no full stop */
    const char *arguments;      /* positional ones as in the usage line, e.g. "MODEL" or "[MODEL]" */
    size_t min_arguments, max_arguments;
    const option_spec *options; /* ends with name NULL; the common options come on top */
    size_t most_outputs;        /* how often --out may be given; 0 means once */
    const char *example;        /* whole lines, the way one would type them */
    int (*run)(const parsed_options *options);
    /* Commands of two words: the first argument chooses one of these, whose names are "<name> <word>". NULL-terminated,
     * or NULL. If none has that word, the command itself runs. */
    const struct command *const *subcommands;
    const char *claims; /* of a study: what it puts to the test */
} command;

/* Takes `candidate` as the nearest if it is nearer to a mistyped name than all before (*least: begin with SIZE_MAX) and
 * near enough to be what was meant. */
void options_nearest(const char *name, size_t length, const char *candidate, size_t *least, const char **nearest);

/* The second word of a subcommand's name. */
const char *command_word(const command *subcommand);

/* Parses, or prints why not and returns EXIT_USAGE; --help and --version print and return EXIT_OK with *options NULL.
 */
int options_parse(parsed_options **options, const command *command, int argc, char **argv);
void options_free(parsed_options **options);
void options_print_help(const command *command);
void options_print_version(void);

size_t options_argument_count(const parsed_options *options);
const char *options_argument(const parsed_options *options, size_t index); /* NULL behind the last */
bool options_has(const parsed_options *options, const char *name);
bool options_knows(const parsed_options *options, const char *name); /* the command has such an option */
/* The last value given, or fallback. */
const char *options_value(const parsed_options *options, const char *name, const char *fallback);
/* Whether it was given, or would have been, as one of the common options: a command's own of the same name hides that.
 */
bool options_is_common(const parsed_options *options, const char *name);
/* All values in order: index 0, 1 ... until NULL. */
const char *options_nth_value(const parsed_options *options, const char *name, size_t index);
/* Numbers, checked: on a wrong one they print what was expected and return false (the command returns EXIT_USAGE). */
bool options_size(const parsed_options *options, const char *name, size_t fallback, size_t lowest, size_t highest,
                  size_t *value);
bool options_u64(const parsed_options *options, const char *name, uint64_t fallback, uint64_t *value);
bool options_number(const parsed_options *options, const char *name, double fallback, double *value);
/* Sizes in bytes with K, M, G suffixes. */
bool options_bytes(const parsed_options *options, const char *name, size_t fallback, size_t *value);
/* One of the names in choices (NULL-terminated); *index is its place. */
bool options_choice(const parsed_options *options, const char *name, const char *const *choices, size_t fallback,
                    size_t *index);
/* The command line as typed, for provenance, without the values of the options named in `without` (NULL-terminated). */
char *options_command_line(const parsed_options *options, const char *const *without);
const command *options_command(const parsed_options *options);
/* Zeroed memory that lives as long as the options; NULL when there is none. */
void *options_allocate(const parsed_options *options, size_t bytes);

extern const option_spec common_options[];
extern const command *const commands[]; /* NULL-terminated; in main.c */

/* Prints "deberta <command>: <message>" to stderr and returns the exit code that belongs to the status. */
int report_error(const parsed_options *options, const deberta_error *error);
/* Says that memory ran out; EXIT_SYSTEM. */
int report_no_memory(const parsed_options *options);
/* A wrong command line: prints the sentence and where to read on, returns EXIT_USAGE. */
int report_usage(const parsed_options *options, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
