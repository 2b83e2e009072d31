/* The program: finds the command and runs it. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/run.h"

const command *const commands[] = {
    &command_info,
    &command_bench,
    &command_verify,
    &command_encode,
    &command_tokenize,
    &command_fill_mask,
    &command_detect,
    &command_classify,
    &command_tag,
    &command_answer,
#if HAVE_VIZ
    &command_attention,
#endif
    &command_receptive_field,
    &command_report,
    NULL,
};

static void print_overview(FILE *out)
{
    fprintf(out,
            "deberta %s: DeBERTa encoders on the CPU, and what happens inside them\n\n"
            "usage: deberta <command> [MODEL] [options]\n\n"
            "MODEL is a folder (config.json with model.safetensors or pytorch_model.bin), or synthetic:<shape>, for "
            "example\n"
            "synthetic:v3-base or synthetic:v3-small,layers=2,vocab=1000\n\ncommands:\n",
            deberta_version());
    for (size_t k = 0; commands[k]; k++) fprintf(out, "  %-16s %s\n", commands[k]->name, commands[k]->summary);
    fprintf(out, "\nfor one command: deberta <command> --help\n");
}

int main(int argc, char **argv)
{
    run_install_signal_handlers();
    if (argc < 2) {
        print_overview(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_overview(stdout);
        return EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("deberta %s\n", deberta_version());
        return EXIT_OK;
    }
    for (size_t k = 0; commands[k]; k++) {
        if (strcmp(argv[1], commands[k]->name) != 0) continue;
        parsed_options *options;
        int status = options_parse(&options, commands[k], argc - 1, argv + 1);
        if (!options) return status;
        status = commands[k]->run(options);
        options_free(&options);
        if (fflush(stdout) != 0 || ferror(stdout)) {
            fprintf(stderr, "deberta: standard output could not be written\n");
            return EXIT_SYSTEM;
        }
        return status;
    }
    fprintf(stderr, "deberta: unknown command '%s'\nsee: deberta --help\n", argv[1]);
    return EXIT_USAGE;
}
