/* Finds labels by name through a small hash table, and adds or refuses them. SPDX-License-Identifier: MIT */
#include "program/train/finetune_lists.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/numbers.h"
#include "core/base/status.h"
#include "core/io/quote.h"

/* ------------------------------------------------------------------------------------------------------------ the index */

/* Returns the slot of a name, or the free slot for it. slot_count is a power of two, and at least one slot is
 * free. */
static size_t slot_of(const label_list *labels, const char *name)
{
    size_t slot = hash_bytes(hash_of_nothing, name, strlen(name)) & (labels->slot_count - 1);
    while (labels->slots[slot] && strcmp(labels->names[labels->slots[slot] - 1], name) != 0)
        slot = (slot + 1) & (labels->slot_count - 1);
    return slot;
}

/* Enters a label into the table; if two labels have one name, the first is kept. */
static void index_label(label_list *labels, size_t number)
{
    const size_t slot = labels->names[number] ? slot_of(labels, labels->names[number]) : 0;
    if (labels->names[number] && !labels->slots[slot]) labels->slots[slot] = number + 1;
}

/* Enters all names; at most half of the slots are then taken. */
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

/* Prepares what settles names and numbers, once the labels are known. */
static void label_list_begin(label_list *labels)
{
    if (!labels->numbers.options)
        labels->numbers = (label_numbers){.options = labels->options, .names = labels->names, .labels = labels->count};
}

bool label_list_find(label_list *labels, const char *name, int32_t *label, text_record *record)
{
    *label = NO_LABEL;
    if (!*name) return text_record_spoil(record, "the label is empty");
    labels->lines += labels->collects && !record->object;
    size_t found = label_list_number(labels, name);
    if (found == SIZE_MAX && labels->collects) {
        if (strcmp(name, "-100") == 0)
            return text_record_spoil(record, "the label -100 marks elsewhere what has no label, and would be a class "
                                             "here: leave it out");
        *label = (int32_t)labels->count;
        add_label(labels, name);
        return true;
    }
    if (!labels->collects) {
        bool mixed;
        label_list_begin(labels);
        const char *problem = label_numbers_take(&labels->numbers, name, found, record->line, &found, &mixed);
        if (problem)
            return text_record_spoil(record, "%s%s", problem,
                                     mixed ? "" : "; --new-head makes a head for the labels of the file");
    }
    *label = (int32_t)found;
    return true;
}

const size_t *label_list_settle(label_list *labels)
{
    if (!labels->numbers.options) return NULL;
    size_t *places = options_take(labels->options, 2 * labels->count, sizeof *places);
    label_numbers_settle(&labels->numbers, places);
    return places;
}

/* Returns the name from its first non-blank on, with *length up to its last. */
static const char *trimmed(const char *name, size_t *length)
{
    name += strspn(name, " \t\r");
    *length = strlen(name);
    while (*length && strchr(" \t\r", name[*length - 1])) --*length;
    return name;
}

/* Returns true if the name is a decimal number, which is then *value. */
static bool is_decimal(const char *name, double *value)
{
    size_t length;
    name = trimmed(name, &length);
    *value = strtod(name, NULL);
    const size_t sign = *name == '-' || *name == '+', whole = strspn(name + sign, "0123456789"),
                 point = name[sign + whole] == '.';
    return whole && sign + whole + point + strspn(name + sign + whole + point, "0123456789") == length;
}

/* Orders numbers by value, then names without their blanks, in capitals or not. */
static int compare_spellings(const void *a, const void *b)
{
    const char *left = *(const char *const *)a, *right = *(const char *const *)b;
    double ours, theirs;
    const bool left_number = is_decimal(left, &ours), right_number = is_decimal(right, &theirs);
    if (left_number != right_number) return left_number ? -1 : 1;
    if (left_number) return (ours > theirs) - (ours < theirs);
    size_t left_bytes, right_bytes;
    left = trimmed(left, &left_bytes);
    right = trimmed(right, &right_bytes);
    const int order = strncasecmp(left, right, minimum(left_bytes, right_bytes));
    return order ? order : (left_bytes > right_bytes) - (left_bytes < right_bytes);
}

/* Refuses two spellings of one class: "pos" and "pos " or "1" and "01" are a typing error, and would be two classes.
 * Names that differ in capitals may be meant: *capitals become the first two of them. */
static deberta_status check_spellings(const label_list *labels, const char *capitals[2], deberta_error *err)
{
    const char **sorted = options_take(labels->options, labels->count, sizeof *sorted);
    if (labels->count) memcpy(sorted, labels->names, labels->count * sizeof *sorted);
    qsort(sorted, labels->count, sizeof *sorted, compare_spellings);
    for (size_t k = 1; k < labels->count; k++) {
        if (compare_spellings(&sorted[k - 1], &sorted[k]) != 0) continue;
        size_t bytes, other;
        const char *left = trimmed(sorted[k - 1], &bytes), *right = trimmed(sorted[k], &other);
        const bool blanks = bytes == other && memcmp(left, right, bytes) == 0;
        double value;
        if (blanks || is_decimal(left, &value))
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "the labels '%s' and '%s' %s: they would be two classes; %s the file",
                         QUOTE(sorted[k - 1]), QUOTE(sorted[k]), blanks ? "differ only by blanks" : "are one number",
                         blanks ? "take the blanks out of" : "write one of them in");
        if (!capitals[0]) memcpy(capitals, sorted + k - 1, 2 * sizeof *capitals);
    }
    return DEBERTA_OK;
}

/* Returns the first name that looks like several labels, such as "pos,neg", or NULL. */
static const char *find_several(const label_list *labels)
{
    for (size_t k = 0; k < labels->count; k++)
        for (const char *at = labels->names[k]; *at && *(at += strcspn(at, ",;|")); at++)
            if (at > labels->names[k] && at[1] && at[1] != ' ') return labels->names[k];
    return NULL;
}

/* Returns true for what tables and libraries write where a value is missing. */
static bool is_missing(const char *name)
{
    static const char *const names[] = {"na", "n/a", "nan", "null", "none", "<na>"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (strcasecmp(name, names[k]) == 0) return true;
    return false;
}

bool label_list_has_fractions(const label_list *labels)
{
    bool found = false;
    for (size_t k = 0; k < labels->count; k++) {
        char *end;
        const double value = strtod(labels->names[k], &end);
        if ((end == labels->names[k] || *end) && !is_missing(labels->names[k])) return false;
        found = found || (isfinite(value) && value != floor(value));
    }
    return found;
}

void label_list_note(const label_list *labels, deberta_training_task task)
{
    const char *capitals[2] = {0}, *several = task == DEBERTA_TRAIN_SEQUENCE ? find_several(labels) : NULL;
    (void)check_spellings(labels, capitals, NULL);
    for (size_t k = 0; k < labels->count; k++)
        if (strcmp(labels->names[k], "-1") == 0)
            say_note(labels->options,
                     "note: the label '-1' is a class of its own: tables such as GLUE's write it where "
                     "no label is known");
    for (size_t k = 0; k < labels->count && task == DEBERTA_TRAIN_SEQUENCE; k++)
        if (is_missing(labels->names[k]))
            say_note(labels->options,
                     "note: the label '%s' is a class of its own: tables write it where a label is missing, and such "
                     "lines are then to be left out",
                     labels->names[k]);
    if (capitals[0])
        say_note(labels->options, "note: the labels '%s' and '%s' differ only by capitals: they are two classes",
                 QUOTE(capitals[0]), QUOTE(capitals[1]));
    if (several)
        say_note(labels->options,
                 "note: the label '%s' is a class of its own: a text has one label, and several right labels of a "
                 "text (multi-label classification) are not trained",
                 QUOTE(several));
}

/* Most labels are used by several lines, while nearly all texts are used by one. A small file may be an exception; a
 * large one can be given as objects, which name the label. */
deberta_status label_list_check(const label_list *labels, deberta_training_task task, deberta_error *err)
{
    enum { FEW_LABELS = 10, FEW_TAGS = 20 };
    const bool tags = task == DEBERTA_TRAIN_TOKEN;
    const char *capitals[2] = {0};
    DEBERTA_TRY(check_spellings(labels, capitals, err));
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

/* Returns true if the name is digits, optionally after a minus, and short enough for a 64-bit number. */
static bool is_whole_number(const char *name)
{
    enum { MOST_DIGITS = 18 };
    const char *digits = name + (*name == '-');
    const size_t length = strspn(digits, "0123456789");
    return length && length <= MOST_DIGITS && digits[length] == '\0';
}

static int compare_numbers(const void *a, const void *b)
{
    const char *left = *(const char *const *)a, *right = *(const char *const *)b;
    const long long ours = strtoll(left, NULL, 10), theirs = strtoll(right, NULL, 10);
    /* equal numbers such as 1 and 01 are compared as names */
    return ours != theirs ? (ours > theirs) - (ours < theirs) : strcmp(left, right);
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
    /* Class numbers keep their order: of 0 ... n - 1 each is its own index, as in other programs. */
    bool numbers = true;
    for (size_t k = 0; k < count; k++) numbers = numbers && is_whole_number(labels->names[k]);
    qsort(labels->names, count, sizeof *labels->names, numbers ? compare_numbers : compare_names);
    labels->slots = NULL;
    for (size_t k = 0; k < count; k++) places[k] = label_list_number(labels, before[k]);
    labels->collects = false;
    return places;
}
