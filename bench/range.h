/* Parses lists of sizes as users type them: "16,40,128", "1-12", "16-128+16", "16-512*2", and any mixture with commas.
 *
 * Ranges are ascending and hold their end if a step meets it. '*' and 'x' both multiply: some shells expand a star.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/status.h"
#include "output/scope.h"

typedef struct size_list {
    size_t *values; /* in the order typed */
    size_t count;
} size_list;

/* Values that occur twice are kept once: nobody measures a point twice. Where `repeated`, every value counts: two
 * sequences of 28 tokens are two.
 * what: for the message, as the user knows it, e.g. "--depth". Values outside lowest ... highest are an error, and so
 * is a list of more than RANGE_MAX_VALUES. On failure the list is empty. */
enum { RANGE_MAX_VALUES = 10000 };
deberta_status range_parse(scope *memory, size_list *list, const char *text, const char *what, size_t lowest,
                           size_t highest, bool repeated, deberta_error *err);
