/* Prints --help and --version from the tables of a command. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "program/frame/option_scan.h"

enum { HELP_INDENT = 33, HELP_WIDTH = 112, DEFAULT_BYTES = 64 };

/* Text in lines of at most HELP_WIDTH columns, the later ones indented to where the first begins. */
static void print_wrapped(const char *text, int indent)
{
    const size_t first = (size_t)indent;
    size_t column = first;
    for (const char *word = text; *word;) {
        const size_t length = strcspn(word, " ");
        if (column > first && column + 1 + length > HELP_WIDTH) {
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

/* " (default 16)", or nothing where the default means that the option was not given. */
static void describe_default(const option *row, const command *command, size_t offset, char text[DEFAULT_BYTES])
{
    *text = 0;
    if (!row->tells_default) return;
    const char *at = (const char *)command->defaults + offset + row->at;
    if (row->type == OPTION_SIZE) {
        const size_t value = *(const size_t *)(const void *)at;
        if (value >= row->low && value <= row->high) snprintf(text, DEFAULT_BYTES, " (default %zu)", value);
    } else if (row->type == OPTION_NUMBER) {
        const double value = *(const double *)(const void *)at;
        if (value >= row->least && value <= row->most) snprintf(text, DEFAULT_BYTES, " (default %g)", value);
    } else if (row->type == OPTION_CHOICE) {
        snprintf(text, DEFAULT_BYTES, " (default %s)", row->choices[*(const int *)(const void *)at]);
    }
}

static void print_option(const option *row, const command *command, size_t offset)
{
    char left[64], otherwise[DEFAULT_BYTES], text[512];
    snprintf(left, sizeof left, "%c%c%s --%s%s%s", row->letter ? '-' : ' ', row->letter ? row->letter : ' ',
             row->letter ? "," : " ", row->name, row->value ? " " : "", row->value ? row->value : "");
    printf("  %-30s ", left);
    describe_default(row, command, offset, otherwise);
    snprintf(text, sizeof text, "%s%s", row->help, otherwise);
    print_wrapped(text, HELP_INDENT);
}

/* Without what another table of the command hides: its own option hides the common one. */
static void print_group(void *context, const option_group *group)
{
    const command *command = *(const struct command *const *)context;
    if (!group->options->name) return;
    printf("\n%s:\n", group->title ? group->title : "options");
    for (const option *row = group->options; row->name; row++)
        if (option_find(command, row->name, strlen(row->name), 0).option == row)
            print_option(row, command, group->offset);
}

static void print_subcommands(const command *command)
{
    if (!command->subcommands) return;
    printf("\nalso (each has its --help):\n");
    for (const struct command *const *sub = command->subcommands; *sub; sub++) {
        printf("  %-30s ", (*sub)->name);
        print_wrapped((*sub)->summary, HELP_INDENT);
    }
}

void options_print_help(const command *command)
{
    printf("usage: deberta %s%s%s [options]\n\n%s\n", command->name, *command->arguments ? " " : "", command->arguments,
           command->summary);
    print_subcommands(command);
    options_visit(command, print_group, &command);
    if (command->example)
        printf("\n%s:\n%s", strchr(command->example, '\n')[1] ? "examples" : "example", command->example);
}

void options_print_version(void) { printf("deberta %s\n", deberta_version()); }
