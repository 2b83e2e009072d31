/* SPDX-License-Identifier: MIT */
#include "cli/table_format.h"

bool table_format_read(const parsed_options *options, table_format *format)
{
    static const char *const names[] = {"table", "md", "csv", "json", "latex", NULL}, *const without_latex[] = {
                                                                                          "table", "md", "csv", "json",
                                                                                          NULL};
    const bool json = options_has(options, "json"), latex = options_has(options, "latex");
    size_t chosen;
    if (!options_choice(options, "format", options_knows(options, "latex") ? names : without_latex, FORMAT_TABLE,
                        &chosen))
        return false;
    if (options_knows(options, "latex") && json + latex + options_has(options, "format") > 1 &&
        !(json && chosen == FORMAT_JSON && !latex)) {
        report_usage(options, "give one of --format, --json and --latex");
        return false;
    }
    *format = json ? FORMAT_JSON : latex ? FORMAT_LATEX : (table_format)chosen;
    return true;
}

text_table_style table_format_style(table_format format)
{
    static const text_table_style styles[] = {[FORMAT_TABLE] = TEXT_TABLE_PLAIN,
                                              [FORMAT_MARKDOWN] = TEXT_TABLE_MARKDOWN,
                                              [FORMAT_CSV] = TEXT_TABLE_CSV,
                                              [FORMAT_JSON] = TEXT_TABLE_PLAIN,
                                              [FORMAT_LATEX] = TEXT_TABLE_LATEX};
    return styles[format];
}
