/* The command line as a shell would take it again. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/option_scan.h"

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

char *options_command_line(const common_options *options, bool with_outputs)
{
    const option_scan *scan = options->scan;
    char *text = NULL;
    size_t length = 0;
    bool fits = append_word(&text, &length, "deberta");
    char words[64], *rest = words;
    snprintf(words, sizeof words, "%s", options->command->name);
    for (const char *word; (word = strsep(&rest, " ")) && fits;) fits = append_word(&text, &length, word);
    for (size_t k = 0; k < options->argument_count && fits; k++)
        fits = append_word(&text, &length, options->arguments[k]);
    for (size_t k = 0; k < scan->given_count && fits; k++) {
        const given_option *given = &scan->given[k];
        const option_role role = given->option->role;
        if (role == OPTION_TALKS || (role != OPTION_MAKES && !with_outputs)) continue;
        char name[64];
        snprintf(name, sizeof name, "--%s", given->option->name);
        fits = append_word(&text, &length, name) && (!given->value || append_word(&text, &length, given->value));
    }
    if (fits) return text;
    free(text);
    return NULL;
}
