/* Names of labels: those of the model or of the command line, or whatever the data has.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CLI_TRAIN_LABEL_LIST_H
#define CLI_TRAIN_LABEL_LIST_H

#include "command/input/text_stream.h"
#include "include/deberta.h"

struct example_list;

enum { NO_LABEL = -100 }; /* as deberta_example has it */

typedef struct label_list {
    const char **names; /* [count]; NULL: a label without a name */
    size_t count, capacity;
    bool collects;      /* a new name is added */
    bool of_model;      /* they came with it */
    size_t *slots;      /* a hash table: number of the label + 1, or 0; NULL until something is looked up */
    size_t slot_count, indexed; /* labels before `indexed` are in it */
} label_list;

/* The label's number; a name that no label has is added, or becomes the record's problem. */
deberta_status label_list_find(label_list *labels, const char *name, int32_t *label, text_record *record,
                               deberta_error *err);
/* The first label with that name, or SIZE_MAX; false: no memory. */
bool label_list_number(label_list *labels, const char *name, size_t *number);
/* Names in ascending order; labels of the examples change with them. */
deberta_status label_list_sort(label_list *labels, struct example_list *examples, deberta_error *err);
void label_list_free(label_list *labels);

#endif
