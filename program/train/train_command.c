/* Records the command of a training next to its chain. SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/build_name.h"
#include "core/io/atomic_file.h"
#include "core/io/mapped_file.h"
#include "output/json_text.h"
#include "program/frame/option_scan.h"
#include "program/train/train_command.h"

bool train_command_records(const option *row)
{
    static const char *const none[] = {"isa",
                                       "threads",
                                       "memory-limit",
                                       "out",
                                       "json",
                                       "quiet",
                                       "progress",
                                       "resume",
                                       "keep",
                                       "keep-every",
                                       "stop-at",
                                       "bad-steps",
                                       "chain",
                                       "chain-every",
                                       "eval",
                                       "eval-every",
                                       "patience",
                                       "help",
                                       "version",
                                       "one-batch",
                                       "gradients",
                                       "checkpoint-minutes",
                                       "checkpoint-every",
                                       NULL};
    const char *const *name = none;
    while (*name && strcmp(*name, row->name) != 0) name++;
    return !*name;
}

bool train_command_reads(const option *row)
{
    return strcmp(row->name, "file") == 0 || strcmp(row->name, "examples") == 0 || strcmp(row->name, "batches") == 0;
}

/* Describes a file by its SHA-256, for an auditor. */
static json_t *describe_file(const char *path)
{
    char digest[65];
    deberta_error missing;
    if (file_digest(path, digest, &missing) != DEBERTA_OK) *digest = 0;
    return json_pack("{s:o, s:s}", "path", json_clean_text(path), "sha256", digest);
}

static json_t *describe_command(const common_options *options)
{
    const option_scan *scan = options->scan;
    json_t *words = json_array(), *files = json_array();
    for (size_t k = 0; k < scan->given_count; k++) {
        const given_option *given = &scan->given[k];
        if (!train_command_records(given->option)) continue;
        json_t *pair = json_pack("[s]", given->option->name);
        if (given->value) json_add(pair, json_clean_text(given->value));
        json_add(words, pair);
        if (train_command_reads(given->option)) json_add(files, describe_file(given->value));
    }
    json_t *object = json_pack("{s:s, s:s, s:s, s:o, s:o}", "schema", "deberta-run/1", "version", build_name(),
                               "command", options->command->name, "options", words, "files", files);
    if (options->argument_count) json_put(object, "model", json_clean_text(options->arguments[0]));
    return object;
}

void train_command_begin_late(const common_options *options, size_t first, size_t steps)
{
    mapped_file file;
    deberta_error missing;
    const char *path = options_text(options, "%s/chain.jsonl", options_out(options));
    const bool is_there = mapped_file_open(&file, path, &missing) == DEBERTA_OK;
    const bool is_begun = is_there && memchr(file.bytes, '\n', file.size_bytes);
    if (is_there) mapped_file_close(&file);
    if (is_begun) return; /* its first line is whole */
    if (first >= steps)
        end_with(options, EXIT_INPUT,
                 "%s: all %zu steps are done, and a chain that begins now has none that an audit could execute: leave "
                 "--chain out",
                 options_out(options), steps);
    say_note(options, "note: the chain begins at step %zu: an audit does not cover steps 1 to %zu", first, first);
}

void train_command_write(const common_options *options)
{
    deberta_error error = {0};
    const char *folder = options_out(options);
    const char *chain = options_text(options, "%s/chain.jsonl", folder),
               *path = options_text(options, "%s/" COMMAND_FILE, folder);
    if (access(chain, F_OK) != 0 || access(path, F_OK) == 0) return;
    json_t *object = describe_command(options);
    char *text = object ? json_dumps(object, JSON_INDENT(1)) : NULL;
    json_decref(object);
    if (!text) memory_short();
    must(options, atomic_file_replace(path, text, strlen(text), &error), &error);
    free(text);
}
