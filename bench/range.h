/* Parses lists of sizes as users type them: "16,40,128", "1-12", "16-128+16", "16-512*2", and any mixture with commas.
 *
 * Ranges are ascending and hold their end if a step meets it. '*' and 'x' both multiply: some shells expand a star.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/status.h"
#include "output/scope.h"

typedef struct size_list {
    size_t *values; /* values in the order typed */
    size_t count;
} size_list;

/* Parses a list. Repeated values are kept once, as no point is measured twice; with `repeated` every value counts:
 * two sequences of 28 tokens are two. what: the user's name for it in messages, such as "--depth". Values outside
 * lowest ... highest are an error, and so is a list of more than RANGE_MAX_VALUES. On failure the list is empty. */
enum { RANGE_MAX_VALUES = 10000 };
deberta_status range_parse(scope *memory, size_list *list, const char *text, const char *what, size_t lowest,
                           size_t highest, bool repeated, deberta_error *err);
