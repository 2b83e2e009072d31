/* Reads the suffix of --out, which chooses the form of the output; a name that does not fit is refused. A command's
 * `writes` says what it can write; --json and --format take precedence over a suffix.
 *
 * SPDX-License-Identifier: MIT */
#include "program/frame/output_names.h"

#include <string.h>
#include <strings.h>

#include "program/frame/option_scan.h"

typedef enum name_form {
    NAMES_ANYTHING, /* no known suffix */
    NAMES_TEXT,
    NAMES_MARKDOWN,
    NAMES_CSV,
    NAMES_JSON,
    NAMES_LINES, /* one object for each line */
    NAMES_LATEX,
    NAMES_PAGE,
    NAMES_FIGURE,
    NAMES_PICTURE, /* a kind of picture that is not drawn */
    NAMES_FOREIGN
} name_form;

typedef struct known_name {
    name_form form;
    const char *what, *suffixes; /* suffixes: separated by blanks */
} known_name;

static const known_name known_names[] = {
    {NAMES_TEXT, "a text file", ".txt"},
    {NAMES_MARKDOWN, "a Markdown file", ".md"},
    {NAMES_CSV, "a CSV file", ".csv"},
    {NAMES_JSON, "a JSON file", ".json"},
    {NAMES_LINES, "a file with an object a line", ".jsonl .ndjson"},
    {NAMES_LATEX, "a LaTeX file", ".tex"},
    {NAMES_PAGE, "a page", ".html .htm"},
    {NAMES_FIGURE, "a picture", ".png .svg .pdf"},
    {NAMES_PICTURE, "a picture", ".jpg .jpeg .gif .webp .bmp .tif .tiff .eps .ps"},
    {NAMES_FOREIGN, "a spreadsheet", ".xlsx .xls .ods"},
    {NAMES_FOREIGN, "a document", ".doc .docx .odt .rtf"},
    {NAMES_FOREIGN, "a table of another form", ".tsv .parquet .feather .arrow .pkl .pickle .sqlite .db"},
    {NAMES_FOREIGN, "a file of tensors", ".safetensors .npy .npz .pt .pth .bin .ckpt .h5 .onnx .gguf"},
    {NAMES_FOREIGN, "an archive", ".gz .bz2 .xz .zst .zip .tar .tgz"},
    {NAMES_FOREIGN, "a YAML file", ".yaml .yml"},
    {NAMES_FOREIGN, "an XML file", ".xml"},
};

static bool is_listed(const char *list, const char *suffix)
{
    const size_t length = strlen(suffix);
    for (const char *at = list; *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (strcspn(at, " ") == length && strncasecmp(at, suffix, length) == 0) return true;
    return false;
}

static known_name known_name_of(const char *path)
{
    const char *suffix = strrchr(path, '.');
    for (size_t k = 0; suffix && k < sizeof known_names / sizeof *known_names; k++)
        if (is_listed(known_names[k].suffixes, suffix)) return known_names[k];
    return (known_name){0};
}

bool name_is_figure(const char *path) { return known_name_of(path).form == NAMES_FIGURE; }

bool name_is_picture(const char *path) { return name_is_figure(path) || known_name_of(path).form == NAMES_PICTURE; }

result_format format_of_names(const common_options *options)
{
    static const result_format formats[] = {[NAMES_MARKDOWN] = RESULT_MARKDOWN,
                                            [NAMES_CSV] = RESULT_CSV,
                                            [NAMES_JSON] = RESULT_JSON,
                                            [NAMES_LATEX] = RESULT_LATEX,
                                            [NAMES_FOREIGN] = RESULT_TEXT};
    result_format found = RESULT_TEXT;
    for (size_t k = 0; k < options->outs.count; k++) {
        const result_format format = formats[known_name_of(options->outs.items[k]).form];
        if (format != RESULT_TEXT) found = format;
    }
    return found;
}

/* ---------------------------------------------------------------------------------------------- what a command writes */

/* Returns what the command writes. A training writes a folder, but with --one-batch a result like others. */
static command_writes what_is_written(const common_options *options)
{
    const bool is_batch = options->command->writes == WRITES_FOLDER && option_scan_has(options->scan, "one-batch");
    return is_batch ? WRITES_TEXT : options->command->writes;
}

static bool has_json(const common_options *options)
{
    return option_find(options->command, "json", strlen("json"), 0).option != NULL;
}

/* Returns true if a name of this form chooses JSON. A file of lines may end in .json, but a single document not in
 * .jsonl. */
static bool chooses_json(const common_options *options, name_form form)
{
    const command_writes writes = what_is_written(options);
    if (!has_json(options)) return false;
    return (form == NAMES_JSON && (writes == WRITES_TEXT || writes == WRITES_LINES)) ||
           (form == NAMES_LINES && writes == WRITES_LINES);
}

void output_names_choose(common_options *options)
{
    option_scan *scan = options->scan;
    bool chosen = false;
    for (size_t k = 0; k < options->outs.count; k++)
        chosen = chosen || chooses_json(options, known_name_of(options->outs.items[k]).form);
    if (!chosen || options->json) return;
    options->json = true;
    scan->given[scan->given_count++] = (given_option){options_find(options->command, "json"), 0, NULL};
}

/* ------------------------------------------------------------------------------------------------------------ refusals */

/* Returns the expected names, as the end of a sentence. */
static const char *describe(const common_options *options, command_writes writes)
{
    switch (writes) {
    case WRITES_TEXT: return has_json(options) ? "text (.txt) or JSON (.json)" : "text (.txt)";
    case WRITES_LINES: return "text (.txt) or an object a line (.jsonl)";
    case WRITES_TABLE: return ".txt, .md, .csv, .json or .tex, or --format";
    case WRITES_JSON: return ".json";
    case WRITES_FOLDER: return "a folder";
    case WRITES_PAGE: return "a folder or, for a page alone, NAME.html";
    case WRITES_OWN: break;
    }
    return "";
}

/* Returns the option or command that makes a file of this form, as the end of a sentence; empty if there is none. */
static const char *find_other_way(const common_options *options, name_form form)
{
    const command *const *sub = options->command->subcommands;
    if (form == NAMES_CSV && options_find(options->command, "numbers")) return "; --numbers FILE.csv has the numbers";
    while (sub && *sub && strcmp(command_word(*sub), "plot") != 0) sub++;
    const bool draws = form == NAMES_FIGURE && sub && *sub;
    return draws ? options_text(options, "; `deberta %s` draws it", (*sub)->name) : "";
}

static _Noreturn void refuse_name(const common_options *options, command_writes writes, const char *path)
{
    const known_name name = known_name_of(path);
    usage_wrong(options, "--out: '%s' is the name of %s; expected %s%s", path, name.what, describe(options, writes),
                find_other_way(options, name.form));
}

/* Refuses the name of a form, such as "json", which would be the name of a file. */
static void refuse_bare(const common_options *options, const char *path)
{
    const name_form form = known_name_of(options_text(options, ".%s", path)).form;
    if (form == NAMES_ANYTHING || strchr(path, '.') || strchr(path, '/')) return;
    const char *shown = form == NAMES_JSON && has_json(options) ? "--json shows JSON, and " : "";
    usage_wrong(options, "--out: '%s' would be the name of a file: %sNAME.%s chooses the form of one", path, shown, path);
}

/* Returns true if the output may have a name of this form, without --json and --format. */
static bool is_fitting(const common_options *options, command_writes writes, name_form form)
{
    if (form == NAMES_ANYTHING || writes == WRITES_OWN) return true;
    switch (writes) {
    case WRITES_TABLE:
        return form == NAMES_TEXT || form == NAMES_MARKDOWN || form == NAMES_CSV || form == NAMES_JSON ||
               form == NAMES_LATEX;
    case WRITES_JSON: return form == NAMES_JSON;
    case WRITES_FOLDER: return false;
    case WRITES_PAGE: return form == NAMES_PAGE;
    default: return form == NAMES_TEXT || chooses_json(options, form);
    }
}

void output_names_check(const common_options *options)
{
    const command_writes writes = what_is_written(options);
    const bool draws = options->command->most_outputs > 1, is_file = writes != WRITES_FOLDER && writes != WRITES_PAGE;
    const bool is_said = is_file && (options->json || option_scan_has(options->scan, "format"));
    for (size_t k = 0; k < options->outs.count; k++) {
        const char *path = options->outs.items[k];
        const name_form form = known_name_of(path).form;
        const bool is_picture = name_is_picture(path);
        if (is_picture ? draws : is_said) continue; /* a command that draws checks the kind of picture itself */
        if (is_file && form == NAMES_ANYTHING) refuse_bare(options, path);
        if (!is_fitting(options, writes, form)) refuse_name(options, writes, path);
    }
}

void check_text_path(const common_options *options)
{
    const char *path = options_out(options);
    const name_form form = path ? known_name_of(path).form : NAMES_ANYTHING;
    if (form == NAMES_ANYTHING || form == NAMES_TEXT) return;
    usage_wrong(options, "--out: '%s' is the name of %s; expected text (.txt)", path, known_name_of(path).what);
}

void check_figure_paths(const common_options *options)
{
    for (size_t k = 0; k < options->outs.count; k++)
        if (!name_is_figure(options->outs.items[k]))
            usage_wrong(options, "--out: unknown suffix in '%s', expected .png, .svg or .pdf", options->outs.items[k]);
}

void check_output_name(const common_options *options, const void *member, const char *path, const char *suffixes)
{
    const known_name name = path ? known_name_of(path) : (known_name){0};
    if (name.form == NAMES_ANYTHING || is_listed(suffixes, strrchr(path, '.'))) return;
    option_wrong(options, member, "'%s' is the name of %s; expected %.*s", path, name.what, (int)strcspn(suffixes, " "),
                 suffixes);
}
