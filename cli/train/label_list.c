/* SPDX-License-Identifier: MIT */
#include "cli/train/label_list.h"

#include <stdlib.h>
#include <string.h>

#include "cli/train/finetune_lists.h"
#include "command/input/labelled_text.h"
#include "core/base/grow.h"
#include "core/base/status.h"

static deberta_status no_memory(deberta_error *err) { return status_fail(err, DEBERTA_E_MEMORY, "out of memory"); }

/* ------------------------------------------------------------------------------------------------------------ the index */

/* Where a name is, or the free slot where it would be. slot_count is a power of two, and at least one slot is free. */
static size_t slot_of(const label_list *labels, const char *name)
{
    uint32_t hash = 0x811c9dc5u; /* FNV-1a */
    for (const char *c = name; *c; c++) hash = (hash ^ (unsigned char)*c) * 0x01000193u;
    size_t slot = hash & (labels->slot_count - 1);
    while (labels->slots[slot] && strcmp(labels->names[labels->slots[slot] - 1], name) != 0)
        slot = (slot + 1) & (labels->slot_count - 1);
    return slot;
}

/* Of two labels with one name the first is found. */
static void index_label(label_list *labels, size_t number)
{
    const size_t slot = labels->names[number] ? slot_of(labels, labels->names[number]) : 0;
    if (labels->names[number] && !labels->slots[slot]) labels->slots[slot] = number + 1;
}

/* All names that are there become findable; at most half of the slots are taken. */
static bool index_all(label_list *labels)
{
    enum { LEAST_SLOTS = 64 };
    if (2 * labels->count > labels->slot_count || !labels->slots) {
        size_t slots = LEAST_SLOTS;
        while (slots < 4 * labels->count) slots *= 2;
        free(labels->slots);
        labels->slots = calloc(slots, sizeof *labels->slots);
        labels->slot_count = slots;
        labels->indexed = 0;
    }
    for (; labels->slots && labels->indexed < labels->count; labels->indexed++) index_label(labels, labels->indexed);
    return labels->slots != NULL;
}

bool label_list_number(label_list *labels, const char *name, size_t *number)
{
    if (!index_all(labels)) return false;
    const size_t found = labels->slots[slot_of(labels, name)];
    *number = found ? found - 1 : SIZE_MAX;
    return true;
}

/* ---------------------------------------------------------------------------------------------------------- the labels */

static deberta_status add_label(label_list *labels, const char *name, deberta_error *err)
{
    const char **names = grown(labels->names, &labels->capacity, labels->count + 1, sizeof *names);
    if (!names) return no_memory(err);
    labels->names = names;
    names[labels->count] = strdup(name);
    return names[labels->count++] ? DEBERTA_OK : no_memory(err);
}

deberta_status label_list_find(label_list *labels, const char *name, int32_t *label, text_record *record,
                               deberta_error *err)
{
    size_t found;
    *label = NO_LABEL;
    if (!*name) return text_record_spoil(record, err, "the label is empty");
    if (!label_list_number(labels, name, &found)) return no_memory(err);
    if (found == SIZE_MAX && labels->collects) {
        *label = (int32_t)labels->count;
        return add_label(labels, name, err);
    }
    if (found == SIZE_MAX) found = labelled_text_number(labels->count, name);
    if (found == SIZE_MAX)
        return text_record_spoil(record, err, "there is no label '%.80s', expected a name or 0 to %zu%s", name,
                                 labels->count - 1,
                                 labels->of_model ? "; --new-head makes a head for the labels of the file" : "");
    *label = (int32_t)found;
    return DEBERTA_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

deberta_status label_list_sort(label_list *labels, struct example_list *examples, deberta_error *err)
{
    const size_t count = labels->count;
    const char **before = malloc((count + 1) * sizeof *before);
    size_t *places = malloc((count + 1) * sizeof *places);
    bool fits = before && places;
    if (fits) {
        memcpy(before, labels->names, count * sizeof *before);
        qsort(labels->names, count, sizeof *labels->names, compare_names);
        free(labels->slots);
        labels->slots = NULL;
    }
    for (size_t k = 0; fits && k < count; k++) fits = label_list_number(labels, before[k], &places[k]);
    for (size_t i = 0; fits && i < examples->count; i++) {
        deberta_example *e = &examples->items[i];
        int32_t *tags = (int32_t *)e->token_labels;
        if (e->label >= 0) e->label = (int32_t)places[e->label];
        for (size_t t = 0; tags && t < e->tokens; t++)
            if (tags[t] >= 0) tags[t] = (int32_t)places[tags[t]];
    }
    labels->collects = false;
    free(before);
    free(places);
    return fits ? DEBERTA_OK : no_memory(err);
}

void label_list_free(label_list *labels)
{
    for (size_t k = 0; k < labels->count; k++) free((void *)labels->names[k]);
    free(labels->names);
    free(labels->slots);
    *labels = (label_list){0};
}
