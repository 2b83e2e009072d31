/* Finds the name nearest to a mistyped one. SPDX-License-Identifier: MIT */
#include "program/frame/options.h"

#include <string.h>

enum { LONGEST = 32 }; /* longer words are not taken for misspelt names */

static size_t least_of(size_t a, size_t b) { return a < b ? a : b; }

/* Returns the number of letters to insert, delete or replace (Levenshtein distance). Both names have at most LONGEST
 * letters. */
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
    /* a name that begins with what was typed is near, however long it is */
    const bool begins = candidate_length > length && strncmp(name, candidate, length) == 0;
    const size_t distance = begins ? 1 : edits(name, length, candidate, candidate_length);
    if (distance > 2 || distance >= *least || 3 * distance > length + 1) return;
    *least = distance;
    *nearest = candidate;
}
