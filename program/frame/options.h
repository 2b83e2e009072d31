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

/* Interventions, and how they were typed. */
typedef struct ablation_list {
    const deberta_ablation *items; /* [count] */
    size_t count;
    const char *text; /* NULL: none */
} ablation_list;

typedef enum progress_when { PROGRESS_AUTO, PROGRESS_NEVER } progress_when;

/* Options that every command takes; the first member of each command's own struct. */
struct common_options {
    const command *command;
    const struct command *teller;          /* whose name errors bear: the command, or that of which it is a step */
    const struct command *const *commands; /* of the program, NULL-terminated; NULL: not known */
    const char *const *arguments;          /* [argument_count] positional ones; NULL after the last */
    size_t argument_count;
    deberta_isa isa; /* --isa or DEBERTA_ISA */
    size_t threads;  /* 0: as in deberta_session_options */
    int reference;   /* deberta_reference */
    int precision;   /* deberta_precision */
    uint64_t seed;
    size_t memory_limit_bytes; /* 0: none */
    bool json, quiet, help, version;
    int progress;   /* progress_when */
    text_list outs; /* --out */
    /* Set only if a command's own table has them: */
    ablation_list ablated;             /* --ablate */
    int format;                        /* --format, a result_format (output/text_table.h) */
    const struct deberta_ranks *ranks; /* NULL: this process alone */
    struct option_scan *scan;          /* what was typed, and the memory that lives as long as this struct */
};

typedef enum option_type {
    OPTION_UNTYPED, /* ends a table; no row with a name has it */
    OPTION_FLAG,    /* bool */
    OPTION_SWITCH,  /* int: 1 where it was given */
    OPTION_TEXT,    /* const char *; NULL: not given */
    OPTION_TEXTS,   /* text_list */
    OPTION_SIZE,    /* size_t, from low to high */
    OPTION_U64,     /* uint64_t */
    OPTION_NUMBER,  /* double, from least to most */
    OPTION_BYTES,   /* size_t, with suffixes K, M, G, T */
    OPTION_CHOICE,  /* int or an enumeration: the place in choices */
    OPTION_PARSED   /* anything, by a function of the row */
} option_type;

/* Role of an option in the making of results (options_command_line). */
typedef enum option_role {
    OPTION_MAKES,  /* it does */
    OPTION_OUTPUT, /* a path where results go: no two are the same file */
    OPTION_SHOWS,  /* how they are written */
    OPTION_TALKS   /* what is said meanwhile */
} option_role;

/* Fills target from one value, or refuses it (option_wrong). */
typedef void (*option_parser)(common_options *options, const char *text, void *target);

struct option {
    const char *name;  /* without dashes; NULL ends a table */
    char letter;       /* 0: none */
    const char *value; /* what --help calls the value; NULL: a flag */
    const char *help;  /* one line */
    option_type type;
    size_t at;                  /* offset of the member in the struct of the group */
    const char *const *choices; /* NULL-terminated */
    size_t low, high;           /* of OPTION_SIZE */
    double least, most;         /* of OPTION_NUMBER; both 0: any */
    option_parser parse;
    const char *needs, *not_with; /* names of options, between blanks: one of them must be given, none of them may be;
                                     those that the command lacks count for nothing */
    bool tells_default;           /* --help prints the default of the command's struct, if it is in the range */
    option_role role;
};

/* The typed end of a row: where the value goes. The member's type is checked when the table is compiled. */
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

/* A table and where its struct lies in the command's. */
typedef struct option_group {
    const option *options; /* NULL ends the list of groups */
    size_t offset;
    const char *title; /* above its options in --help; NULL: "options" */
} option_group;

/* Division of a command's work among several ranks. */
typedef enum command_spread { SPREADS_NOT, SPREADS_STEPS /* of a training */, SPREADS_SHARDS } command_spread;

/* What a command writes to --out, with which the suffix of the name must agree (output_names.c). */
typedef enum command_writes {
    WRITES_TEXT,   /* text or, where it has --json, one document */
    WRITES_LINES,  /* text or, with --json, an object a line */
    WRITES_TABLE,  /* what --format says */
    WRITES_JSON,   /* a document */
    WRITES_FOLDER, /* a folder; with --one-batch as WRITES_TEXT */
    WRITES_PAGE,   /* a folder or a page */
    WRITES_OWN     /* what the command itself looks at: tensors, figures */
} command_writes;

struct command {
    const char *name, *summary;          /* the summary is one line, lower case, no full stop */
    const char *arguments;               /* positional ones as in the usage line, e.g. "MODEL" or "[MODEL]" */
    size_t min_arguments, max_arguments; /* both 0: as many as these words, of which one in brackets may be missing */
    const option_group *groups;          /* the common options come on top */
    size_t size;                         /* of the command's struct; 0: common_options alone */
    const void *defaults;                /* its first state, `size` bytes; NULL: zeros */
    const option *options;               /* one untitled table instead of groups */
    size_t most_outputs;                 /* how often --out may be given; 0 means once */
    command_writes writes;
    const char *example; /* whole lines, the way one would type them */
    int (*run)(const common_options *options);
    /* Commands of two words: the first argument chooses one of these, whose names are "<name> <word>". NULL-terminated,
     * or NULL. If none has that word, the command itself runs. */
    const struct command *const *subcommands;
    command_spread spreads; /* over several ranks (program/cluster) */
    const char
        *without; /* names of common options that would change nothing here, between blanks: it has none of them */
};

/* Options left out by commands that open no model, and by those that draw nothing at random and have nothing to wait
 * for. */
#define WITHOUT_MODEL  "isa threads reference precision memory-limit"
#define WITHOUT_CHANCE "seed progress"

extern const option common_option_table[];

/* ------------------------------------------------------------------------------------------------------- parsing */

/* Parses, or says why not and ends the program; --help and --version print, and end it. commands: all of the program,
 * among which the message about an unknown option looks for one that has it; may be NULL. */
common_options *options_parse(const command *command, const struct command *const *commands, int argc, char **argv);
void options_free(common_options **options);
/* Whether the option that fills this member of the command's struct was on the command line. */
bool option_given(const common_options *options, const void *member);
/* Whether the command has such an option at all. */
bool option_exists(const common_options *options, const void *member);
/* Memory of a scope (output/scope.h) that lives as long as the options: zeros, and a printed text. */
struct scope *options_memory(const common_options *options);
void *options_take(const common_options *options, size_t count, size_t bytes_each);
/* `items` or a larger copy of its `count` elements, with room for one more: doubled where *capacity is reached. */
void *options_grown(const common_options *options, void *items, size_t *capacity, size_t count, size_t bytes_each);
const char *options_text(const common_options *options, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *options_print(const common_options *options, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
/* Reads names with commas between them: *bits gets bit k for names[k], which ends with NULL. Returns NULL, or the first
 * part that is none of them, of *length bytes. */
const char *options_names_read(const char *text, const char *const *names, unsigned *bits, int *length);
/* options_release frees what was taken since options_mark: for the memory of one text among many. */
struct scope_piece *options_mark(const common_options *options);
void options_release(const common_options *options, struct scope_piece *mark);
/* The command line as a shell would take it again, without what is only said meanwhile; with_outputs: with the options
 * that say where results go and how they are written. Lives as long as the options. */
const char *options_command_line(const common_options *options, bool with_outputs);

/* A command called by another: its struct in its first state with one argument. Freed with options_free, not before
 * what it was given. */
common_options *options_begin(const command *command, const common_options *caller, const char *argument);
/* The option that fills a member of the struct, as if it had been typed; text NULL: a flag. */
void option_give(common_options *options, const void *member, const char *text);
/* The option of this name as the caller was given it, if it was and the command has it. member: of the caller. */
void option_inherit(common_options *options, const common_options *caller, const void *member);
/* Fills the members and runs the command. Its exit code. */
int options_run(common_options *options);

/* "microsoft" or "hf". */
const char *reference_name(int reference);
extern const char *const precision_choices[]; /* the names, NULL after the last: of a row with CHOICE_AT */
/* The last --out, or NULL: standard output. */
const char *options_out(const common_options *options);
/* Refuses to write to what the command reads: a file among its arguments and the values of its options, standard input,
 * a file of MODEL's folder. All outputs of the command line have been asked; for names that are made from them. */
void option_refuse_input(const common_options *options, const char *path);

/* ---------------------------------------------------------------------------------------------- help, suggestions */

void options_print_help(const command *command);
void options_print_version(void);
/* Calls visit for every table of the command, the common one last. */
void options_visit(const command *command, void (*visit)(void *context, const option_group *group), void *context);
/* The row of that name in the command's tables: its own hides a common one. NULL: none. */
const option *options_find(const command *command, const char *name);
/* Is it a row of the common table, not a command's own? */
bool option_is_common(const option *row);
/* Takes `candidate` as the nearest if it is nearer to a mistyped name than all before (*least: begin with SIZE_MAX) and
 * near enough to be what was meant. */
void options_nearest(const char *name, size_t length, const char *candidate, size_t *least, const char **nearest);
/* What another program's name of an option is here, as the end of a sentence: "here it is --learning-rate"; NULL: it is
 * none that is known. Lives as long as the options. */
const char *options_known_elsewhere(const common_options *options, const command *command, const char *name,
                                    size_t length);
/* What another program's second word is here, as the end of a sentence; NULL: it is none that is known. */
const char *options_word_elsewhere(const command *command, const char *word);
/* What an option that the command once had is now, as the end of a sentence; NULL: it never had one of this name. */
const char *options_moved(const command *command, const char *name, size_t length);
/* The second word of a subcommand's name. */
const char *command_word(const command *subcommand);

/* ------------------------------------------------------------------------------------------------------ messages */

/* Name of the option that fills the member, without dashes. */
const char *option_name(const common_options *options, const void *member);
/* Functions that have found something wrong say so and do not return: the program ends, without what is unfinished. */

/* "deberta <command>: --name: <sentence>", the option being the one that fills the member. Exit code EXIT_USAGE. */
_Noreturn void option_wrong(const common_options *options, const void *member, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A wrong command line: the sentence, and where to read on. EXIT_USAGE. */
_Noreturn void usage_wrong(const common_options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "deberta <command>: <sentence>", and this exit code. */
_Noreturn void end_with(const common_options *options, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* An error of the library, and the exit code that belongs to its status. */
_Noreturn void work_failed(const common_options *options, const deberta_error *error);
/* work_failed, unless all went well. */
void must(const common_options *options, deberta_status status, const deberta_error *error);
/* Prints the error for callers that must clean up first; returns the exit code. */
int say_error(const common_options *options, const deberta_error *error);

/* Ends the program: removes what is unfinished, calls the hooks, the latest first, and looks whether all that was
 * printed could be written. */
_Noreturn void end_program(int status);
typedef struct end_hook {
    int (*call)(struct end_hook *hook, int status); /* returns the status that the program ends with */
    struct end_hook *earlier;
} end_hook;
void end_hook_add(end_hook *hook);
void end_hook_drop(end_hook *hook); /* with those that were added after it */

/* Installs the hook that ends the program when memory is short (output/scope.h), with a sentence in this command's
 * name, after unfinished outputs are removed. */
void say_when_memory_is_short(const command *command);
/* A note on stderr unless --quiet. */
void say_note(const common_options *options, const char *format, ...) __attribute__((format(printf, 2, 3)));
