/* SPDX-License-Identifier: MIT */
#include "cli/figures/figure_style.h"

#include "command/run.h"
#include "viz/draw_cairo.h"

/* In a figure_style 0 means the default; whoever writes 0 means 0. */
static bool read_size(const parsed_options *options, const char *name, double *size)
{
    if (!options_number(options, name, 0, size)) return false;
    if (*size != 0 || !options_has(options, name)) return true;
    say_usage(options, "--%s: expected a number above 0, found '%s'", name, options_value(options, name, ""));
    return false;
}

void figure_style_note_font(const common_options *options, const figure_style *style)
{
    if (style->font && !draw_cairo_has_font(style->font))
        say_note(options, "note: no font '%s' is installed; the type is what stands in for it", style->font);
}

bool figure_style_read(const parsed_options *options, figure_style *style)
{
    deberta_error error;
    if (!read_size(options, "width-mm", &style->width_mm) || !read_size(options, "dpi", &style->dpi)) return false;
    style->title = options_value(options, "title", NULL);
    style->font = options_value(options, "font", NULL);
    if (figure_check_style(style, &error) == DEBERTA_OK) {
        figure_style_note_font(options, style);
        return true;
    }
    say_usage(options, "%s", error.message);
    return false;
}
