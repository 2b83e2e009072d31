/* Finds the name meant by a mistyped one, names that other programs have, and where an option has gone.
 *
 * SPDX-License-Identifier: MIT */
#include "program/frame/options.h"

#include <string.h>

enum { LONGEST = 32 }; /* longer ones are no mistakes in one letter or two */

static size_t least_of(size_t a, size_t b) { return a < b ? a : b; }

/* Letters to insert, delete or replace (Levenshtein). Both are at most LONGEST long. */
static size_t edits(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t row[LONGEST + 1];
    for (size_t j = 0; j <= b_length; j++) row[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = least_of(replaced, 1 + least_of(row[j], row[j - 1]));
        }
    }
    return row[b_length];
}

void options_nearest(const char *name, size_t length, const char *candidate, size_t *least, const char **nearest)
{
    const size_t candidate_length = strlen(candidate);
    if (length < 3 || length > LONGEST || candidate_length > LONGEST) return;
    /* the begin of a longer name is near, however much is missing */
    const bool begins = candidate_length > length && strncmp(name, candidate, length) == 0;
    const size_t distance = begins ? 1 : edits(name, length, candidate, candidate_length);
    if (distance > 2 || distance >= *least || 3 * distance > length + 1) return;
    *least = distance;
    *nearest = candidate;
}

const char *options_known_elsewhere(const command *command, const char *name, size_t length)
{
    static const struct {
        const char *theirs, *ours, *words;
    } rows[] = {
        {"lr", "learning-rate", "--learning-rate"},
        {"epochs", "steps", "--steps, updates of --batch-sequences examples each"},
        {"num-epochs", "steps", "--steps, updates of --batch-sequences examples each"},
        {"batch-size", "batch-sequences", "--batch-sequences"},
        {"batch-size", "batch-tokens", "--batch-tokens"},
        {"train", "examples", "--examples"},
        {"train", "file", "--file"},
        {"train-file", "examples", "--examples"},
        {"train-file", "file", "--file"},
        {"max-length", "sequence-tokens", "--sequence-tokens"},
        {"max-length", "max-tokens", "--max-tokens"},
        {"vocab-size", "vocabulary", "--vocabulary"},
        {"dtype", "precision", "--precision"},
        {"output-dir", "out", "--out"},
        {"layers", "depth", "--depth, how many layers"},
        {"tokens", "token-range", "--token-range"},
        {"lengths", "tokens", "--tokens"},
        {"threshold", "cutoff", "--cutoff"},
        {"against", "expected", "--expected"},
        {"against", "minus", "--minus"},
        {"data", "examples", "--examples"},
        {"data", "numbers", "--numbers"},
        {"text", "file", "--file"},
        {"hidden", "width", "--width"},
        {"heads", "head-count", "--head-count"},
        {"components", "component-layers", "--component-layers"},
        {"layers", "component-layers", "--component-layers"},
        {"cmap", "palette", "--palette"},
        {"colormap", "palette", "--palette"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (strlen(rows[k].theirs) == length && strncmp(rows[k].theirs, name, length) == 0 &&
            options_find(command, rows[k].ours))
            return rows[k].words;
    return NULL;
}

const char *options_moved(const command *command, const char *name, size_t length)
{
    static const char *const drawn[] = {"configurations", "first", "training"}; /* of verify */
    for (size_t k = 0; k < sizeof drawn / sizeof *drawn; k++)
        if (strcmp(command->name, "verify") == 0 && strlen(drawn[k]) == length && strncmp(drawn[k], name, length) == 0)
            return "drawn cases and faults of training are a program of the tests: `ninja -C build tests/drawn/drawn` "
                   "builds it, and build/tests/drawn/drawn takes this option";
    return NULL;
}
