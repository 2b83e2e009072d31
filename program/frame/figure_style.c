/* Prints a note if a figure's font is not installed. SPDX-License-Identifier: MIT */
#include "program/frame/figure_style.h"

#include "viz/draw_cairo.h"

void figure_style_note_font(const common_options *options, const figure_style *style)
{
    if (style->font && !draw_cairo_has_font(figure_defaults(style).font))
        say_note(options, "note: no font '%s' is installed; the type is what stands in for it", style->font);
}
