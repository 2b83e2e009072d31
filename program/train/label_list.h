/* Names of labels: those of the model or of the command line, or whatever the data has.
 *
 * SPDX-License-Identifier: MIT */
#ifndef PROGRAM_TRAIN_LABEL_LIST_H
#define PROGRAM_TRAIN_LABEL_LIST_H

#include "program/frame/input/text_stream.h"
#include "include/deberta_training.h"

enum { NO_LABEL = -100 }; /* as deberta_example has it */

typedef struct label_list {
    const char **names; /* [count]; NULL: a label without a name */
    size_t count, capacity;
    size_t lines;               /* of columns that a label was taken from; objects say themselves what is the label */
    bool collects;              /* a new name is added */
    bool of_model;              /* they came with it */
    size_t *slots;              /* a hash table: number of the label + 1, or 0; NULL until something is looked up */
    size_t slot_count, indexed; /* labels before `indexed` are in it */
} label_list;

/* The label's number; a name that no label has is added, or becomes the record's problem. */
deberta_status label_list_find(label_list *labels, const char *name, int32_t *label, text_record *record);
/* The first label with that name, or SIZE_MAX; false: no memory. */
bool label_list_number(label_list *labels, const char *name, size_t *number);
/* Refuses labels that are nearly all different: columns in the wrong order, or a file of another task. */
deberta_status label_list_check(const label_list *labels, deberta_training_task task, deberta_error *err);
/* Names in ascending order. places: of each label its new number, to be freed in any case. */
void label_list_sort(label_list *labels, size_t **places);
void label_list_free(label_list *labels);

#endif
