/* `deberta attention` draws figures of attention. Each kind of figure is a command of two words.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "program/attention/figure_kind.h"
#include "program/commands.h"
#include "program/frame/output_names.h"
#include "program/frame/text_output.h"

#define KIND_COMMAND(name) &figure_##name.command,
static const command *const kinds[] = {FIGURE_EACH(KIND_COMMAND) NULL};

/* Prints the name and the summary of each kind, for `attention list`. */
static void print_kinds(const common_options *options)
{
    text_output output;
    check_text_path(options);
    text_output_open(options, options_out(options), &output);
    for (size_t k = 0; kinds[k]; k++) fprintf(output.file, "%-16s %s\n", command_word(kinds[k]), kinds[k]->summary);
    text_output_close(options, &output);
}

/* Draws components where no kind of figure is named. */
static int cmd_attention_run(const common_options *options)
{
    const char *first = options->arguments[0];
    if (!first) usage_wrong(options, "expected MODEL, a folder or synthetic:<shape>");
    if (strcmp(first, "list") == 0)
        print_kinds(options);
    else
        figure_draw(options, &figure_components);
    return EXIT_OK;
}

const command command_attention = {
    .name = "attention",
    .summary = "figures of attention: content-to-content, content-to-position, position-to-content and what they make",
    .arguments = "[KIND] MODEL | list",
    .writes = WRITES_OWN,
    .min_arguments = 0,
    .max_arguments = 1,
    .most_outputs = FIGURE_MOST_PATHS,
    .groups = figure_components_groups,
    .size = sizeof(attention_options),
    .defaults = &(const attention_options){ATTENTION_DEFAULTS, FIRST_HEAD, .components = SHOW_ALL},
    .example = "  deberta attention models/demo --text 'a new store opened beside the new mall' -o attention.png\n"
               "  deberta attention lines models/demo --text 'a new store' --layers 2 --heads 0,1 -o lines.pdf\n"
               "  deberta attention synthetic:v3-xsmall --ids 1,7,3,11,5,2 --layers 0,1 --heads 0 -o attention.png -o "
               "attention.pdf\n",
    .run = cmd_attention_run,
    .subcommands = kinds,
    .without = "json seed",
};
