/* SPDX-License-Identifier: MIT */
#include "cli/train/finetune_lists.h"

#include <stdlib.h>
#include <string.h>

#include "command/input/labelled_text.h"
#include "core/base/grow.h"
#include "core/base/status.h"

static deberta_status no_memory(deberta_error *err) { return status_fail(err, DEBERTA_E_MEMORY, "out of memory"); }

/* --------------------------------------------------------------------------------------------------------- examples */

static int32_t *copy_numbers(const int32_t *numbers, size_t count)
{
    int32_t *copy = malloc((count + 1) * sizeof *copy);
    if (copy) memcpy(copy, numbers, count * sizeof *copy);
    return copy;
}

deberta_status example_list_add(example_list *list, const deberta_example *example, deberta_example **added,
                                deberta_error *err)
{
    deberta_example *items = grown(list->items, &list->capacity, list->count + 1, sizeof *items);
    if (!items) return no_memory(err);
    list->items = items;
    deberta_example *item = &items[list->count];
    *item = *example;
    item->ids = copy_numbers(example->ids, example->tokens);
    item->token_types = example->token_types ? copy_numbers(example->token_types, example->tokens) : NULL;
    item->token_labels = example->token_labels ? copy_numbers(example->token_labels, example->tokens) : NULL;
    list->count++;
    *added = item;
    if (!item->ids || (example->token_types && !item->token_types) || (example->token_labels && !item->token_labels))
        return no_memory(err);
    return DEBERTA_OK;
}

void example_list_free(example_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free((void *)list->items[i].ids);
        free((void *)list->items[i].token_types);
        free((void *)list->items[i].token_labels);
    }
    free(list->items);
    free(list->windows);
    *list = (example_list){0};
}

/* ----------------------------------------------------------------------------------------------------------- labels */

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
    *label = NO_LABEL;
    if (!*name) return text_record_spoil(record, err, "the label is empty");
    if (labels->collects) {
        labels->lines += !record->object;
        for (size_t k = 0; k < labels->count && *label == NO_LABEL; k++)
            if (strcmp(labels->names[k], name) == 0) *label = (int32_t)k;
        if (*label == NO_LABEL) *label = (int32_t)labels->count;
        return (size_t)*label < labels->count ? DEBERTA_OK : add_label(labels, name, err);
    }
    const size_t found = labelled_text_find(labels->names, labels->count, name);
    if (found == SIZE_MAX)
        return text_record_spoil(record, err, "there is no label '%.80s', expected a name or 0 to %zu%s", name,
                                 labels->count - 1,
                                 labels->of_model ? "; --new-head makes a head for the labels of the file" : "");
    *label = (int32_t)found;
    return DEBERTA_OK;
}

/* Of labels few are used by one line only, of texts nearly all. A small file may be an exception; a large one can be
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

deberta_status label_list_sort(label_list *labels, example_list *examples, deberta_error *err)
{
    const size_t count = labels->count;
    const char **before = malloc((count + 1) * sizeof *before);
    int32_t *places = malloc((count + 1) * sizeof *places);
    const bool fits = before && places;
    if (fits) {
        memcpy(before, labels->names, count * sizeof *before);
        qsort(labels->names, count, sizeof *labels->names, compare_names);
        for (size_t k = 0; k < count; k++)
            for (size_t j = 0; j < count; j++)
                if (labels->names[j] == before[k]) places[k] = (int32_t)j;
    }
    for (size_t i = 0; fits && i < examples->count; i++) {
        deberta_example *e = &examples->items[i];
        int32_t *tags = (int32_t *)e->token_labels;
        if (e->label >= 0) e->label = places[e->label];
        for (size_t t = 0; tags && t < e->tokens; t++)
            if (tags[t] >= 0) tags[t] = places[tags[t]];
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
    *labels = (label_list){0};
}

/* ----------------------------------------------------------------------------------------------------------- records */

deberta_status reader_problem(const text_record *record, deberta_error *err)
{
    char place[256];
    if (!record->problem) return DEBERTA_OK;
    text_record_place(record, place);
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %s", place, record->problem);
}

deberta_status reader_tokenize(finetune_reader *r, text_record *record, const char *pair, size_t pair_bytes,
                               deberta_error *err)
{
    const deberta_text text = {.struct_size = sizeof text,
                               .text = record->text,
                               .text_bytes = record->text_bytes,
                               .pair = pair,
                               .pair_bytes = pair_bytes,
                               .max_tokens = r->cuts ? r->most_tokens : 0,
                               .strict = 1};
    deberta_error reason = {0};
    const deberta_status status = deberta_tokenize(&r->tokens, r->tokenizer, &text, &reason);
    if (status == DEBERTA_E_MEMORY) return no_memory(err);
    if (status != DEBERTA_OK) return text_record_spoil(record, err, "%s", reason.message);
    if (r->tokens->count > r->most_tokens)
        return text_record_spoil(record, err, "%s has %zu tokens, expected at most %zu: --cut shortens it",
                                 pair ? "the pair" : "the text", r->tokens->count, r->most_tokens);
    return DEBERTA_OK;
}
