/* Writes the command line so that it can be pasted into a shell. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "output/byte_buffer.h"
#include "program/frame/option_scan.h"

/* Adds a word, in quotes if a shell needs them. */
static void add_word(byte_buffer *line, const char *word)
{
    const bool quote = *word == 0 || strpbrk(word, " \t\n'\"\\$`*?[]{}()<>|&;#!~") != NULL;
    byte_buffer_text(line, line->size_bytes ? quote ? " '" : " " : quote ? "'" : "");
    for (; *word; word++) {
        if (*word == '\'')
            byte_buffer_text(line, "'\\''");
        else
            byte_buffer_append(line, word, 1);
    }
    if (quote) byte_buffer_text(line, "'");
}

const char *options_command_line(const common_options *options, bool with_outputs)
{
    const option_scan *scan = options->scan;
    byte_buffer line = {0};
    add_word(&line, "deberta");
    char words[64], *rest = words;
    snprintf(words, sizeof words, "%s", options->command->name);
    for (const char *word; (word = strsep(&rest, " "));) add_word(&line, word);
    for (size_t k = 0; k < options->argument_count; k++) add_word(&line, options->arguments[k]);
    for (size_t k = 0; k < scan->given_count; k++) {
        const given_option *given = &scan->given[k];
        const option_role role = given->option->role;
        if (role == OPTION_TALKS || (role != OPTION_MAKES && !with_outputs)) continue;
        char name[64];
        snprintf(name, sizeof name, "--%s", given->option->name);
        add_word(&line, name);
        if (given->value) add_word(&line, given->value);
    }
    const char *text = options_text(options, "%.*s", (int)line.size_bytes, (const char *)line.data);
    byte_buffer_free(&line);
    return text;
}
