/* Declares what audits share: a seed that nobody knows before, a folder for what is computed again, and a command line
 * built of recorded words.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/options.h"

/* Returns --seed, or a seed of the clock: whoever made the results could not know what is drawn. */
uint64_t audit_seed(const common_options *options);

/* Makes a folder in TMPDIR, which goes with unfinished_release_folder or with a signal. */
const char *audit_make_folder(const common_options *options);

/* The words of a command, for options_parse. */
typedef struct audit_words {
    const common_options *options; /* the memory's owner */
    char **words;
    size_t count, capacity;
} audit_words;

void audit_add_word(audit_words *list, const char *word);
void audit_add_pair(audit_words *list, const char *name, const char *value);
/* Adds --isa, --memory-limit and --threads as the auditing command has them. */
void audit_add_machine(audit_words *list);
/* Returns the command of this name, of one word or two; NULL: the program has none. */
const command *audit_find_command(const common_options *options, const char *name);
/* From here to end_hook_drop, wrong use of the rebuilt command ends the program with EXIT_INPUT: the file that recorded
 * its words is malformed, and the audit was called rightly. */
void audit_blame_words(end_hook *hook);
