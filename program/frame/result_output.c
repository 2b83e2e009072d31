/* The format of a result is chosen from --format, --json and suffixes, and the result is printed in it.
 *
 * SPDX-License-Identifier: MIT */
#include "program/frame/text_output.h"

#include "core/base/path.h"

const char *const result_format_names[] = {"table", "md", "csv", "json", "latex", NULL};

/* The format of the last name that has a format's suffix; pictures and other names say nothing. */
static result_format format_of_output(const common_options *options)
{
    static const char *const suffixes[] = {
        [RESULT_MARKDOWN] = ".md", [RESULT_CSV] = ".csv", [RESULT_JSON] = ".json", [RESULT_LATEX] = ".tex"};
    result_format found = RESULT_TEXT;
    for (size_t k = 0; k < options->outs.count; k++)
        for (size_t f = RESULT_MARKDOWN; f < sizeof suffixes / sizeof *suffixes; f++)
            if (path_has_suffix(options->outs.items[k], suffixes[f])) found = (result_format)f;
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

bool result_format_read(const common_options *options, result_format *format)
{
    const bool given = option_given(options, &options->format);
    if (!given && !options->json && !check_suffix(options)) return false;
    *format = given ? (result_format)options->format : format_of_output(options);
    if (options->json && given && *format != RESULT_JSON) {
        say_usage(options, "give one of --format and --json");
        return false;
    }
    if (options->json) *format = RESULT_JSON;
    return true;
}

int finish_result(const common_options *options, const char *path, result *r, result_format format)
{
    deberta_error error = {0};
    text_output output;
    const int code = text_output_open(options, path, &output);
    if (code == EXIT_OK) return finish_result_in(options, &output, r, format, DEBERTA_OK, &error);
    result_free(&r);
    return code;
}

int finish_result_in(const common_options *options, text_output *output, result *r, result_format format,
                     deberta_status status, deberta_error *error)
{
    if (status == DEBERTA_OK) result_write(r, output->file, format);
    result_free(&r);
    return text_output_finish(options, output, status, error);
}

int finish_text_or_json(const common_options *options, result *r)
{
    return finish_result(options, options_out(options), r, options->json ? RESULT_JSON : RESULT_TEXT);
}
