/* `deberta study`: experiments that put claims about DeBERTa to the test; this lists them, each is a command of its
 * own. SPDX-License-Identifier: MIT */
#include <string.h>

#include "program/frame/options.h"
#include "program/frame/text_output.h"
#include "studies/studies.h"

#define COMMAND_OF(name) &study_##name.command,
static const command *const studies[] = {STUDY_EACH(COMMAND_OF) NULL};

static int print_list(const common_options *options)
{
    if (options->json) {
        json_t *list = json_array();
        for (size_t k = 0; studies[k]; k++)
            json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "name", command_word(studies[k]), "summary",
                                                  studies[k]->summary, "claims", studies[k]->claims));
        return print_json(options, list);
    }
    text_output output;
    const int status = text_output_open(options, options_out(options), &output);
    if (status != EXIT_OK) return status;
    for (size_t k = 0; studies[k]; k++)
        fprintf(output.file, "%-12s %s\n%-12s   puts to the test: %s\n", command_word(studies[k]), studies[k]->summary,
                "", studies[k]->claims);
    fprintf(output.file, "\nfor one study: deberta study NAME --help\n");
    return text_output_close(options, &output);
}

static int run(const common_options *options)
{
    const char *name = options->arguments[0];
    if (!name || (strcmp(name, "list") == 0 && options->argument_count == 1)) return print_list(options);
    if (strcmp(name, "list") == 0) return say_usage(options, "list: unexpected argument '%s'", options->arguments[1]);
    char known[512] = "";
    for (size_t k = 0; studies[k]; k++) {
        const size_t length = strlen(known);
        snprintf(known + length, sizeof known - length, "%s%s", k ? ", " : "", command_word(studies[k]));
    }
    return say_usage(options, "no study is called '%s'; there are: %s", name, known);
}

const command command_study = {
    .name = "study",
    .summary = "experiments that put claims about DeBERTa to the test: table, data, figure",
    .arguments = "[list | NAME ...]",
    .max_arguments = 64,
    .example = "  deberta study list\n  deberta study components --help\n",
    .run = run,
    .subcommands = studies,
};
