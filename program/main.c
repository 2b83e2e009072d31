/* Finds the command and runs it. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/parallel.h"
#include "core/io/quote.h"
#include "program/cluster/cluster.h"
#include "program/commands.h"
#include "program/frame/help_lines.h"
#include "program/frame/text_output.h"
#include "program/frame/unfinished.h"

enum { SUMMARY_INDENT = 19 };

static const command *const commands[] = {
    &command_info,
    &command_bench,
    &command_verify,
    &command_encode,
    &command_tokenize,
    &command_fill_mask,
    &command_detect,
    &command_classify,
    &command_eval,
    &command_tag,
    &command_answer,
    &command_attribute,
#if HAVE_VIZ
    &command_attention,
#endif
    &command_receptive_field,
    &command_report,
    &command_train,
    &command_finetune,
    &command_pack,
    &command_merge,
    &command_examples,
    &command_completion,
    NULL,
};

static void print_overview(FILE *out)
{
    help_lines lines = help_lines_to(out);
    if (!lines.folds) lines.width = SIZE_MAX; /* puts each command on a line of its own */
    char title[128];
    snprintf(title, sizeof title, "deberta %s: DeBERTa encoders on the CPU, and what happens inside them",
             deberta_version());
    help_paragraph(&lines, 0, title);
    fputs("\nusage: deberta <command> [MODEL] [options]\n\n", out);
    help_paragraph(&lines, 0,
                   "MODEL is a folder (config.json with model.safetensors or pytorch_model.bin), or synthetic:<shape>, "
                   "for example\nsynthetic:v3-base or synthetic:v3-small,layers=2,vocab=1000");
    fputs("\ncommands:\n", out);
    for (size_t k = 0; commands[k]; k++) {
        char left[32];
        snprintf(left, sizeof left, "  %s", commands[k]->name);
        help_row(&lines, left, SUMMARY_INDENT, commands[k]->summary);
    }
    fputs("\nfor one command: deberta <command> --help\n"
          "its examples:    deberta examples DIR (what they read)\n"
          "a first look:    deberta info synthetic:v3-small\n",
          out);
}

static bool is_one_of(const char *text, const char *a, const char *b, const char *c)
{
    return strcmp(text, a) == 0 || strcmp(text, b) == 0 || strcmp(text, c) == 0;
}

/* Finds the command that the first words name, and counts these words in `used`. */
static const command *find_command(int count, char **words, int *used)
{
    *used = 1;
    for (size_t k = 0; commands[k]; k++) {
        if (strcmp(words[0], commands[k]->name) != 0) continue;
        for (const command *const *sub = commands[k]->subcommands; sub && *sub && count > 1; sub++) {
            if (strcmp(words[1], command_word(*sub)) != 0) continue;
            *used = 2;
            return *sub;
        }
        return commands[k];
    }
    return NULL;
}

static void complain_of_command(const char *name)
{
    const char *nearest = NULL;
    size_t least = SIZE_MAX;
    struct stat about;
    if (strncmp(name, "synthetic:", 10) == 0 || stat(name, &about) == 0) {
        fprintf(stderr,
                "deberta: '%s' is a model or a file: a command comes first, such as: deberta info %s\nsee: deberta "
                "--help\n",
                name, name);
        return;
    }
    if (strcmp(name, "study") == 0) {
        fprintf(stderr, "deberta: study: the studies are scripts over the Python package: python3 studies/NAME.py\n"
                        "see: studies/README.md\n");
        return;
    }
    for (size_t k = 0; commands[k]; k++) {
        options_nearest(name, strlen(name), commands[k]->name, &least, &nearest);
        for (const command *const *sub = commands[k]->subcommands; !nearest && sub && *sub; sub++)
            if (strcmp(name, command_word(*sub)) == 0) nearest = (*sub)->name;
    }
    fprintf(stderr, "deberta: unknown %s '%s'", *name == '-' ? "option" : "command", name);
    if (nearest) fprintf(stderr, "; did you mean %s?", nearest);
    fprintf(stderr, "\nsee: deberta --help\n");
}

typedef struct ranks_end {
    end_hook hook; /* called before memory is released */
    cluster *ranks;
} ranks_end;

static int end_ranks(end_hook *hook, int status) { return cluster_close(&((ranks_end *)hook)->ranks, status); }

/* Notes an OMP_NUM_THREADS that cannot be read, if the environment decides the number of threads. */
static void note_threads(const common_options *options)
{
    const char *without = options->command->without, *unread = executor_threads_unread();
    if (!unread || options->threads || (without && strstr(without, "threads"))) return;
    say_note(options,
             "note: OMP_NUM_THREADS is '%s', expected a number from 1 to %d or a list of such; it is not followed",
             QUOTE(unread), TOPOLOGY_MAX_WORKERS);
}

static _Noreturn void run_command(const command *command, int argc, char **argv, ranks_end *end)
{
    say_when_memory_is_short(command);
    common_options *options = options_parse(command, commands, argc, argv);
    note_threads(options);
    if (shard_ranks_wanted(options)) stop_request_watch();
    cluster_open(&end->ranks, options);
    const int status = shard_ranks_wanted(options) ? shard_ranks_run(options) : command->run(options);
    options_free(&options);
    end_program(status);
}

int main(int argc, char **argv)
{
    ranks_end end = {.hook.call = end_ranks};
    unfinished_install_handlers();
    end_hook_add(&end.hook);
    /* if it fails, a file that shrinks ends the program by a signal; that is no reason not to begin */
    deberta_guard_files(NULL);
    if (argc < 2) {
        print_overview(stderr);
        return EXIT_USAGE;
    }
    const bool asks_for_help = is_one_of(argv[1], "--help", "-h", "help");
    if (asks_for_help && argc == 2) {
        print_overview(stdout);
    } else if (is_one_of(argv[1], "--version", "-V", "version")) {
        options_print_version();
    } else {
        const int first = asks_for_help ? 2 : 1;
        int words;
        const command *command = find_command(argc - first, argv + first, &words);
        if (!command) {
            complain_of_command(argv[first]);
            return EXIT_USAGE;
        }
        if (!asks_for_help) run_command(command, argc - words, argv + words, &end);
        options_print_help(command);
    }
    end_program(EXIT_OK);
}
