/* Reads the labels of a file as names or as numbers, and tells which. SPDX-License-Identifier: MIT */
#include "program/frame/input/label_numbers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/quote.h"

/* Returns the number below `count` that the label spells, or SIZE_MAX. "01" is none, so a class has one spelling. */
static size_t number_of(size_t count, const char *label)
{
    char *end;
    if (*label < '0' || *label > '9' || (*label == '0' && label[1])) return SIZE_MAX;
    const unsigned long long number = strtoull(label, &end, 10);
    return *end || number >= count ? SIZE_MAX : (size_t)number;
}

/* Returns the next class of that name, or SIZE_MAX. */
static size_t next_of_name(const label_numbers *numbers, size_t named)
{
    size_t next = named + 1;
    while (next < numbers->labels &&
           !(numbers->names[next] && strcmp(numbers->names[next], numbers->names[named]) == 0))
        next++;
    return next < numbers->labels ? next : SIZE_MAX;
}

const char *label_numbers_take(label_numbers *numbers, const char *label, size_t named, size_t line, size_t *code,
                               bool *mixed)
{
    const common_options *options = numbers->options;
    const size_t number = number_of(numbers->labels, label);
    *mixed = false;
    if (named == SIZE_MAX && number == SIZE_MAX)
        return options_text(options, "there is no label '%s', expected a name or 0 to %zu", QUOTE(label),
                            numbers->labels - 1);
    if (number == SIZE_MAX && !(numbers->said && numbers->said[named])) { /* said: it was looked up before */
        const size_t next = next_of_name(numbers, named);
        if (next != SIZE_MAX)
            return options_text(options,
                                "'%s' is the name of the labels %zu and %zu of this model: write numbers from 0",
                                QUOTE(label), named, next);
    }
    *code = named != SIZE_MAX ? named : numbers->labels + number;
    if (!numbers->said) numbers->said = options_take(options, 2 * numbers->labels, sizeof *numbers->said);
    numbers->said[*code] = true;
    if (number == SIZE_MAX && !numbers->name_line) {
        numbers->name = *code;
        numbers->name_line = line;
    }
    if (named == SIZE_MAX && !numbers->number_line) {
        numbers->number = number;
        numbers->number_line = line;
    }
    *mixed = numbers->name_line && numbers->number_line;
    if (!*mixed) return NULL;
    return options_text(options,
                        "the label '%s' of line %zu is a name, and '%zu' of line %zu can only be a number: write "
                        "all labels of the file as names, or all as numbers from 0",
                        QUOTE(numbers->names[numbers->name]), numbers->name_line, numbers->number,
                        numbers->number_line);
}

/* Keeps that a number was read as the class, if that has a name of its own (not NULL, not LABEL_<number>). */
static void keep_number(label_numbers *numbers, size_t number)
{
    char unnamed[32];
    const char *name = numbers->names[number];
    snprintf(unnamed, sizeof unnamed, "LABEL_%zu", number);
    if (!name || strcmp(name, unnamed) == 0) return;
    if (!numbers->read) numbers->read = options_take(numbers->options, numbers->labels, sizeof *numbers->read);
    numbers->read[number] = true;
}

void label_numbers_settle(label_numbers *numbers, size_t *places)
{
    const size_t labels = numbers->labels;
    for (size_t code = 0; code < 2 * labels; code++) {
        const size_t number =
            code < labels ? number_of(labels, numbers->names[code] ? numbers->names[code] : "") : code - labels;
        places[code] = numbers->number_line ? number : code;
        if (!numbers->said || !numbers->said[code]) continue;
        if (numbers->number_line)
            keep_number(numbers, number);
        else if (!numbers->name_line && number != code && !numbers->twice)
            numbers->twice = numbers->names[code];
    }
    if (numbers->said) memset(numbers->said, 0, 2 * labels * sizeof *numbers->said);
    numbers->name_line = numbers->number_line = 0;
}

bool label_numbers_note(const label_numbers *numbers, const char *way_out)
{
    enum { SHOWN = 4 };
    const common_options *options = numbers->options;
    const char *shown = "";
    size_t count = 0;
    if (numbers->twice)
        say_note(options,
                 "note: labels are read as names, and all of them could be numbers from 0: '%s' is the class of "
                 "that name, not the class with that number, '%s'",
                 QUOTE(numbers->twice), QUOTE(numbers->names[number_of(numbers->labels, numbers->twice)]));
    if (!numbers->read) return false;
    for (size_t k = 0; k < numbers->labels; k++) {
        if (!numbers->read[k]) continue;
        if (count < SHOWN)
            shown = options_text(options, "%s%s%zu is '%s'", shown, count ? ", " : "", k, QUOTE(numbers->names[k]));
        count++;
    }
    say_note(options, "note: labels are numbers of the %zu labels from 0: %s%s; %zu of %zu occur%s", numbers->labels,
             shown, count > SHOWN ? " ..." : "", count, numbers->labels, way_out);
    return true;
}
