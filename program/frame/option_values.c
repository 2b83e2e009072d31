/* Converts the text of an option to its typed value. SPDX-License-Identifier: MIT */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/frame/option_scan.h"

/* -------------------------------------------------------------------------------------------------------- one value */

static uint64_t read_whole(const common_options *options, const option *row, const char *text)
{
    char *end;
    errno = 0;
    const uint64_t value = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && !*end && !errno) return value;
    /* users of -t for --text type a text after it, not a number */
    if (text[0] == '-' && text[1] && !text[1 + strspn(text + 1, "0123456789")])
        usage_wrong(options, "--%s: expected a number of at least %zu, found %s", row->name, row->low, text);
    const bool is_text = row->letter == 't' && text[0] && strspn(text, "+-.0123456789") < strlen(text);
    usage_wrong(options, "--%s: expected a whole number, found '%s'%s", row->name, text,
                is_text && options_find(options->command, "text") ? "; a text is given with --text" : "");
}

static void fill_size(const common_options *options, const option *row, const char *text, size_t *target)
{
    const uint64_t number = read_whole(options, row, text);
    *target = (size_t)number;
    if (number >= row->low && number <= row->high) return;
    if (row->high == SIZE_MAX)
        usage_wrong(options, "--%s: expected a number of at least %zu, found %s", row->name, row->low, text);
    usage_wrong(options, "--%s: expected %zu to %zu, found %s", row->name, row->low, row->high, text);
}

static void fill_number(const common_options *options, const option *row, const char *text, double *target)
{
    char *end;
    *target = strtod(text, &end);
    if (end == text || *end || !(*target - *target == 0))
        usage_wrong(options, "--%s: expected a number, found '%s'", row->name, text);
    if ((row->least == 0 && row->most == 0) || (*target >= row->least && *target <= row->most)) return;
    usage_wrong(options, "--%s: expected %g to %g, found %s", row->name, row->least, row->most, text);
}

static void fill_bytes(const common_options *options, const option *row, const char *text, size_t *target)
{
    static const char suffixes[] = "KMGT";
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    const char *suffix = *end ? strchr(suffixes, *end >= 'a' ? *end - 32 : *end) : NULL;
    const unsigned shift = suffix ? 10u * (unsigned)(suffix - suffixes + 1) : 0;
    if (text[0] < '0' || text[0] > '9' || errno != 0 || !(*end == 0 || (suffix && end[1] == 0)) ||
        number > (SIZE_MAX >> shift))
        usage_wrong(options, "--%s: expected bytes such as 512M or 4G, found '%s'", row->name, text);
    if (number == 0) usage_wrong(options, "--%s: expected a number from 1, found '%s'", row->name, text);
    *target = (size_t)number << shift;
}

static void fill_choice(const common_options *options, const option *row, const char *text, int *target)
{
    char list[512] = "";
    for (int k = 0; row->choices[k]; k++) {
        if (strcmp(row->choices[k], text) == 0) {
            *target = k;
            return;
        }
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", k ? ", " : "", row->choices[k]);
    }
    usage_wrong(options, "--%s: expected one of %s; found '%s'", row->name, list, text);
}

/* Appends to a copy of the list; earlier copies stay until the options are freed, which is soon. */
static void append_text(const common_options *options, const char *text, text_list *list)
{
    const char **grown = options_take(options, list->count + 1, sizeof *grown);
    if (list->count) memcpy(grown, list->items, list->count * sizeof *grown);
    grown[list->count] = text;
    *list = (text_list){grown, list->count + 1};
}

static void fill_one(common_options *options, const given_option *given)
{
    const option *row = given->option;
    void *target = (char *)options + given->offset + row->at;
    switch (row->type) {
    case OPTION_UNTYPED: assert(!"a row without a type"); return;
    case OPTION_FLAG: *(bool *)target = true; return;
    case OPTION_SWITCH: *(int *)target = 1; return;
    case OPTION_TEXT: *(const char **)target = given->value; return;
    case OPTION_TEXTS: append_text(options, given->value, target); return;
    case OPTION_SIZE: fill_size(options, row, given->value, target); return;
    case OPTION_U64: *(uint64_t *)target = read_whole(options, row, given->value); return;
    case OPTION_NUMBER: fill_number(options, row, given->value, target); return;
    case OPTION_BYTES: fill_bytes(options, row, given->value, target); return;
    case OPTION_CHOICE: fill_choice(options, row, given->value, target); return;
    case OPTION_PARSED: row->parse(options, given->value, target); return;
    }
}

/* ------------------------------------------------------------------------------------------------------ combinations */

/* Returns the first option that was given among names separated by blanks; NULL: none was. */
static const option *first_given_of(const option_scan *scan, const char *names)
{
    for (size_t k = 0; k < scan->given_count; k++) {
        const char *name = scan->given[k].option->name, *at = names;
        const size_t length = strlen(name);
        while ((at = strstr(at, name))) {
            if ((at == names || at[-1] == ' ') && (at[length] == 0 || at[length] == ' ')) return scan->given[k].option;
            at += length;
        }
    }
    return NULL;
}

static void check_combination(const common_options *options, const option *row)
{
    const option *other = row->not_with ? first_given_of(options->scan, row->not_with) : NULL;
    if (other) usage_wrong(options, "--%s and --%s exclude each other", row->name, other->name);
    if (!row->needs || first_given_of(options->scan, row->needs)) return;
    char names[256] = "";
    size_t used = 0;
    for (const char *at = row->needs; *at && used < sizeof names - 8; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");
        if (option_find(options->command, at, length, 0)
                .option) /* a table of several commands lists all their options */
            used +=
                (size_t)snprintf(names + used, sizeof names - used, "%s--%.*s", used ? " or " : "", (int)length, at);
        at += length;
    }
    if (used) usage_wrong(options, "--%s needs %s", row->name, names);
}

const char *options_names_read(const char *text, const char *const *names, unsigned *bits, int *length)
{
    *bits = 0;
    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        unsigned k = 0;
        *length = (int)strcspn(at, ",");
        while (names[k] && (strlen(names[k]) != (size_t)*length || strncmp(names[k], at, (size_t)*length) != 0)) k++;
        if (!names[k]) return at;
        *bits |= 1u << k;
    }
    return NULL;
}

/* Notes an option that has one value and was given another before; what adds up takes all of them. */
static void note_last(const common_options *options, const given_option *given)
{
    const option_type type = given->option->type;
    const bool is_one = type != OPTION_FLAG && type != OPTION_SWITCH && type != OPTION_TEXTS && !given->option->adds_up;
    for (const given_option *before = options->scan->given; is_one && before < given; before++)
        if (before->option == given->option && strcmp(before->value, given->value) != 0) {
            say_note(options, "note: --%s has one value, and the last counts: '%s', not '%s'", given->option->name,
                     given->value, before->value);
            return;
        }
}

void option_values_fill(common_options *options)
{
    const option_scan *scan = options->scan;
    for (size_t k = 0; k < scan->given_count; k++) fill_one(options, &scan->given[k]);
    for (size_t k = 0; k < scan->given_count; k++) note_last(options, &scan->given[k]);
    output_names_choose(options);
    for (size_t k = 0; k < scan->given_count; k++) check_combination(options, scan->given[k].option);
    option_outputs_check(options);
    output_names_check(options);
    const char *name = getenv("DEBERTA_ISA"); /* an empty variable counts as not set */
    if (name && *name && option_is_common(options_find(options->command, "isa")) &&
        !option_given(options, &options->isa))
        common_isa_read(options, "DEBERTA_ISA", name);
}
