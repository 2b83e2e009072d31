/* Draws seeds, makes folders and builds command lines for audits. SPDX-License-Identifier: MIT */
#include "program/frame/audit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/numbers.h"
#include "program/frame/unfinished.h"

uint64_t audit_seed(const common_options *options)
{
    uint64_t state = (uint64_t)clock_nanoseconds();
    struct timespec now;
    if (option_given(options, &options->seed)) return options->seed;
    if (clock_gettime(CLOCK_REALTIME, &now) == 0) state ^= (uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec;
    return random_next(&state) >> 32;
}

/* Makes the folder and registers it for removal by a signal; signals are held in between. */
const char *audit_make_folder(const common_options *options)
{
    const char *place = getenv("TMPDIR");
    char *folder =
        (char *)(uintptr_t)options_text(options, "%s/deberta-audit-XXXXXX", place && *place ? place : "/tmp");
    unfinished_hold();
    const bool made = mkdtemp(folder);
    const int reason = errno;
    if (made) unfinished_add_folder(folder);
    unfinished_add(NULL);
    if (made) return folder;
    end_with(options, EXIT_SYSTEM, "%s cannot be made: %s", folder, strerror(reason));
}

void audit_add_word(audit_words *list, const char *word)
{
    list->words = options_grown(list->options, list->words, &list->capacity, list->count, sizeof *list->words);
    list->words[list->count++] = (char *)(uintptr_t)options_text(list->options, "%s", word);
}

void audit_add_pair(audit_words *list, const char *name, const char *value)
{
    audit_add_word(list, name);
    audit_add_word(list, value);
}

void audit_add_machine(audit_words *list)
{
    const common_options *options = list->options;
    if (options->isa != DEBERTA_ISA_AUTO) audit_add_pair(list, "--isa", deberta_isa_name(options->isa));
    if (options->memory_limit_bytes)
        audit_add_pair(list, "--memory-limit", options_text(options, "%zu", options->memory_limit_bytes));
    if (options->threads) audit_add_pair(list, "--threads", options_text(options, "%zu", options->threads));
}

static const command *find_among(const command *const *list, const char *name)
{
    for (; list && *list; list++) {
        if (strcmp((*list)->name, name) == 0) return *list;
        const command *below = find_among((*list)->subcommands, name);
        if (below) return below;
    }
    return NULL;
}

const command *audit_find_command(const common_options *options, const char *name)
{
    return find_among(options->commands, name);
}

static int blame_words(end_hook *hook, int status)
{
    (void)hook;
    return status == EXIT_USAGE ? EXIT_INPUT : status;
}

void audit_blame_words(end_hook *hook)
{
    *hook = (end_hook){.call = blame_words};
    end_hook_add(hook);
}
