/* SPDX-License-Identifier: MIT */
#include "command/table_format.h"

#include "core/base/path.h"

const char *const table_format_names[] = {"table", "md", "csv", "json", "latex", NULL},
                  *const table_format_names_no_latex[] = {"table", "md", "csv", "json", NULL},
                  *const table_format_names_no_json[] = {"table", "md", "csv", NULL};

/* Of several names the last whose suffix is that of a format; pictures and other names say nothing. */
static table_format format_of_output(const common_options *options)
{
    static const char *const suffixes[] = {
        [FORMAT_MARKDOWN] = ".md", [FORMAT_CSV] = ".csv", [FORMAT_JSON] = ".json", [FORMAT_LATEX] = ".tex"};
    table_format found = FORMAT_TABLE;
    for (size_t k = 0; k < options->outs.count; k++)
        for (size_t f = FORMAT_MARKDOWN; f < sizeof suffixes / sizeof *suffixes; f++)
            if (path_has_suffix(options->outs.items[k], suffixes[f]) &&
                (f != FORMAT_LATEX || option_exists(options, &options->latex)))
                found = (table_format)f;
    return found;
}

/* A table under the name of a spreadsheet opens nowhere. Whoever says --format may call the file what they like. */
static bool check_suffix(const common_options *options)
{
    static const char *const foreign[] = {".xlsx",    ".xls", ".ods",         ".doc", ".docx", ".html",
                                          ".parquet", ".npy", ".safetensors", ".zip", ".gz"};
    for (size_t k = 0; k < options->outs.count; k++)
        for (size_t f = 0; f < sizeof foreign / sizeof *foreign; f++)
            if (path_has_suffix(options->outs.items[k], foreign[f])) {
                say_usage(options,
                          "--out: '%s' is no table of this program's; expected .txt, .md, .csv or .json, or --format",
                          options->outs.items[k]);
                return false;
            }
    return true;
}

bool table_format_read(const common_options *options, table_format *format)
{
    const bool given = option_given(options, &options->format);
    if (!given && !options->json && !options->latex && !check_suffix(options)) return false;
    *format = given ? (table_format)options->format : format_of_output(options);
    if (options->json + options->latex + given > 1 && !(options->json && *format == FORMAT_JSON && !options->latex)) {
        say_usage(options, "give one of --format%s",
                  option_exists(options, &options->latex) ? ", --json and --latex" : " and --json");
        return false;
    }
    if (options->json) *format = FORMAT_JSON;
    if (options->latex) *format = FORMAT_LATEX;
    return true;
}

bool table_format_read_no_json(const common_options *options, table_format *format)
{
    if (!table_format_read(options, format)) return false;
    if (*format != FORMAT_JSON) return true;
    say_usage(options, "there is no JSON; --format csv is for programs");
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
