/* SPDX-License-Identifier: MIT */
#include "command/output_paths.h"

#include <stdlib.h>

#include "command/options.h"
#include "command/text_output.h"

bool output_paths_read(const common_options *options, output_paths *paths)
{
    *paths = (output_paths){0};
    const char *path;
    for (size_t k = 0; (path = k < options->outs.count ? options->outs.items[k] : NULL); k++) {
        if (is_figure_path(path)) {
#if !HAVE_VIZ
            say_usage(options, "--out: '%s' is a picture, and this program was built without figures", path);
            return false;
#endif
            paths->figures[paths->figure_count++] = path;
        } else if (is_picture_path(path)) {
            say_usage(options, "--out: unknown suffix in '%s': pictures end in .png, .svg or .pdf", path);
            return false;
        } else if (paths->text) {
            say_usage(options, "--out: '%s' and '%s' are both for the text; pictures end in .png, .svg or .pdf",
                      paths->text, path);
            return false;
        } else {
            paths->text = path;
        }
    }
    return true;
}

#if HAVE_VIZ
int output_paths_draw(const common_options *options, const output_paths *paths, output_drawing draw, const void *what,
                      const char *title, const char *note)
{
    if (!paths->figure_count) return EXIT_OK;
    deberta_error error = {0};
    char *line = options_command_line(options, false);
    const provenance_entry provenance[] = {{"Software", "deberta " DEBERTA_VERSION_TEXT},
                                           {"Command", line ? line : ""}};
    const figure_style style = {.title = title,
                                .note = note,
                                .provenance = provenance,
                                .provenance_count = sizeof provenance / sizeof *provenance};
    const deberta_status status = draw(what, &style, paths->figures, paths->figure_count, &error);
    free(line);
    if (status == DEBERTA_OK) return EXIT_OK;
    const int code = say_error(options, &error);
    return status == DEBERTA_E_ARGUMENT ? EXIT_USAGE : code;
}
#endif
