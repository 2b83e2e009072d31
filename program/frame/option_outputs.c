/* Checks the places of results: no place gets two results, and none is a file that the command reads.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text.h"
#include "core/io/folder_kind.h"
#include "program/frame/option_scan.h"

/* ------------------------------------------------------------------------------------------------- one output, another */

/* Reads the status of the folder that a path lies in; returns false if there is none. */
static bool find_folder(const char *path, struct stat *about)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    const bool found = folder && stat(folder, about) == 0;
    free(folder);
    return found;
}

/* Returns true if two paths name one file, such as "a.pdf" and "./a.pdf", even one that does not exist yet. */
static bool is_same_file(const char *a, const char *b)
{
    const char *slash_a = strrchr(a, '/'), *slash_b = strrchr(b, '/');
    struct stat at_a, at_b;
    if (strcmp(a, b) == 0) return true;
    return strcmp(slash_a ? slash_a + 1 : a, slash_b ? slash_b + 1 : b) == 0 && find_folder(a, &at_a) &&
           find_folder(b, &at_b) && at_a.st_dev == at_b.st_dev && at_a.st_ino == at_b.st_ino;
}

/* Refuses empty outputs, two options that name the same file, and more --out than the command takes. */
static void check_twice(const common_options *options)
{
    const option_scan *scan = options->scan;
    const size_t most = options->command->most_outputs ? options->command->most_outputs : 1;
    for (size_t k = 0; k < scan->given_count; k++) {
        const given_option *given = &scan->given[k];
        if (given->option->role != OPTION_OUTPUT) continue;
        if (!*given->value) usage_wrong(options, "--%s: the path is empty", given->option->name);
        for (size_t j = 0; j < k; j++) {
            const given_option *before = &scan->given[j];
            if (before->option->role != OPTION_OUTPUT || !is_same_file(before->value, given->value)) continue;
            if (strcmp(before->option->name, given->option->name) == 0)
                usage_wrong(options, "--%s: '%s' is given twice", given->option->name, given->value);
            usage_wrong(options, "--%s and --%s both name '%s'", before->option->name, given->option->name,
                        given->value);
        }
    }
    if (options->outs.count > most)
        usage_wrong(options, "--out was given %zu times, this command writes at most %zu", options->outs.count, most);
}

/* --------------------------------------------------------------------------------------------- an output that is read */

/* Returns true if an option names a file or folder to read, as the name of its value in --help tells. */
static bool names_input(const option *row)
{
    static const char *const values[] = {"FILE", "FOLDER", "DIR", "MODEL", "PATH", "RUN"};
    if (row->role == OPTION_OUTPUT || !row->value) return false;
    for (size_t k = 0; k < sizeof values / sizeof *values; k++)
        if (strcmp(row->value, values[k]) == 0) return true;
    return false;
}

/* Returns true if arguments are paths, written in capitals, rather than words to choose from, such as bash|zsh|fish. */
static bool takes_places(const command *command) { return strpbrk(command->arguments, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"); }

/* Returns true for figures and pages, which may be written next to a model: no reader of its folder opens them. */
static bool is_never_read(const char *path)
{
    static const char *const suffixes[] = {".svg", ".png", ".pdf", ".html", ".htm", ".tex"};
    for (size_t k = 0; k < sizeof suffixes / sizeof *suffixes; k++)
        if (path_has_suffix(path, suffixes[k])) return true;
    return false;
}

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* Refuses an output that is the input or lies in it. what: how the command line gave the input, for the message. */
static void refuse_input(const common_options *options, const char *what, const char *input, const char *output)
{
    if (strcmp(input, "-") == 0) {
        if (descriptor_is_file(STDIN_FILENO, output))
            usage_wrong(options, "'%s' is read from standard input and cannot be written: choose another name", output);
        return;
    }
    const bool folder = is_folder(input);
    if ((folder && is_never_read(output)) || !place_holds(input, output)) return;
    if (folder)
        usage_wrong(options, "'%s' is a file of %s '%s', which is read, and would be replaced: choose another name",
                    output, what, input);
    usage_wrong(options, "'%s' would replace %s '%s', which is read: choose another name", output, what, input);
}

void option_refuse_place(const common_options *options, const char *what, const char *input, const char *output)
{
    if (strcmp(input, "-") != 0) refuse_input(options, what, input, output);
}

void option_refuse_input(const common_options *options, const char *path)
{
    const option_scan *scan = options->scan;
    for (size_t k = 0; takes_places(options->command) && k < options->argument_count; k++)
        refuse_input(options, "the argument", options->arguments[k], path);
    for (size_t k = 0; k < scan->given_count; k++)
        if (names_input(scan->given[k].option))
            refuse_input(options, options_text(options, "--%s", scan->given[k].option->name), scan->given[k].value,
                         path);
}

/* Refuses a standard output that is an input: the shell's `> FILE` has emptied it, and `>>` would make it grow while it
 * is read. */
static void check_standard_output(const common_options *options)
{
    const option_scan *scan = options->scan;
    for (size_t k = 0; k < scan->given_count; k++) {
        const given_option *given = &scan->given[k];
        if (names_input(given->option) && descriptor_is_file(STDOUT_FILENO, given->value))
            usage_wrong(options, "standard output goes into '%s', which --%s reads", given->value, given->option->name);
    }
}

/* Checks the files that a resumable or sharded corpus writes, whose names are made from that of its output. */
static void check_made_names(const common_options *options, const char *output)
{
    const option_scan *scan = options->scan;
    if (option_scan_has(scan, "resume")) option_refuse_input(options, options_text(options, "%s.part", output));
    if (!option_scan_has(scan, "shards")) return;
    const char *folder = options_text(options, "%s.shards", output);
    for (size_t k = 0; k < scan->given_count; k++) {
        const given_option *given = &scan->given[k];
        if (names_input(given->option) && place_holds(folder, given->value))
            usage_wrong(options, "--%s: '%s' lies among the shards that are written to '%s'", given->option->name,
                        given->value, folder);
    }
}

void option_outputs_check(const common_options *options)
{
    const option_scan *scan = options->scan;
    check_twice(options);
    check_standard_output(options);
    for (size_t k = 0; k < scan->given_count; k++) {
        const given_option *given = &scan->given[k];
        if (given->option->role != OPTION_OUTPUT || strcmp(given->value, "-") == 0) continue;
        option_refuse_input(options, given->value);
        check_made_names(options, given->value);
    }
}
