/* Settles for each file whether its labels are names or numbers from 0, and tells the user which numbers mean which
 * names: a file that counts from 1, or one of other classes, would silently mean others.
 *
 * Only the whole file shows it: of classes "1" to "5", the label "1" is the first one's name and the second one's
 * number. Until the file ends, a label therefore has a code below 2 `labels`: the class of that name or, where there is
 * none, `labels` plus the number.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/options.h"

typedef struct label_numbers {
    const common_options *options;
    const char *const *names; /* [labels]; NULL: a class without a name */
    size_t labels;
    /* of the current file */
    bool *said;                    /* [2 labels] codes; NULL: no label yet */
    size_t name, number;           /* codes of the first labels that are only a name, or only a number */
    size_t name_line, number_line; /* their lines; 0: there is none */
    /* of all files */
    bool *read;        /* [labels] numbers that were read for a name; NULL: none */
    const char *twice; /* a name that is also the number of another class; NULL: none */
} label_numbers;

/* Takes a label; named: the class of that name, or SIZE_MAX. Returns NULL and its code, or why it has none. *mixed
 * becomes true if the file has names and numbers. */
const char *label_numbers_take(label_numbers *numbers, const char *label, size_t named, size_t line, size_t *code,
                               bool *mixed);
/* Ends a file: places [2 labels] become the classes of its codes. */
void label_numbers_settle(label_numbers *numbers, size_t *places);
/* Notes how labels were read, if it could be otherwise. Returns true if they are numbers that mean names. way_out: end
 * of the sentence, or "". */
bool label_numbers_note(const label_numbers *numbers, const char *way_out);
