/* Where results go, whole or not at all. SPDX-License-Identifier: MIT */
#include "program/frame/text_output.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "output/scope.h"
#include "program/frame/unfinished.h"
#include "core/base/path.h"
#include "core/base/status.h"
#include "core/base/stream.h"
#include "core/io/quote.h"
#include "output/json_text.h"

static deberta_status open_output(text_output *output, deberta_error *err)
{
    struct stat about;
    /* A device or a pipe keeps its place: a rename would put a file there. */
    if (stat(output->path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)) {
        output->file = fopen(output->path, "w");
        if (output->file) return DEBERTA_OK;
        DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: cannot be written: %s", QUOTE(output->path), strerror(errno));
    }
    unfinished_hold();
    const deberta_status made = atomic_file_open(&output->whole, output->path, err);
    unfinished_add(made == DEBERTA_OK ? atomic_file_temporary(output->whole) : NULL);
    DEBERTA_TRY(made);
    return atomic_file_stream(&output->file, output->whole, err);
}

int text_output_open(const common_options *options, const char *path, text_output *output)
{
    deberta_error error = {0};
    *output = (text_output){.file = stdout};
    if (!path || strcmp(path, "-") == 0) return EXIT_OK;
    *output = (text_output){.path = path};
    if (open_output(output, &error) == DEBERTA_OK) return EXIT_OK;
    text_output_discard(output);
    return say_error(options, &error);
}

void text_output_discard(text_output *output)
{
    if (output->whole) {
        atomic_file_discard(&output->whole);
        unfinished_done();
    } else if (output->path && output->file) {
        stream_discard(output->file);
    }
    *output = (text_output){0};
}

static deberta_status close_device(const text_output *output, deberta_error *err)
{
    if (stream_close(output->file)) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_SYSTEM, "%s: cannot be written: %s", QUOTE(output->path), strerror(errno));
}

int text_output_close(const common_options *options, text_output *output)
{
    if (!output->path) return EXIT_OK; /* main checks stdout */
    deberta_error error = {0};
    const deberta_status status =
        output->whole ? atomic_file_commit(&output->whole, &error) : close_device(output, &error);
    unfinished_done();
    *output = (text_output){0};
    return status == DEBERTA_OK ? EXIT_OK : say_error(options, &error);
}

int text_output_finish(const common_options *options, text_output *output, deberta_status status,
                       const deberta_error *error)
{
    if (status == DEBERTA_OK) return text_output_close(options, output);
    text_output_discard(output);
    return say_error(options, error);
}

/* --------------------------------------------------------------------------------------------------- names of files */

bool is_figure_path(const char *path)
{
    return path_has_suffix(path, ".png") || path_has_suffix(path, ".svg") || path_has_suffix(path, ".pdf");
}

bool check_figure_paths(const common_options *options)
{
    for (size_t k = 0; k < options->outs.count; k++) {
        if (is_figure_path(options->outs.items[k])) continue;
        say_usage(options, "--out: unknown suffix in '%s', expected .png, .svg or .pdf", options->outs.items[k]);
        return false;
    }
    return true;
}

bool is_picture_path(const char *path)
{
    static const char *const others[] = {".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".eps", ".ps"};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (path_has_suffix(path, others[k])) return true;
    return is_figure_path(path);
}

bool check_text_out(const common_options *options)
{
    return options->command->most_outputs > 1 || !option_is_common(options_find(options->command, "out")) ||
           check_text_path(options);
}

bool check_text_path(const common_options *options)
{
    const char *path = options_out(options);
    if (!path || !is_picture_path(path)) return true;
    const command *const *sub = options->command->subcommands;
    while (sub && *sub && strcmp(command_word(*sub), "plot") != 0) sub++;
    if (sub && *sub)
        say_usage(options, "--out: '%s' is a picture's name, and what goes there is text; `deberta %s` draws it", path,
                  (*sub)->name);
    else
        say_usage(options, "--out: '%s' is a picture's name, and what goes there is text%s", path,
                  options_find(options->command, "plot") ? "; --plot FILE draws the figure" : "");
    return false;
}

/* ------------------------------------------------------------------------------------------------------------ JSON */

/* Whoever closes the file finds what cannot be written. */
static void dump_json(FILE *out, json_t *object, size_t flags)
{
    if (json_dumpf(object, out, flags | JSON_REAL_PRECISION(9)) != 0 && !ferror(out)) memory_short();
    json_decref(object);
    fputc('\n', out);
}

void write_json_line(FILE *out, json_t *object) { dump_json(out, object, 0); }

int print_json_to(const common_options *options, const char *path, json_t *object)
{
    text_output output;
    const int status = text_output_open(options, path, &output);
    if (status != EXIT_OK) {
        json_decref(object);
        return status;
    }
    dump_json(output.file, object, JSON_INDENT(2));
    return text_output_close(options, &output);
}

int print_json(const common_options *options, json_t *object)
{
    return print_json_to(options, options_out(options), object);
}

const char *metadata_name(const common_options *options, const char *name)
{
    json_t *clean = json_clean_text(name);
    if (!clean) return NULL;
    const char *kept = options_text(options, "%s", json_string_value(clean));
    json_decref(clean);
    if (strcmp(kept, name) != 0) say_note(options, "note: the model's name is not UTF-8; the metadata has '%s'", kept);
    return kept;
}

void format_bytes(char text[32], double bytes)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    size_t unit = 0;
    while (bytes >= 1000 && unit + 1 < sizeof units / sizeof *units) {
        bytes /= 1000;
        unit++;
    }
    snprintf(text, 32, bytes < 10 && unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}
