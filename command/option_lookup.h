/* Options by their names: for commands whose tables are not typed yet. Goes with the last of them.
 * SPDX-License-Identifier: MIT */
#ifndef COMMAND_OPTION_LOOKUP_H
#define COMMAND_OPTION_LOOKUP_H

typedef common_options parsed_options;
typedef option option_spec;

size_t options_argument_count(const parsed_options *options);
const char *options_argument(const parsed_options *options, size_t index); /* NULL after the last */
bool options_has(const parsed_options *options, const char *name);
bool options_knows(const parsed_options *options, const char *name);
const char *options_value(const parsed_options *options, const char *name, const char *fallback);
const char *options_nth_value(const parsed_options *options, const char *name, size_t index);
bool options_size(const parsed_options *options, const char *name, size_t fallback, size_t lowest, size_t highest,
                  size_t *value);
bool options_u64(const parsed_options *options, const char *name, uint64_t fallback, uint64_t *value);
bool options_number(const parsed_options *options, const char *name, double fallback, double *value);
bool options_choice(const parsed_options *options, const char *name, const char *const *choices, size_t fallback,
                    size_t *index);
const command *options_command(const parsed_options *options);

#endif
