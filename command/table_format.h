/* --format, --json and, where a command has it, --latex: how a command prints its tables. SPDX-License-Identifier: MIT
 */
#ifndef COMMAND_TABLE_FORMAT_H
#define COMMAND_TABLE_FORMAT_H

#include "output/text_table.h"
#include "command/options.h"

typedef enum table_format { FORMAT_TABLE, FORMAT_MARKDOWN, FORMAT_CSV, FORMAT_JSON, FORMAT_LATEX } table_format;

extern const char *const table_format_names[], *const table_format_names_no_latex[],
                                                   *const table_format_names_no_json[];

/* What the options say; without them, what --out ends in. False after saying that there is no such format, or that two
 * were asked for. */
bool table_format_read(const common_options *options, table_format *format);
/* The same for what is a table alone. */
bool table_format_read_no_json(const common_options *options, table_format *format);
/* Of anything but JSON. */
text_table_style table_format_style(table_format format);

#define TABLE_FORMAT_OPTIONS                                                                                           \
    {"format",                                                                                                         \
     0,                                                                                                                \
     "NAME",                                                                                                           \
     "table (default), md, csv, json or latex; without it, what --out ends in",                                        \
     CHOICE_AT(common_options, format, table_format_names),                                                            \
     .role = OPTION_SHOWS},                                                                                            \
    {                                                                                                                  \
        "latex", 0, NULL, "the same as --format latex: a booktabs table, printed or in --out; takes no file",          \
            FLAG_AT(common_options, latex), .role = OPTION_SHOWS                                                       \
    }

#endif
