/* Prints notes on what a figure does not show of its style. SPDX-License-Identifier: MIT */
#include "program/frame/figure_style.h"

#include "core/base/text.h"
#include "viz/draw_cairo.h"

void figure_style_note(const common_options *options, const figure_style *style, const char *const *paths, size_t count)
{
    size_t dotted = 0;
    for (size_t k = 0; k < count; k++) dotted += path_has_suffix(paths[k], ".png");
    if (count && !dotted)
        option_note_unused(options, &style->dpi,
                           "only a .png has dots; elsewhere it decides at most which cells are drawn as one");
    if (style->font && !draw_cairo_has_font(figure_defaults(style).font))
        say_note(options, "note: no font '%s' is installed; the type is what stands in for it", style->font);
}

void figure_notes_tell(const common_options *options, size_t missing_glyphs)
{
    if (missing_glyphs)
        say_note(options, "note: no installed font has %zu of the characters; boxes stand for them", missing_glyphs);
}
