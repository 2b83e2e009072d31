/* Paths of --out are parted into pictures and the one file of text. SPDX-License-Identifier: MIT */
#include "program/frame/text_output.h"

#include "program/frame/options.h"
#if HAVE_VIZ
#include "viz/figure.h"
#endif

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

int output_draw(const common_options *options, const char *const *paths, size_t path_count, output_drawing draw,
                const void *what, const figure_style *style)
{
#if HAVE_VIZ
    if (!path_count) return EXIT_OK;
    deberta_error error = {0};
    const provenance_entry provenance[] = {{"Software", "deberta " DEBERTA_VERSION_TEXT},
                                           {"Command", options_command_line(options, false)}};
    figure_style told = *style;
    told.provenance = provenance;
    told.provenance_count = sizeof provenance / sizeof *provenance;
    const deberta_status status = draw(what, &told, paths, path_count, &error);
    if (status == DEBERTA_OK) return EXIT_OK;
    const int code = say_error(options, &error);
    return status == DEBERTA_E_ARGUMENT ? EXIT_USAGE : code;
#else
    (void)options, (void)paths, (void)path_count, (void)draw, (void)what, (void)style;
    return EXIT_OK;
#endif
}
