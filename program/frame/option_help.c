/* Prints --help and --version from the tables of a command. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "program/frame/help_lines.h"
#include "program/frame/option_scan.h"

enum { HELP_INDENT = 33, DEFAULT_BYTES = 64 };

/* Appends " (default 16)", or nothing if the default means that the option was not given. */
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
    } else if (row->type == OPTION_TEXT) {
        const char *value = *(const char *const *)(const void *)at;
        if (value) snprintf(text, DEFAULT_BYTES, " (default %s)", value);
    } else if (row->type == OPTION_CHOICE) {
        snprintf(text, DEFAULT_BYTES, " (default %s)", row->choices[*(const int *)(const void *)at]);
    }
}

typedef struct help_page {
    help_lines lines;
    const command *command;
} help_page;

static void print_option(const help_page *page, const option *row, size_t offset)
{
    char left[64], otherwise[DEFAULT_BYTES], text[512];
    snprintf(left, sizeof left, "  %c%c%s --%s%s%s", row->letter ? '-' : ' ', row->letter ? row->letter : ' ',
             row->letter ? "," : " ", row->name, row->value ? " " : "", row->value ? row->value : "");
    describe_default(row, page->command, offset, otherwise);
    snprintf(text, sizeof text, "%s%s", row->help, otherwise);
    help_row(&page->lines, left, HELP_INDENT, text);
}

/* Prints a group without the options that another table of the command hides, as its own option hides the common
 * one. */
static void print_group(void *context, const option_group *group)
{
    const help_page *page = context;
    if (!group->options->name) return;
    fprintf(page->lines.out, "\n%s:\n", group->title ? group->title : "options");
    for (const option *row = group->options; row->name; row++)
        if (option_find(page->command, row->name, strlen(row->name), 0).option == row)
            print_option(page, row, group->offset);
}

static void print_subcommands(const help_page *page)
{
    if (!page->command->subcommands) return;
    fputs("\nalso (each has its --help):\n", page->lines.out);
    for (const struct command *const *sub = page->command->subcommands; *sub; sub++) {
        char left[64];
        snprintf(left, sizeof left, "  %s", (*sub)->name);
        help_row(&page->lines, left, HELP_INDENT, (*sub)->summary);
    }
}

void options_print_help(const command *command)
{
    help_page page = {help_lines_to(stdout), command};
    char usage[512];
    snprintf(usage, sizeof usage, "usage: deberta %s%s%s [options]", command->name, *command->arguments ? " " : "",
             command->arguments);
    help_paragraph(&page.lines, sizeof "usage: deberta", usage);
    putchar('\n');
    help_paragraph(&page.lines, 0, command->summary);
    print_subcommands(&page);
    options_visit(command, print_group, &page);
    if (!command->example) return;
    printf("\n%s:\n", strchr(command->example, '\n')[1] ? "examples" : "example");
    help_examples(&page.lines, command->example);
}

void options_print_version(void) { printf("deberta %s\n", deberta_version()); }
