/* Declares the command line as tables of typed options, which give parsing, --help, suggestions, shell completion and
 * the check of the man page.
 *
 * A command has a struct that begins with common_options. Its tables say, option by option, which member of the struct
 * an option fills, of what type, in which range, and what it needs or excludes. options_parse fills the struct; the
 * command is a function of it. Nothing asks for an option by its name; a message about a value names its member:
 *
 *     typedef struct pack_options {
 *         common_options common;
 *         bool force;
 *         size_t layers;
 *     } pack_options;
 *     static const option own[] = {
 *         {"force", 0, NULL, "overwrite what is there", FLAG_AT(pack_options, force)},
 *         {"layers", 'l', "N", "how many", SIZE_AT(pack_options, layers, 1, 4096), .not_with = "force"},
 *         {.name = NULL},
 *     };
 *     static const option_group groups[] = {{own, 0, NULL}, {NULL, 0, NULL}};
 *
 * An option that takes a value takes the next argument whatever it looks like: values may be empty or begin with a
 * dash. `--name=value` works too. Arguments that are no options are positional; `--` ends the options; `-` is a
 * positional argument.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/deberta.h"

/* Exit codes of the program. */
enum { EXIT_OK = 0, EXIT_CHECK_FAILED = 1, EXIT_USAGE = 2, EXIT_INPUT = 3, EXIT_SYSTEM = 4, EXIT_AGAIN = 75 };

typedef struct command command;
typedef struct common_options common_options;
typedef struct option option;

/* All values of an option that may be repeated, in order. */
typedef struct text_list {
    const char *const *items; /* [count] */
    size_t count;
} text_list;

/* Interventions, and their text on the command line. */
typedef struct ablation_list {
    const deberta_ablation *items; /* [count] */
    size_t count;
    const char *text; /* NULL: none */
} ablation_list;

typedef enum progress_when { PROGRESS_AUTO, PROGRESS_NEVER } progress_when;

/* Options that every command takes; the first member of each command's own struct. */
struct common_options {
    const command *command;
    /* command whose name messages begin with: this one, or the one that runs it as a step */
    const struct command *teller;
    const struct command *const *commands; /* all commands of the program, NULL-terminated; NULL: unknown */
    const char *const *arguments;          /* [argument_count] positional arguments, followed by NULL */
    size_t argument_count;
    deberta_isa isa; /* value of --isa or DEBERTA_ISA */
    size_t threads;  /* 0: as in deberta_session_options */
    int reference;   /* a deberta_reference */
    int precision;   /* a deberta_precision */
    uint64_t seed;
    size_t memory_limit_bytes; /* 0: no limit */
    bool json, quiet, help, version;
    int progress;   /* a progress_when */
    text_list outs; /* values of --out */
    /* Set only if a command's own table has the option */
    ablation_list ablated;             /* value of --ablate */
    int format;                        /* value of --format, a result_format (output/text_table.h) */
    const struct deberta_ranks *ranks; /* NULL: a single process */
    struct option_scan *scan;          /* the scanned command line, and memory that lives as long */
};

typedef enum option_type {
    OPTION_UNTYPED, /* ends a table; no named row has it */
    OPTION_FLAG,    /* a bool */
    OPTION_SWITCH,  /* an int: 1 if the option was given */
    OPTION_TEXT,    /* a const char *; NULL: not given */
    OPTION_TEXTS,   /* a text_list */
    OPTION_SIZE,    /* a size_t, from low to high */
    OPTION_U64,     /* a uint64_t */
    OPTION_NUMBER,  /* a double, from least to most */
    OPTION_BYTES,   /* a size_t, with suffixes K, M, G, T */
    OPTION_CHOICE,  /* an int or an enumeration: the index in choices */
    OPTION_PARSED   /* any type, filled by the row's function */
} option_type;

/* Role of an option in the making of results (options_command_line). */
typedef enum option_role {
    OPTION_MAKES,  /* the option affects the results */
    OPTION_OUTPUT, /* a path of results; no two are the same file */
    OPTION_SHOWS,  /* the option affects how results are written */
    OPTION_TALKS   /* the option affects messages only */
} option_role;

/* Fills target from one value, or refuses it with option_wrong. */
typedef void (*option_parser)(common_options *options, const char *text, void *target);

struct option {
    const char *name;  /* name without dashes; NULL ends a table */
    char letter;       /* letter of the short form; 0: none */
    const char *value; /* name of the value in --help; NULL: the option is a flag */
    const char *help;  /* text of --help, in one line */
    option_type type;
    size_t at;                  /* offset of the member in the struct of the group */
    const char *const *choices; /* NULL-terminated list of words */
    size_t low, high;           /* range of OPTION_SIZE */
    double least, most;         /* range of OPTION_NUMBER; both 0: any */
    option_parser parse;
    /* names of options between blanks: one of the first list must be given, none of the second may be; names that the
     * command lacks are ignored */
    const char *needs, *not_with;
    bool adds_up;       /* whether a parser takes further values together with the earlier ones */
    bool tells_default; /* true: --help prints the default of the command's struct if it is in the range */
    option_role role;
};

/* The target of a row. The member's type is checked when the table is compiled. */
#define OPTION_AT(S, member, T) .at = offsetof(S, member) + 0 * sizeof(&((S *)0)->member == (T *)0)
#define FLAG_AT(S, member)      .type = OPTION_FLAG, OPTION_AT(S, member, bool)
#define SWITCH_AT(S, member)    .type = OPTION_SWITCH, OPTION_AT(S, member, int)
#define TEXT_AT(S, member)      .type = OPTION_TEXT, OPTION_AT(S, member, const char *)
#define TEXTS_AT(S, member)     .type = OPTION_TEXTS, OPTION_AT(S, member, text_list)
#define SIZE_AT(S, member, low_, high_)                                                                                \
    .type = OPTION_SIZE, .low = (low_), .high = (high_), OPTION_AT(S, member, size_t)
#define U64_AT(S, member) .type = OPTION_U64, OPTION_AT(S, member, uint64_t)
#define NUMBER_AT(S, member, least_, most_)                                                                            \
    .type = OPTION_NUMBER, .least = (least_), .most = (most_), OPTION_AT(S, member, double)
#define BYTES_AT(S, member) .type = OPTION_BYTES, OPTION_AT(S, member, size_t)
#define CHOICE_AT(S, member, names)                                                                                    \
    .type = OPTION_CHOICE, .choices = (names),                                                                         \
    .at = offsetof(S, member) + 0 * sizeof(char[sizeof(((S *)0)->member) == sizeof(int) ? 1 : -1])
#define PARSED_AT(S, member, function) .type = OPTION_PARSED, .parse = (function), .at = offsetof(S, member)

/* A table, and the offset of its struct in the command's. */
typedef struct option_group {
    const option *options; /* NULL ends the list of groups */
    size_t offset;
    const char *title; /* heading of its options in --help; NULL: "options" */
} option_group;

/* Whether and how a command's work is divided among several ranks. */
typedef enum command_spread {
    SPREADS_NOT,
    SPREADS_STEPS, /* ranks share the steps of a training */
    SPREADS_SHARDS /* ranks share the shards of a corpus */
} command_spread;

/* What a command writes to --out, with which the suffix of the name must agree (output_names.c). */
typedef enum command_writes {
    WRITES_TEXT,   /* text or, where it has --json, one document */
    WRITES_LINES,  /* text or, with --json, an object a line */
    WRITES_TABLE,  /* a table in the format of --format */
    WRITES_JSON,   /* a document */
    WRITES_FOLDER, /* a folder; with --one-batch as WRITES_TEXT */
    WRITES_PAGE,   /* a folder or a page */
    WRITES_OWN     /* tensors, figures: the command checks the suffix itself */
} command_writes;

struct command {
    const char *name, *summary; /* the summary is one line, lower case, no full stop */
    const char *arguments;      /* positional arguments as in the usage line: "MODEL" or "[MODEL]" */
    /* both 0: one argument for each of these words, of which a last one in brackets may be missing */
    size_t min_arguments, max_arguments;
    const option_group *groups; /* groups besides the common options */
    size_t size;                /* size of the command's struct; 0: common_options alone */
    const void *defaults;       /* initial state of the struct, `size` bytes; NULL: zeros */
    const option *options;      /* one untitled table instead of groups */
    size_t most_outputs;        /* how often --out may be given; 0 means once */
    command_writes writes;
    const char *example; /* whole command lines as typed */
    int (*run)(const common_options *options);
    /* Commands of two words, named "<name> <word>"; the first argument chooses one. NULL-terminated, or NULL. The
     * command itself runs if none has that word. */
    const struct command *const *subcommands;
    command_spread spreads; /* division among several ranks (program/cluster) */
    const char *without; /* common options, between blanks, that change nothing here: the command does not take them */
};

/* Common options left out by commands that open no model, and by commands that draw nothing at random and take no
 * time. */
#define WITHOUT_MODEL  "isa threads reference precision memory-limit"
#define WITHOUT_CHANCE "seed progress"

extern const option common_option_table[];

/* ------------------------------------------------------------------------------------------------------- parsing */

/* Parses a command line, or says what is wrong and ends the program; --help and --version print and end it too.
 * commands: all of the program, to look up an unknown option in; may be NULL. */
common_options *options_parse(const command *command, const struct command *const *commands, int argc, char **argv);
void options_free(common_options **options);
/* Returns true if the option that fills this member of the command's struct was on the command line. */
bool option_given(const common_options *options, const void *member);
/* Returns true if the command has an option that fills this member. */
bool option_exists(const common_options *options, const void *member);
/* Memory of a scope (output/scope.h) that lives as long as the options; filled with zeros, or with a printed text. */
struct scope *options_memory(const common_options *options);
void *options_take(const common_options *options, size_t count, size_t bytes_each);
/* Returns `items`, or a larger copy of its `count` elements, with room for one more; *capacity doubles when it is
 * reached. */
void *options_grown(const common_options *options, void *items, size_t *capacity, size_t count, size_t bytes_each);
const char *options_text(const common_options *options, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *options_print(const common_options *options, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
/* Reads names with commas between them: *bits gets bit k for names[k], which ends with NULL. Returns NULL, or the
 * first part, of *length bytes, that is no such name. */
const char *options_names_read(const char *text, const char *const *names, unsigned *bits, int *length);
/* options_release frees the options' memory that was allocated since options_mark, for work on one text of many. */
struct scope_piece *options_mark(const common_options *options);
void options_release(const common_options *options, struct scope_piece *mark);
/* Returns the command line in a form that a shell accepts, without options that affect messages only. with_outputs:
 * includes the options for destination and format. Lives as long as the options. */
const char *options_command_line(const common_options *options, bool with_outputs);

/* Begins a command called by another: its struct in its initial state with one argument. Free it with options_free,
 * before whatever it was given. */
common_options *options_begin(const command *command, const common_options *caller, const char *argument);
/* Sets the option that fills a member of the struct as if it had been typed; text NULL: a flag. */
void option_give(common_options *options, const void *member, const char *text);
/* Sets the option with the name of the caller's, if the caller was given it and the command has it. member: of the
 * caller. */
void option_inherit(common_options *options, const common_options *caller, const void *member);
/* Fills the members, runs the command, and returns its exit code. */
int options_run(common_options *options);

/* Returns "microsoft" or "hf". */
const char *reference_name(int reference);
extern const char *const precision_choices[]; /* names of the precisions, NULL-terminated, for a row with CHOICE_AT */
/* Returns the last --out, or NULL for standard output. */
const char *options_out(const common_options *options);
/* Refuses to write to a path that the command reads: a file among its arguments and the values of its options,
 * standard input, a file of MODEL's folder. The outputs on the command line are checked already; this is for names
 * derived from them. */
void option_refuse_input(const common_options *options, const char *path);
/* Refuses an output that is, or lies in, an input that the command line does not name. what: how the message calls the
 * input. */
void option_refuse_place(const common_options *options, const char *what, const char *input, const char *output);

/* ---------------------------------------------------------------------------------------------- help, suggestions */

void options_print_help(const command *command);
void options_print_version(void);
/* Calls `visit` for every table of the command, the common one last. */
void options_visit(const command *command, void (*visit)(void *context, const option_group *group), void *context);
/* Returns the row of that name, a command's own before a common one; NULL if there is none. */
const option *options_find(const command *command, const char *name);
/* Returns true if a row is in the common table rather than the command's own. */
bool option_is_common(const option *row);
/* Keeps `candidate` as the nearest if it is nearer to a mistyped name than all before (*least, which begins with
 * SIZE_MAX) and near enough to be meant. */
void options_nearest(const char *name, size_t length, const char *candidate, size_t *least, const char **nearest);
/* Returns, as the end of a sentence, this program's option for another program's name: "here it is --learning-rate";
 * NULL if the name is unknown. Lives as long as the options. */
const char *options_known_elsewhere(const common_options *options, const command *command, const char *name,
                                    size_t length);
/* Returns, as the end of a sentence, this program's word for another program's second word; NULL if it is unknown. */
const char *options_word_elsewhere(const command *command, const char *word);
/* Returns, as the end of a sentence, what replaces an option that the command once had; NULL if it never had one of
 * this name. */
const char *options_moved(const command *command, const char *name, size_t length);
/* Returns the second word of a subcommand's name. */
const char *command_word(const command *subcommand);

/* ------------------------------------------------------------------------------------------------------ messages */

/* Returns the name of the option that fills the member, without dashes. */
const char *option_name(const common_options *options, const void *member);
/* Prints "note: --name: <why>" for the option that fills the member, if it was given: it changes nothing in this run.
 */
void option_note_unused(const common_options *options, const void *member, const char *why);
/* The functions below report an error and do not return: they end the program and remove unfinished output. */

/* Reports "deberta <command>: --name: <sentence>" for the option that fills the member. Exit code EXIT_USAGE. */
_Noreturn void option_wrong(const common_options *options, const void *member, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Reports a wrong command line, and refers to --help. Exit code EXIT_USAGE. */
_Noreturn void usage_wrong(const common_options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Reports "deberta <command>: <sentence>", and ends the program with this exit code. */
_Noreturn void end_with(const common_options *options, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Reports an error of the library, and ends the program with the exit code for its status. */
_Noreturn void work_failed(const common_options *options, const deberta_error *error);
/* Calls work_failed unless the status is DEBERTA_OK. */
void must(const common_options *options, deberta_status status, const deberta_error *error);
/* Prints the error for callers that must clean up first; returns the exit code. */
int say_error(const common_options *options, const deberta_error *error);

/* Ends the program: removes unfinished files, calls the hooks, latest first, and checks that all output was
 * written. */
_Noreturn void end_program(int status);
typedef struct end_hook {
    int (*call)(struct end_hook *hook, int status); /* returns the exit code of the program */
    struct end_hook *earlier;
} end_hook;
void end_hook_add(end_hook *hook);
void end_hook_drop(end_hook *hook); /* drops the hook and all hooks added after it */

/* Installs the hook for memory shortage (output/scope.h). It removes unfinished outputs, says so in this command's
 * name, and ends the program. */
void say_when_memory_is_short(const command *command);
/* Prints a note on stderr, unless --quiet was given. */
void say_note(const common_options *options, const char *format, ...) __attribute__((format(printf, 2, 3)));
