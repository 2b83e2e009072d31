/* SPDX-License-Identifier: MIT */
#include "command/table_format.h"

#include "core/base/path.h"

/* Of several names the last whose suffix is that of a format; pictures and other names say nothing. */
static table_format format_of_output(const parsed_options *options)
{
    static const char *const suffixes[] = {
        [FORMAT_MARKDOWN] = ".md", [FORMAT_CSV] = ".csv", [FORMAT_JSON] = ".json", [FORMAT_LATEX] = ".tex"};
    table_format found = FORMAT_TABLE;
    const char *path;
    for (size_t k = 0; (path = options_nth_value(options, "out", k)); k++)
        for (size_t f = FORMAT_MARKDOWN; f < sizeof suffixes / sizeof *suffixes; f++)
            if (path_has_suffix(path, suffixes[f]) && (f != FORMAT_LATEX || options_knows(options, "latex")))
                found = (table_format)f;
    return found;
}

bool table_format_read(const parsed_options *options, table_format *format)
{
    static const char *const names[] = {"table", "md", "csv", "json", "latex", NULL}, *const without_latex[] = {
                                                                                          "table", "md", "csv", "json",
                                                                                          NULL};
    const bool json = options_has(options, "json"), latex = options_has(options, "latex");
    size_t chosen;
    if (!options_choice(options, "format", options_knows(options, "latex") ? names : without_latex,
                        format_of_output(options), &chosen))
        return false;
    if (json + latex + options_has(options, "format") > 1 && !(json && chosen == FORMAT_JSON && !latex)) {
        say_usage(options, "give one of --format%s",
                  options_knows(options, "latex") ? ", --json and --latex" : " and --json");
        return false;
    }
    *format = json ? FORMAT_JSON : latex ? FORMAT_LATEX : (table_format)chosen;
    return true;
}

bool table_format_read_no_json(const parsed_options *options, table_format *format)
{
    if (!table_format_read(options, format)) return false;
    if (*format != FORMAT_JSON) return true;
    say_usage(options, "%s: there is no JSON; --format csv is for programs", options_argument(options, 0));
    return false;
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
