/* Finds rows of a command's tables by name, or by the member that they fill. SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <string.h>

#include "program/frame/option_scan.h"

/* Returns group `index` of a command; one without groups has its only table as group 0. */
static option_group nth_group(const command *command, size_t index)
{
    static const option_group none = {NULL, 0, NULL};
    if (command->groups) return command->groups[index];
    return index == 0 && command->options ? (option_group){command->options, 0, NULL} : none;
}

void options_visit(const command *command, void (*visit)(void *context, const option_group *group), void *context)
{
    option_group group;
    for (size_t k = 0; (group = nth_group(command, k)).options; k++) visit(context, &group);
    const option_group common = {common_option_table, 0, "common options"};
    visit(context, &common);
}

static bool is_called(const char *candidate, const char *name, size_t length)
{
    return candidate && strlen(candidate) == length && strncmp(candidate, name, length) == 0;
}

static const option *find_in(const option *table, const char *name, size_t length, char letter)
{
    for (; table->name; table++)
        if (name ? is_called(table->name, name, length) : table->letter == letter) return table;
    return NULL;
}

bool option_is_absent(const command *command, const option *row)
{
    const size_t length = strlen(row->name);
    for (const char *at = command->without; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (strcspn(at, " ") == length && strncmp(at, row->name, length) == 0) return option_is_common(row);
    return false;
}

found_option option_find(const command *command, const char *name, size_t length, char letter)
{
    option_group group;
    for (size_t k = 0; (group = nth_group(command, k)).options; k++) {
        const option *found = find_in(group.options, name, length, letter);
        if (found) return (found_option){found, group.offset};
    }
    const option *common = find_in(common_option_table, name, length, letter);
    return (found_option){common && option_is_absent(command, common) ? NULL : common, 0};
}

const option *options_find(const command *command, const char *name)
{
    return option_find(command, name, strlen(name), 0).option;
}

const char *command_word(const command *subcommand)
{
    const char *space = strchr(subcommand->name, ' ');
    return space ? space + 1 : subcommand->name;
}

bool option_is_common(const option *row)
{
    const option *common = common_option_table;
    while (common->name && common != row) common++;
    return common->name != NULL;
}

/* ---------------------------------------------------------------------------------------------------------- members */

bool option_given(const common_options *options, const void *member)
{
    const size_t at = (size_t)((const char *)member - (const char *)options);
    for (size_t k = 0; k < options->scan->given_count; k++) {
        const given_option *given = &options->scan->given[k];
        if (given->option->type != OPTION_UNTYPED && given->offset + given->option->at == at) return true;
    }
    return false;
}

typedef struct member_search {
    const command *command;
    size_t at;
    const option *found;
} member_search;

static void look_for_member(void *context, const option_group *group)
{
    member_search *search = context;
    for (const option *row = group->options; row->name && !search->found; row++)
        if (row->type != OPTION_UNTYPED && group->offset + row->at == search->at &&
            !option_is_absent(search->command, row))
            search->found = row;
}

const option *option_of_member(const common_options *options, const void *member)
{
    member_search search = {.command = options->command, .at = (size_t)((const char *)member - (const char *)options)};
    options_visit(options->command, look_for_member, &search);
    return search.found;
}

const char *option_name(const common_options *options, const void *member)
{
    return option_of_member(options, member)->name;
}

bool option_exists(const common_options *options, const void *member)
{
    return option_of_member(options, member) != NULL;
}

void option_note_unused(const common_options *options, const void *member, const char *why)
{
    const option *row = option_of_member(options, member);
    if (row && option_given(options, member)) say_note(options, "note: --%s: %s", row->name, why);
}

_Noreturn void option_wrong(const common_options *options, const void *member, const char *format, ...)
{
    const option *row = option_of_member(options, member);
    va_list arguments;
    va_start(arguments, format);
    usage_wrong_of(options, row ? row->name : NULL, format, arguments);
}

const char *options_out(const common_options *options)
{
    return options->outs.count ? options->outs.items[options->outs.count - 1] : NULL;
}
