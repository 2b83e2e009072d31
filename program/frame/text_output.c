/* Opens the destination of results, which appear whole or not at all, and selects their format.
 *
 * SPDX-License-Identifier: MIT */
#include "program/frame/text_output.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/text.h"
#include "core/io/quote.h"
#include "output/json_text.h"
#include "output/scope.h"
#include "program/frame/figure_style.h"
#include "program/frame/output_names.h"
#include "program/frame/unfinished.h"

static deberta_status open_output(text_output *output, deberta_error *err)
{
    struct stat about;
    /* A device or a pipe is written to directly: a rename would replace it by a file. */
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

void text_output_open(const common_options *options, const char *path, text_output *output)
{
    deberta_error error = {0};
    *output = (text_output){.file = stdout};
    if (!path || strcmp(path, "-") == 0) return;
    *output = (text_output){.path = path};
    if (open_output(output, &error) == DEBERTA_OK) return;
    text_output_discard(output);
    work_failed(options, &error);
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

void text_output_close(const common_options *options, text_output *output)
{
    if (!output->path) return; /* end_program checks stdout */
    deberta_error error = {0};
    const deberta_status status =
        output->whole ? atomic_file_commit(&output->whole, &error) : close_device(output, &error);
    unfinished_done();
    *output = (text_output){0};
    must(options, status, &error);
}

void text_output_must(const common_options *options, text_output *output, deberta_status status,
                      const deberta_error *error)
{
    if (status == DEBERTA_OK) return;
    text_output_discard(output);
    work_failed(options, error);
}

/* ------------------------------------------------------------------------------------------------------------ JSON */

/* Writes the JSON; closing the file reports what cannot be written. */
static void dump_json(FILE *out, json_t *object, size_t flags)
{
    if (json_dumpf(object, out, flags | JSON_REAL_PRECISION(9)) != 0 && !ferror(out)) memory_short();
    json_decref(object);
    fputc('\n', out);
}

void write_json_line(FILE *out, json_t *object) { dump_json(out, object, 0); }

void print_json_to(const common_options *options, const char *path, json_t *object)
{
    text_output output;
    text_output_open(options, path, &output);
    dump_json(output.file, object, JSON_INDENT(2));
    text_output_close(options, &output);
}

void print_json(const common_options *options, json_t *object) { print_json_to(options, options_out(options), object); }

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

/* ---------------------------------------------------------------------------------------------- results in a format */

const char *const result_format_names[] = {"table", "md", "csv", "json", "latex", NULL};

result_format result_format_read(const common_options *options)
{
    const bool given = option_given(options, &options->format);
    const result_format format = given ? (result_format)options->format : format_of_names(options);
    if (options->json && given && format != RESULT_JSON) usage_wrong(options, "give one of --format and --json");
    return options->json ? RESULT_JSON : format;
}

void finish_result(const common_options *options, const char *path, result *r, result_format format)
{
    text_output output;
    text_output_open(options, path, &output);
    finish_result_in(options, &output, r, format);
}

void finish_result_in(const common_options *options, text_output *output, result *r, result_format format)
{
    result_write(r, output->file, format);
    result_free(&r);
    text_output_close(options, output);
}

void finish_text_or_json(const common_options *options, result *r)
{
    finish_result(options, options_out(options), r, options->json ? RESULT_JSON : RESULT_TEXT);
}

/* -------------------------------------------------------------------------------------------- pictures and the text */

void output_paths_read(const common_options *options, const figure_style *style, output_paths *paths)
{
    *paths = (output_paths){0};
    const char *path;
    for (size_t k = 0; (path = k < options->outs.count ? options->outs.items[k] : NULL); k++) {
        if (name_is_figure(path)) {
#if !HAVE_VIZ
            usage_wrong(options, "--out: '%s' is a picture, and this program was built without figures", path);
#endif
            paths->figures[paths->figure_count++] = path;
        } else if (name_is_picture(path)) {
            usage_wrong(options, "--out: unknown suffix in '%s': pictures end in .png, .svg or .pdf", path);
        } else if (paths->text) {
            usage_wrong(options, "--out: '%s' and '%s' are both for the text; pictures end in .png, .svg or .pdf",
                        paths->text, path);
        } else {
            paths->text = path;
        }
    }
    if (!paths->figure_count && style)
        figure_style_refuse(options, style, "changes a picture, and none is drawn: name one with --out FILE.pdf");
}

void output_draw(const common_options *options, const output_paths *paths, output_drawing draw, const void *what,
                 const figure_style *style, const char *title, const char *note)
{
#if HAVE_VIZ
    if (!paths->figure_count) return;
    deberta_error error = {0};
    const provenance_entry provenance[] = {{"Software", "deberta " DEBERTA_VERSION_TEXT},
                                           {"Command", options_command_line(options, false)}};
    size_t missing_glyphs = 0;
    figure_style told = *style;
    told.missing_glyphs = &missing_glyphs;
    if (!told.title) told.title = title;
    told.note = note;
    told.provenance = provenance;
    told.provenance_count = sizeof provenance / sizeof *provenance;
    figure_style_note(options, style, paths->figures, paths->figure_count);
    const deberta_status status = draw(what, &told, paths->figures, paths->figure_count, &error);
    figure_notes_tell(options, missing_glyphs);
    if (status == DEBERTA_OK) return;
    const int code = say_error(options, &error);
    end_program(status == DEBERTA_E_ARGUMENT ? EXIT_USAGE : code);
#else
    (void)options, (void)paths, (void)draw, (void)what, (void)style, (void)title, (void)note;
#endif
}
