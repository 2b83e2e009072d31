/* Scans a command line into options and arguments. SPDX-License-Identifier: MIT */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "program/frame/option_scan.h"

/* ------------------------------------------------------------------------------------------------ unknown options */

typedef struct name_search {
    const command *command;
    const char *name;
    size_t length, least;
    const char *nearest;
} name_search;

static void consider_group(void *context, const option_group *group)
{
    name_search *search = context;
    for (const option *row = group->options; row->name; row++)
        if (!option_is_absent(search->command, row))
            options_nearest(search->name, search->length, row->name, &search->least, &search->nearest);
}

typedef struct taker_list {
    char text[512];
    size_t used;
} taker_list;

/* Adds a command that takes the option, found by its name or, if that is NULL, by its letter. */
static void add_taker(taker_list *takers, const command *command, const char *name, size_t length, char letter)
{
    if (takers->used >= sizeof takers->text || !option_find(command, name, length, letter).option) return;
    takers->used += (size_t)snprintf(takers->text + takers->used, sizeof takers->text - takers->used, "%s%s",
                                     takers->used ? ", " : "", command->name);
}

/* Lists the commands with the same first word that take the option: "bench, bench kernel". */
static taker_list find_takers(const common_options *options, const char *name, size_t length, char letter)
{
    const char *own = options->command->name;
    const size_t first_word = strcspn(own, " ");
    taker_list takers = {0};
    for (const command *const *of = options->commands; of && *of; of++) {
        if (strncmp((*of)->name, own, first_word) != 0 || (*of)->name[first_word]) continue;
        add_taker(&takers, *of, name, length, letter);
        for (const command *const *sub = (*of)->subcommands; sub && *sub; sub++)
            add_taker(&takers, *sub, name, length, letter);
    }
    return takers;
}

/* Returns true if the command needs a second word: "sequence|choice|token|qa MODEL". */
static bool needs_word(const command *command)
{
    return strcspn(command->arguments, "|") < strcspn(command->arguments, "[ ");
}

/* Returns the common row of this name or letter that the command does not take; NULL: none. */
static const option *common_option_named(const command *command, const char *name, size_t length, char letter)
{
    for (const option *row = common_option_table; row->name; row++) {
        const bool meant = name ? strlen(row->name) == length && strncmp(row->name, name, length) == 0
                                : row->letter && row->letter == letter;
        if (meant && option_is_absent(command, row)) return row;
    }
    return NULL;
}

/* Returns the row of a common machine option (such as --threads) that the command does not take, because a script may
 * pass the same ones to every command; NULL if it is no such option. */
static const option *find_idle(const command *command, const char *name, size_t length, char letter)
{
    static const char *const of_machines[] = {"threads", "memory-limit", "progress"};
    const option *row = common_option_named(command, name, length, letter);
    for (size_t k = 0; row && k < sizeof of_machines / sizeof *of_machines; k++)
        if (strcmp(row->name, of_machines[k]) == 0) return row;
    return NULL;
}

static void note_idle(const common_options *options)
{
    const option_scan *scan = options->scan;
    for (size_t k = 0; k < scan->given_count; k++)
        if (option_is_absent(options->command, scan->given[k].option))
            say_note(options, "note: --%s changes nothing here", scan->given[k].option->name);
}

static bool has_numbers(const common_options *options) { return options_find(options->command, "numbers") != NULL; }

static _Noreturn void refuse_absent(const common_options *options, const option *row)
{
    if (strcmp(row->name, "json") != 0) usage_wrong(options, "--%s would change nothing here", row->name);
    usage_wrong(options, "--json: what this command makes is no JSON%s",
                has_numbers(options) ? "; --numbers FILE.csv has a figure's numbers" : "");
}

/* Refuses another program's option where the command's second word is missing and one of its subcommands has the
 * option. */
static void refuse_known_behind_word(const common_options *options, const char *text, const char *name, size_t length)
{
    const command *command = options->command;
    for (const struct command *const *sub = command->subcommands; needs_word(command) && sub && *sub; sub++) {
        const char *here = options_known_elsewhere(options, *sub, name, length);
        if (here)
            usage_wrong(options, "expected %.*s MODEL first; as for '%.*s', %s", (int)strcspn(command->arguments, " "),
                        command->arguments, (int)(name + length - text), text, here);
    }
}

enum { WORDS_BYTES = 256 };

/* Lists the subcommands: "components, grid, mean". */
static void name_subcommands(const command *command, char words[WORDS_BYTES])
{
    size_t used = 0;
    for (const struct command *const *sub = command->subcommands; sub && *sub && used < WORDS_BYTES; sub++)
        used += (size_t)snprintf(words + used, WORDS_BYTES - used, "%s%s", used ? ", " : "", command_word(*sub));
}

/* Refuses a first word that is no path and stands where a subcommand would: another program's, a misspelt one, or any
 * other where the command needs one. */
static void refuse_wrong_word(const common_options *options)
{
    struct stat about;
    const command *command = options->command;
    const char *first = options->argument_count ? options->arguments[0] : NULL, *nearest = NULL;
    if (!first || !command->subcommands || first[strcspn(first, "/:")] || stat(first, &about) == 0) return;
    const char *answer = options_word_elsewhere(command, first);
    if (answer) usage_wrong(options, "there is no '%s'; %s", first, answer);
    size_t least = SIZE_MAX;
    for (const struct command *const *sub = command->subcommands; *sub; sub++)
        options_nearest(first, strlen(first), command_word(*sub), &least, &nearest);
    if (nearest) usage_wrong(options, "there is no '%s'; did you mean %s %s?", first, command->name, nearest);
    char words[WORDS_BYTES] = "";
    name_subcommands(command, words);
    if (needs_word(command)) usage_wrong(options, "'%s' is none of: %s", first, words);
}

static _Noreturn void refuse_unknown(const common_options *options, const char *text, const char *name, size_t length)
{
    refuse_wrong_word(options);
    const taker_list takers = find_takers(options, name, length, 0);
    if (takers.used && needs_word(options->command))
        usage_wrong(options, "expected %.*s MODEL first; %.*s belongs to %s",
                    (int)strcspn(options->command->arguments, " "), options->command->arguments,
                    (int)(name + length - text), text, takers.text);
    const option *absent = common_option_named(options->command, name, length, 0);
    const char *here = options_known_elsewhere(options, options->command, name, length);
    if (takers.used && !(absent && has_numbers(options)))
        usage_wrong(options, "%.*s: %s does not take it; these do: %s%s%s", (int)(name + length - text), text,
                    command_word(options->command), takers.text, here ? "; " : "", here ? here : "");
    if (absent) refuse_absent(options, absent);
    const char *moved = options_moved(options->command, name, length);
    if (moved) usage_wrong(options, "%.*s: %s", (int)(name + length - text), text, moved);
    if (here) usage_wrong(options, "unknown option '%.*s'; %s", (int)(name + length - text), text, here);
    refuse_known_behind_word(options, text, name, length);
    name_search search = {.command = options->command, .name = name, .length = length, .least = SIZE_MAX};
    options_visit(options->command, consider_group, &search);
    usage_wrong(options, search.nearest ? "unknown option '%.*s'; did you mean --%s?" : "unknown option '%.*s'",
                (int)(name + length - text), text, search.nearest);
}

static _Noreturn void refuse_unknown_letter(const common_options *options, char letter)
{
    const char *here = options_known_elsewhere(options, options->command, &letter, 1);
    if (here) usage_wrong(options, "unknown option '-%c'; %s", letter, here);
    const taker_list takers = find_takers(options, NULL, 0, letter);
    const option *absent = common_option_named(options->command, NULL, 0, letter);
    if (absent && !takers.used) refuse_absent(options, absent);
    if (!takers.used) usage_wrong(options, "unknown option '-%c'", letter);
    usage_wrong(options, "-%c: %s does not take it; these do: %s", letter, command_word(options->command), takers.text);
}

/* -------------------------------------------------------------------------------------------------------- scanning */

/* Refuses a long name after a single dash, which would be read as a letter and its value. */
static void refuse_single_dash(const common_options *options, const char *text)
{
    const size_t length = strcspn(text + 1, "=");
    if (length > 1 && option_find(options->command, text + 1, length, 0).option)
        usage_wrong(options, "unknown option '%.*s'; did you mean -%.*s?", (int)length + 1, text, (int)length + 1,
                    text);
    const char *here = length > 1 ? options_known_elsewhere(options, options->command, text + 1, length) : NULL;
    if (here) usage_wrong(options, "unknown option '%.*s'; %s", (int)length + 1, text, here);
}

/* Scans one argument that begins with a dash; advances *index over its value. */
static void scan_option(common_options *options, int *index)
{
    option_scan *scan = options->scan;
    const char *text = scan->argv[*index], *value = NULL;
    found_option found;
    if (text[1] == '-') {
        const char *equals = strchr(text, '=');
        const size_t length = equals ? (size_t)(equals - text) - 2 : strlen(text) - 2;
        found = option_find(options->command, text + 2, length, 0);
        if (!found.option) found.option = find_idle(options->command, text + 2, length, 0);
        if (!found.option) refuse_unknown(options, text, text + 2, length);
        if (equals) {
            if (!found.option->value) usage_wrong(options, "option '--%s' takes no value", found.option->name);
            value = equals + 1;
        }
    } else {
        refuse_single_dash(options, text);
        found = option_find(options->command, NULL, 0, text[1]);
        if (!found.option && !find_takers(options, NULL, 0, text[1]).used)
            found.option = find_idle(options->command, NULL, 0, text[1]);
        if (!found.option) refuse_unknown_letter(options, text[1]);
        if (text[2] != 0) {
            if (!found.option->value)
                usage_wrong(options, "option '-%c' takes no value, found '%s'", text[1], text + 2);
            value = text + 2;
        }
    }
    if (found.option->value && !value) {
        if (*index + 1 >= scan->argc)
            usage_wrong(options, "option '--%s' needs a value (%s)", found.option->name, found.option->value);
        value = scan->argv[++*index];
    }
    scan->given[scan->given_count++] = (given_option){found.option, found.offset, value};
}

/* Returns the largest number of arguments that a command takes. */
static size_t most_arguments(const command *command)
{
    size_t words = 0;
    for (const char *at = command->arguments; *at; at += strcspn(at, " "), at += strspn(at, " ")) words++;
    return command->max_arguments ? command->max_arguments : words;
}

static size_t least_arguments(const command *command)
{
    if (command->max_arguments) return command->min_arguments;
    return *command->arguments == '[' ? 0 : most_arguments(command);
}

static void scan_all(common_options *options)
{
    option_scan *scan = options->scan;
    bool only_arguments = false, after_option = false;
    for (int index = 1; index < scan->argc; index++) {
        const char *text = scan->argv[index];
        const bool is_argument = only_arguments || text[0] != '-' || text[1] == 0;
        const bool is_option = !is_argument && strcmp(text, "--") != 0;
        if (is_option) {
            scan_option(options, &index);
        } else if (is_argument) {
            if (options->argument_count == most_arguments(options->command) && after_option)
                scan->surplus_after = &scan->given[scan->given_count - 1];
            scan->arguments[options->argument_count++] = text;
        } else {
            only_arguments = true;
        }
        after_option = is_option;
    }
}

/* Refuses a surplus argument. It is often meant as the value of a flag, or is left over because an option took the
 * next option as its value; the message then says so. */
static _Noreturn void refuse_surplus(const common_options *options)
{
    const char *surplus = options->arguments[most_arguments(options->command)];
    const given_option *last = options->scan->surplus_after;
    if (last && !last->value)
        usage_wrong(options, "unexpected argument '%s': --%s takes no value", surplus, last->option->name);
    if (last && last->value[0] == '-')
        usage_wrong(options, "unexpected argument '%s': --%s needs a value (%s) and took '%s'", surplus,
                    last->option->name, last->option->value, last->value);
    struct stat about;
    const char *first = options->arguments[0];
    if (strstr(options->command->arguments, "| list") && strcmp(first, "list") == 0)
        usage_wrong(options, "unexpected argument '%s': 'list' stands alone", surplus);
    if (options->command->subcommands && strcspn(first, "/:") == strlen(first) && stat(first, &about) != 0) {
        char words[WORDS_BYTES] = "";
        name_subcommands(options->command, words);
        usage_wrong(options, "'%s' is none of: %s", first, words);
    }
    const bool is_text = strchr(surplus, ' ') && options_find(options->command, "text"),
               is_other = options_find(options->command, "minus") && most_arguments(options->command) == 1;
    usage_wrong(options, "unexpected argument '%s'%s", surplus,
                is_text    ? "; a text is given with --text"
                : is_other ? "; another model is given with --minus"
                           : "");
}

static _Noreturn void refuse_too_few(const command *command, const common_options *options)
{
    char words[WORDS_BYTES] = "";
    name_subcommands(command, words);
    usage_wrong(options, "expected %s%s%s%s", command->arguments,
                strcmp(command->arguments, "MODEL") == 0 ? ", a folder or synthetic:<shape>" : "",
                *words ? ", or one of: " : "", words);
}

/* Allocates the struct in its initial state, with room for every word of the command line. */
static common_options *new_options(const command *command, const struct command *const *commands, int argc, char **argv)
{
    common_options *options = memory_take(1, command->size ? command->size : sizeof *options);
    if (command->defaults) memcpy(options, command->defaults, command->size);
    options->seed = 1;
    options->command = options->teller = command;
    options->commands = commands;
    options->scan = memory_take(1, sizeof *options->scan);
    *options->scan = (option_scan){.argc = argc, .argv = argv};
    options->scan->given = options_take(options, (size_t)argc + 1, sizeof(given_option));
    options->scan->arguments = options_take(options, (size_t)argc + 1, sizeof(char *));
    options->arguments = options->scan->arguments;
    return options;
}

common_options *options_parse(const command *command, const struct command *const *commands, int argc, char **argv)
{
    common_options *options = new_options(command, commands, argc, argv);
    scan_all(options);
    if (option_scan_has(options->scan, "help")) { /* before any error is reported */
        options_print_help(command);
        end_program(EXIT_OK);
    }
    if (option_scan_has(options->scan, "version")) {
        options_print_version();
        end_program(EXIT_OK);
    }
    refuse_wrong_word(options);
    if (options->argument_count < least_arguments(command)) refuse_too_few(command, options);
    if (options->argument_count > most_arguments(command)) refuse_surplus(options);
    option_values_fill(options);
    note_idle(options);
    return options;
}

/* ------------------------------------------------------------------------------------- a command called by another */

enum { MOST_GIVEN = 32 }; /* options given to one call */

common_options *options_begin(const command *command, const common_options *caller, const char *argument)
{
    common_options *options = new_options(command, caller->commands, MOST_GIVEN, NULL);
    options->teller = caller->teller;
    options->scan->arguments[options->argument_count++] = argument;
    return options;
}

static void give(common_options *options, found_option found, const char *text)
{
    option_scan *scan = options->scan;
    assert(found.option && !found.option->value == !text && scan->given_count < MOST_GIVEN);
    scan->given[scan->given_count++] = (given_option){found.option, found.offset, text};
}

void option_give(common_options *options, const void *member, const char *text)
{
    const option *row = option_of_member(options, member);
    assert(row);
    give(options, option_find(options->command, row->name, strlen(row->name), 0), text);
}

void option_inherit(common_options *options, const common_options *caller, const void *member)
{
    for (size_t k = 0; option_given(caller, member) && k < caller->scan->given_count; k++) {
        const given_option *given = &caller->scan->given[k];
        if (given->option != option_of_member(caller, member)) continue;
        const found_option own = option_find(options->command, given->option->name, strlen(given->option->name), 0);
        if (own.option) give(options, own, given->value);
    }
}

int options_run(common_options *options)
{
    option_values_fill(options);
    return options->command->run(options);
}
