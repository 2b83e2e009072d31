/* Labels are found by name through a small hash table, and are added or refused. SPDX-License-Identifier: MIT */
#include "program/train/finetune_lists.h"

#include <stdlib.h>
#include <string.h>

#include "program/frame/input/labelled_text.h"
#include "core/base/hash.h"
#include "core/base/status.h"

/* ------------------------------------------------------------------------------------------------------------ the index */

/* Where a name is, or the free slot where it would be. slot_count is a power of two, and at least one slot is free. */
static size_t slot_of(const label_list *labels, const char *name)
{
    size_t slot = hash_bytes(hash_of_nothing, name, strlen(name)) & (labels->slot_count - 1);
    while (labels->slots[slot] && strcmp(labels->names[labels->slots[slot] - 1], name) != 0)
        slot = (slot + 1) & (labels->slot_count - 1);
    return slot;
}

/* Where two labels have one name, the first is found. */
static void index_label(label_list *labels, size_t number)
{
    const size_t slot = labels->names[number] ? slot_of(labels, labels->names[number]) : 0;
    if (labels->names[number] && !labels->slots[slot]) labels->slots[slot] = number + 1;
}

/* All names that are there become findable; at most half of the slots are taken. */
static void index_all(label_list *labels)
{
    enum { LEAST_SLOTS = 64 };
    if (2 * labels->count > labels->slot_count || !labels->slots) {
        size_t slots = LEAST_SLOTS;
        while (slots < 4 * labels->count) slots *= 2;
        labels->slots = options_take(labels->options, slots, sizeof *labels->slots);
        labels->slot_count = slots;
        labels->indexed = 0;
    }
    for (; labels->indexed < labels->count; labels->indexed++) index_label(labels, labels->indexed);
}

size_t label_list_number(label_list *labels, const char *name)
{
    index_all(labels);
    const size_t found = labels->slots[slot_of(labels, name)];
    return found ? found - 1 : SIZE_MAX;
}

/* ---------------------------------------------------------------------------------------------------------- the labels */

static void add_label(label_list *labels, const char *name)
{
    labels->names =
        options_grown(labels->options, labels->names, &labels->capacity, labels->count, sizeof *labels->names);
    labels->names[labels->count++] = options_text(labels->options, "%s", name);
}

bool label_list_find(label_list *labels, const char *name, int32_t *label, text_record *record)
{
    *label = NO_LABEL;
    if (!*name) return text_record_spoil(record, "the label is empty");
    labels->lines += labels->collects && !record->object;
    size_t found = label_list_number(labels, name);
    if (found == SIZE_MAX && labels->collects) {
        *label = (int32_t)labels->count;
        add_label(labels, name);
        return true;
    }
    if (found == SIZE_MAX) found = labelled_text_number(labels->count, name);
    if (found == SIZE_MAX)
        return text_record_spoil(record, "there is no label '%.80s', expected a name or 0 to %zu%s", name,
                                 labels->count - 1,
                                 labels->of_model ? "; --new-head makes a head for the labels of the file" : "");
    *label = (int32_t)found;
    return true;
}

/* Few labels are used by one line only; nearly all texts are. A small file may be an exception; a large one can be
 * given as objects, which name the label. */
deberta_status label_list_check(const label_list *labels, deberta_training_task task, deberta_error *err)
{
    enum { FEW_LABELS = 10, FEW_TAGS = 20 };
    const bool tags = task == DEBERTA_TRAIN_TOKEN;
    if (labels->count < (tags ? FEW_TAGS : FEW_LABELS)) return DEBERTA_OK;
    if (tags ? 4 * labels->count <= labels->lines : 4 * labels->count <= 3 * labels->lines) return DEBERTA_OK;
    if (labels->lines == 0) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT,
                 "%zu labels for %zu lines: are the columns swapped? A line is %s; if it is so, objects (.jsonl) with "
                 "\"%s\" and \"%s\" are taken as they are",
                 labels->count, labels->lines,
                 tags ? "word, tab, label (label, tab, text is for 'finetune sequence')" : "label, tab, text",
                 tags ? "words" : "label", tags ? "labels" : "text");
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

size_t *label_list_sort(label_list *labels)
{
    const size_t count = labels->count;
    const char **before = options_take(labels->options, count, sizeof *before);
    size_t *places = options_take(labels->options, count, sizeof *places);
    if (count) memcpy(before, labels->names, count * sizeof *before);
    qsort(labels->names, count, sizeof *labels->names, compare_names);
    labels->slots = NULL;
    for (size_t k = 0; k < count; k++) places[k] = label_list_number(labels, before[k]);
    labels->collects = false;
    return places;
}
