/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/option_scan.h"

const command *options_command(const parsed_options *options) { return options->command; }

size_t options_argument_count(const parsed_options *options) { return options->argument_count; }

const char *options_argument(const parsed_options *options, size_t index)
{
    return index < options->argument_count ? options->arguments[index] : NULL;
}

bool options_has(const parsed_options *options, const char *name)
{
    return options_nth_value(options, name, 0) != NULL;
}

bool options_knows(const parsed_options *options, const char *name)
{
    return option_find(options->command, name, strlen(name), 0).option != NULL;
}

/* A flag has the empty text. */
const char *options_nth_value(const parsed_options *options, const char *name, size_t index)
{
    for (size_t k = 0; k < options->scan->given_count; k++) {
        const given_option *given = &options->scan->given[k];
        if (strcmp(given->option->name, name) == 0 && index-- == 0) return given->value ? given->value : "";
    }
    return NULL;
}

const char *options_value(const parsed_options *options, const char *name, const char *fallback)
{
    const char *value;
    for (size_t k = 0; (value = options_nth_value(options, name, k)); k++) fallback = value;
    return fallback;
}

bool options_u64(const parsed_options *options, const char *name, uint64_t fallback, uint64_t *value)
{
    *value = fallback;
    const char *text = options_value(options, name, NULL);
    if (!text) return true;
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == 0 && errno == 0) return true;
    say_usage(options, "--%s: expected a whole number, found '%s'", name, text);
    return false;
}

bool options_size(const parsed_options *options, const char *name, size_t fallback, size_t lowest, size_t highest,
                  size_t *value)
{
    uint64_t number;
    if (!options_u64(options, name, fallback, &number)) return false;
    *value = (size_t)number;
    if (!options_has(options, name) || (number >= lowest && number <= highest)) return true;
    if (highest == SIZE_MAX)
        say_usage(options, "--%s: expected a number of at least %zu, found %s", name, lowest,
                  options_value(options, name, ""));
    else
        say_usage(options, "--%s: expected %zu to %zu, found %s", name, lowest, highest,
                  options_value(options, name, ""));
    return false;
}

bool options_number(const parsed_options *options, const char *name, double fallback, double *value)
{
    *value = fallback;
    const char *text = options_value(options, name, NULL);
    if (!text) return true;
    char *end;
    *value = strtod(text, &end);
    if (end != text && *end == 0 && *value - *value == 0) return true;
    say_usage(options, "--%s: expected a number, found '%s'", name, text);
    return false;
}

bool options_choice(const parsed_options *options, const char *name, const char *const *choices, size_t fallback,
                    size_t *index)
{
    *index = fallback;
    const char *text = options_value(options, name, NULL);
    if (!text) return true;
    char list[256] = "";
    for (size_t k = 0; choices[k]; k++) {
        if (strcmp(choices[k], text) == 0) {
            *index = k;
            return true;
        }
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", k ? ", " : "", choices[k]);
    }
    say_usage(options, "--%s: expected one of %s; found '%s'", name, list, text);
    return false;
}
