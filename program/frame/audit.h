/* Declares what audits share: an unpredictable seed, a folder for recomputed results, and a command line built of
 * recorded words.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/options.h"

/* Returns --seed, or a seed from the clock, so that the author of the results could not know the sample. */
uint64_t audit_seed(const common_options *options);

/* Makes a folder in TMPDIR, which unfinished_release_folder or a signal removes. */
const char *audit_make_folder(const common_options *options);

/* The words of a command, for options_parse. */
typedef struct audit_words {
    const common_options *options; /* owner of the memory */
    char **words;
    size_t count, capacity;
} audit_words;

void audit_add_word(audit_words *list, const char *word);
void audit_add_pair(audit_words *list, const char *name, const char *value);
/* Adds --isa, --memory-limit and --threads as the auditing command has them. */
void audit_add_machine(audit_words *list);
/* Returns the command of this name, of one word or two; NULL: the program has none. */
const command *audit_find_command(const common_options *options, const char *name);
/* Makes wrong use of the rebuilt command end the program with EXIT_INPUT, until end_hook_drop: the user called the
 * audit rightly, and the file that recorded the words is malformed. */
void audit_blame_words(end_hook *hook);
