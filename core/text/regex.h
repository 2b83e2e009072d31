/* Wraps PCRE2: compiles a pattern and finds its next match.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/status.h"

typedef struct regex regex;             /* immutable, shared by threads */
typedef struct regex_match regex_match; /* scratch memory of one caller, for any pattern */

/* Compiles a pattern of the program itself; UTF-8 is on, UCP is off (\p{...} works, \s and \w are ASCII). */
deberta_status regex_compile(regex **regex, const char *pattern, deberta_error *err);
void regex_free(regex **regex);

/* Finds the first match in text[from, bytes): *found, and its place. text must be valid UTF-8, `from` a character
 * boundary. *match may be NULL: then it is created. */
deberta_status regex_find(const regex *regex, regex_match **match, const char *text, size_t bytes, size_t from,
                          bool *found, size_t *begin, size_t *end, deberta_error *err);
void regex_match_free(regex_match **match);
