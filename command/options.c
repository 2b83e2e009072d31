/* SPDX-License-Identifier: MIT */
#include "command/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const option_spec common_options[] = {
    {"isa", 0, "NAME", "kernels to use: auto (default), scalar, avx2, avx512, neon; also from DEBERTA_ISA"},
    {"threads", 't', "N", "threads; 0 = physical cores this process may use (default)"},
    {"reference", 0, "NAME", "distances beyond the table: microsoft (clamp first, default) or hf"},
    {"seed", 0, "N", "seed of what is drawn at random; made-up weights have theirs in the name (seed=)"},
    {"memory-limit", 0, "BYTES", "refuse before running what would need more, model included (suffixes K, M, G)"},
    {"json", 0, NULL, "results as JSON"},
    {"out", 'o', "PATH", "where results go; default standard output"},
    {"quiet", 'q', NULL, "no notes on stderr"},
    {"progress", 0, "WHEN", "progress on stderr: auto (on a terminal) or never"},
    {"help", 'h', NULL, "this text"},
    {"version", 'V', NULL, "the program's version"},
    {NULL, 0, NULL, NULL},
};

typedef struct given_option {
    const option_spec *spec;
    const char *value;
} given_option;

/* What options_allocate gave, newest first; the memory follows. */
typedef struct option_memory {
    struct option_memory *next;
    max_align_t bytes[];
} option_memory;

struct parsed_options {
    const command *command;
    int argc;
    char **argv;
    size_t given_count, argument_count;
    given_option *given;               /* [argc] */
    const char **arguments;            /* [argc] */
    const given_option *surplus_after; /* what stands right before the first argument too many; NULL: no option */
    option_memory **memory; /* the chain's first piece: a place of its own, so that a const struct can grow it */
};

static const option_spec *find_in(const option_spec *specs, const char *name, size_t length, char letter)
{
    for (; specs && specs->name; specs++)
        if (name ? strlen(specs->name) == length && strncmp(specs->name, name, length) == 0 : specs->letter == letter)
            return specs;
    return NULL;
}

/* A command's own option hides the common one of the same name. */
static const option_spec *find_option(const command *command, const char *name, size_t length, char letter)
{
    const option_spec *spec = find_in(command->options, name, length, letter);
    return spec ? spec : find_in(common_options, name, length, letter);
}

static int complain(const command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int complain(const command *command, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "deberta %s: ", command->name);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\nsee: deberta %s --help\n", command->name);
    return EXIT_USAGE;
}

/* The option, own or common, that was probably meant. */
static const char *nearest_option(const command *command, const char *name, size_t length)
{
    const char *nearest = NULL;
    size_t least = SIZE_MAX;
    for (const option_spec *spec = command->options; spec && spec->name; spec++)
        options_nearest(name, length, spec->name, &least, &nearest);
    for (const option_spec *spec = common_options; spec->name; spec++)
        options_nearest(name, length, spec->name, &least, &nearest);
    return nearest;
}

/* One argument that begins with a dash; *index moves on over a value. */
static int parse_option(parsed_options *options, int *index)
{
    const command *command = options->command;
    const char *text = options->argv[*index], *value = NULL;
    const option_spec *spec;
    if (text[1] == '-') {
        const char *equals = strchr(text, '=');
        const size_t length = equals ? (size_t)(equals - text) - 2 : strlen(text) - 2;
        spec = find_option(command, text + 2, length, 0);
        if (!spec) {
            const char *nearest = nearest_option(command, text + 2, length);
            return complain(command, nearest ? "unknown option '%.*s'; did you mean --%s?" : "unknown option '%.*s'",
                            (int)length + 2, text, nearest);
        }
        if (equals) {
            if (!spec->value) return complain(command, "option '--%s' takes no value", spec->name);
            value = equals + 1;
        }
    } else {
        spec = find_option(command, NULL, 0, text[1]);
        if (!spec) return complain(command, "unknown option '-%c'", text[1]);
        if (text[2] != 0) {
            if (!spec->value) return complain(command, "option '-%c' takes no value, found '%s'", text[1], text + 2);
            value = text + 2;
        }
    }
    if (spec->value && !value) {
        if (*index + 1 >= options->argc)
            return complain(command, "option '--%s' needs a value (%s)", spec->name, spec->value);
        value = options->argv[++*index];
    }
    options->given[options->given_count++] = (given_option){spec, value};
    return EXIT_OK;
}

/* An argument too many is often meant as the value of a flag, or left over because an option took the next option as
 * its value: then the sentence says so. */
static int complain_of_surplus(const parsed_options *options)
{
    const command *command = options->command;
    const char *surplus = options->arguments[command->max_arguments];
    const given_option *last = options->surplus_after;
    if (last && !last->spec->value)
        return complain(command, "unexpected argument '%s': --%s takes no value", surplus, last->spec->name);
    if (last && last->value[0] == '-')
        return complain(command, "unexpected argument '%s': --%s needs a value (%s) and took '%s'", surplus,
                        last->spec->name, last->spec->value, last->value);
    return complain(command, "unexpected argument '%s'", surplus);
}

int options_parse(parsed_options **out, const command *command, int argc, char **argv)
{
    *out = NULL;
    parsed_options *options = calloc(1, sizeof *options);
    if (options) {
        *options = (parsed_options){.command = command, .argc = argc, .argv = argv};
        options->given = calloc((size_t)argc + 1, sizeof *options->given);
        options->arguments = calloc((size_t)argc + 1, sizeof *options->arguments);
        options->memory = calloc(1, sizeof *options->memory);
    }
    if (!options || !options->given || !options->arguments || !options->memory) {
        options_free(&options);
        fprintf(stderr, "deberta: out of memory\n");
        return EXIT_SYSTEM;
    }
    int status = EXIT_OK;
    bool only_arguments = false, behind_option = false;
    for (int index = 1; index < argc && status == EXIT_OK; index++) {
        const char *text = argv[index];
        const bool is_argument = only_arguments || text[0] != '-' || text[1] == 0;
        const bool is_option = !is_argument && strcmp(text, "--") != 0;
        if (is_option) {
            status = parse_option(options, &index);
        } else if (is_argument) {
            if (options->argument_count == command->max_arguments && behind_option)
                options->surplus_after = &options->given[options->given_count - 1];
            options->arguments[options->argument_count++] = text;
        } else {
            only_arguments = true;
        }
        behind_option = is_option;
    }
    if (status == EXIT_OK && options_has(options, "help")) {
        options_print_help(command);
        options_free(&options);
        return EXIT_OK;
    }
    if (status == EXIT_OK && options_has(options, "version")) {
        options_print_version();
        options_free(&options);
        return EXIT_OK;
    }
    if (status == EXIT_OK && options->argument_count < command->min_arguments)
        status = complain(command, "expected %s%s", command->arguments,
                          strcmp(command->arguments, "MODEL") == 0 ? ", a folder or synthetic:<shape>" : "");
    if (status == EXIT_OK && options->argument_count > command->max_arguments) status = complain_of_surplus(options);
    if (status != EXIT_OK) options_free(&options);
    *out = options;
    return status;
}

void options_free(parsed_options **options)
{
    if (!*options) return;
    for (option_memory **first = (*options)->memory; first && *first;) {
        option_memory *piece = *first;
        *first = piece->next;
        free(piece);
    }
    free((*options)->memory);
    free((*options)->given);
    free((*options)->arguments);
    free(*options);
    *options = NULL;
}

const char *command_word(const command *subcommand)
{
    const char *space = strchr(subcommand->name, ' ');
    return space ? space + 1 : subcommand->name;
}

/* Text in lines of at most WIDTH columns, the later ones indented to where the first begins. */
static void print_wrapped(const char *text, int indent)
{
    enum { WIDTH = 112 };
    const size_t first = (size_t)indent;
    size_t column = first;
    for (const char *word = text; *word;) {
        const size_t length = strcspn(word, " ");
        if (column > first && column + 1 + length > WIDTH) {
            printf("\n%*s", indent, "");
            column = first;
        } else if (column > first) {
            putchar(' ');
            column++;
        }
        printf("%.*s", (int)length, word);
        column += length;
        word += length + strspn(word + length, " ");
    }
    putchar('\n');
}

enum { HELP_INDENT = 33 };

/* Without those that `hidden` has too: a command's own option hides the common one. */
static void print_specs(const option_spec *specs, const option_spec *hidden)
{
    for (; specs && specs->name; specs++) {
        if (find_in(hidden, specs->name, strlen(specs->name), 0)) continue;
        char left[64];
        snprintf(left, sizeof left, "%c%c%s --%s%s%s", specs->letter ? '-' : ' ', specs->letter ? specs->letter : ' ',
                 specs->letter ? "," : " ", specs->name, specs->value ? " " : "", specs->value ? specs->value : "");
        printf("  %-30s ", left);
        print_wrapped(specs->help, HELP_INDENT);
    }
}

void options_print_help(const command *command)
{
    printf("usage: deberta %s%s%s [options]\n\n%s\n", command->name, *command->arguments ? " " : "", command->arguments,
           command->summary);
    if (command->claims) {
        printf("\nputs to the test:\n  ");
        print_wrapped(command->claims, 2);
    }
    if (command->options && command->options->name) {
        printf("\noptions:\n");
        print_specs(command->options, NULL);
    }
    printf("\ncommon options:\n");
    print_specs(common_options, command->options);
    if (command->example)
        printf("\n%s:\n%s", strchr(command->example, '\n')[1] ? "examples" : "example", command->example);
}

void options_print_version(void) { printf("deberta %s\n", deberta_version()); }

const command *options_command(const parsed_options *options) { return options->command; }

void *options_allocate(const parsed_options *options, size_t bytes)
{
    option_memory *piece = calloc(1, sizeof *piece + bytes);
    if (!piece) return NULL;
    piece->next = *options->memory;
    *options->memory = piece;
    return piece->bytes;
}

size_t options_argument_count(const parsed_options *options) { return options->argument_count; }

const char *options_argument(const parsed_options *options, size_t index)
{
    return index < options->argument_count ? options->arguments[index] : NULL;
}

bool options_has(const parsed_options *options, const char *name)
{
    for (size_t k = 0; k < options->given_count; k++)
        if (strcmp(options->given[k].spec->name, name) == 0) return true;
    return false;
}

bool options_knows(const parsed_options *options, const char *name)
{
    return find_option(options->command, name, strlen(name), 0) != NULL;
}

bool options_is_common(const parsed_options *options, const char *name)
{
    return !find_in(options->command->options, name, strlen(name), 0);
}

const char *options_value(const parsed_options *options, const char *name, const char *fallback)
{
    for (size_t k = options->given_count; k-- > 0;)
        if (strcmp(options->given[k].spec->name, name) == 0) return options->given[k].value;
    return fallback;
}

const char *options_nth_value(const parsed_options *options, const char *name, size_t index)
{
    for (size_t k = 0; k < options->given_count; k++)
        if (strcmp(options->given[k].spec->name, name) == 0 && index-- == 0) return options->given[k].value;
    return NULL;
}

bool options_u64(const parsed_options *options, const char *name, uint64_t fallback, uint64_t *value)
{
    *value = fallback;
    const char *text = options_value(options, name, NULL);
    if (!text) return true;
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == 0 && errno == 0) return true;
    report_usage(options, "--%s: expected a whole number, found '%s'", name, text);
    return false;
}

bool options_size(const parsed_options *options, const char *name, size_t fallback, size_t lowest, size_t highest,
                  size_t *value)
{
    uint64_t number;
    if (!options_u64(options, name, fallback, &number)) return false;
    *value = (size_t)number;
    if (!options_has(options, name) || (number >= lowest && number <= highest)) return true;
    if (highest == SIZE_MAX)
        report_usage(options, "--%s: expected a number of at least %zu, found %s", name, lowest,
                     options_value(options, name, ""));
    else
        report_usage(options, "--%s: expected %zu to %zu, found %s", name, lowest, highest,
                     options_value(options, name, ""));
    return false;
}

bool options_number(const parsed_options *options, const char *name, double fallback, double *value)
{
    *value = fallback;
    const char *text = options_value(options, name, NULL);
    if (!text) return true;
    char *end;
    *value = strtod(text, &end);
    if (end != text && *end == 0 && *value - *value == 0) return true;
    report_usage(options, "--%s: expected a number, found '%s'", name, text);
    return false;
}

bool options_bytes(const parsed_options *options, const char *name, size_t fallback, size_t *value)
{
    *value = fallback;
    const char *text = options_value(options, name, NULL);
    if (!text) return true;
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    static const char suffixes[] = "KMGT";
    const char *suffix = *end ? strchr(suffixes, *end >= 'a' ? *end - 32 : *end) : NULL;
    const unsigned shift = suffix ? 10u * (unsigned)(suffix - suffixes + 1) : 0;
    if (text[0] >= '0' && text[0] <= '9' && errno == 0 && (*end == 0 || (suffix && end[1] == 0)) &&
        number <= (SIZE_MAX >> shift)) {
        *value = (size_t)number << shift;
        return true;
    }
    report_usage(options, "--%s: expected bytes such as 512M or 4G, found '%s'", name, text);
    return false;
}

bool options_choice(const parsed_options *options, const char *name, const char *const *choices, size_t fallback,
                    size_t *index)
{
    *index = fallback;
    const char *text = options_value(options, name, NULL);
    if (!text) return true;
    char list[256] = "";
    for (size_t k = 0; choices[k]; k++) {
        if (strcmp(choices[k], text) == 0) {
            *index = k;
            return true;
        }
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", k ? ", " : "", choices[k]);
    }
    report_usage(options, "--%s: expected one of %s; found '%s'", name, list, text);
    return false;
}

static bool is_without(const char *const *without, const char *name)
{
    for (; without && *without; without++)
        if (strcmp(*without, name) == 0) return true;
    return false;
}

/* Appends a word to a growing text, in quotes where a shell would need them. */
static bool append_word(char **text, size_t *length, const char *word)
{
    const bool quote = *word == 0 || strpbrk(word, " \t\n'\"\\$`*?[]{}()<>|&;#!~") != NULL;
    char *grown = realloc(*text, *length + 4 * strlen(word) + 5);
    if (!grown) return false;
    *text = grown;
    char *end = grown + *length;
    if (*length) *end++ = ' ';
    if (quote) *end++ = '\'';
    for (; *word; word++) {
        if (*word == '\'') {
            memcpy(end, "'\\''", 4);
            end += 4;
        } else {
            *end++ = *word;
        }
    }
    if (quote) *end++ = '\'';
    *end = 0;
    *length = (size_t)(end - grown);
    return true;
}

char *options_command_line(const parsed_options *options, const char *const *without)
{
    char *text = NULL;
    size_t length = 0;
    bool fits = append_word(&text, &length, "deberta");
    char words[64], *rest = words;
    snprintf(words, sizeof words, "%s", options->command->name);
    for (const char *word; (word = strsep(&rest, " ")) && fits;) fits = append_word(&text, &length, word);
    for (size_t k = 0; k < options->argument_count && fits; k++)
        fits = append_word(&text, &length, options->arguments[k]);
    for (size_t k = 0; k < options->given_count && fits; k++) {
        const given_option *given = &options->given[k];
        if (is_without(without, given->spec->name)) continue;
        char name[64];
        snprintf(name, sizeof name, "--%s", given->spec->name);
        fits = append_word(&text, &length, name) && (!given->value || append_word(&text, &length, given->value));
    }
    if (fits) return text;
    free(text);
    return NULL;
}

int report_error(const parsed_options *options, const deberta_error *error)
{
    fprintf(stderr, "deberta %s: %s\n", options->command->name, error->message);
    switch (error->code) {
    case DEBERTA_E_MEMORY:
    case DEBERTA_E_SYSTEM: return EXIT_SYSTEM;
    default: return EXIT_INPUT;
    }
}

int report_no_memory(const parsed_options *options)
{
    return report_error(options, &(deberta_error){.code = DEBERTA_E_MEMORY, .message = "out of memory"});
}

int report_usage(const parsed_options *options, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "deberta %s: ", options->command->name);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\nsee: deberta %s --help\n", options->command->name);
    return EXIT_USAGE;
}
