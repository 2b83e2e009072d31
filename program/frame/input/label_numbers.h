/* Keeps which names of labels a file has said by their numbers, and tells the user: a file that counts from 1, or one
 * of other classes, would silently mean others.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/options.h"

typedef struct label_numbers {
    bool *read; /* [labels]; NULL: no number was read for a name */
} label_numbers;

/* Keeps that a number was read as the label, if that has a name of its own (not NULL, not LABEL_<number>). */
void label_numbers_add(label_numbers *numbers, const common_options *options, size_t labels, size_t label,
                       const char *name);
/* Notes which numbers mean which names, and returns true; does nothing if no number was kept. way_out: end of the
 * sentence, or "". */
bool label_numbers_note(const label_numbers *numbers, const common_options *options, const char *const *names,
                        size_t labels, const char *way_out);
