/* Defines the options that every command with a figure shares: its size, its resolution, its title and its type.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/options.h"
#include "viz/figure.h"

/* Rows of a table that fill a figure_style. */
#define FIGURE_STYLE_ROWS(S, member)                                                                                   \
    {"title", 0, "TEXT", "above the figure", TEXT_AT(S, member.title)},                                                \
        {"width-mm", 0, "MM", "width on paper: 85 a column, 174 a page (default)",                                     \
         NUMBER_AT(S, member.width_mm, 30, 1000)},                                                                     \
        {"exact-width", 0, NULL, "white margins where the figure needs less than that width",                          \
         FLAG_AT(S, member.exact_width)},                                                                              \
        {"dpi", 0, "N", "resolution of a PNG (default 300)", NUMBER_AT(S, member.dpi, 36, 2400)},                      \
        {"font", 0, "FAMILY", "type of labels; serif: Times, or what stands in for it", TEXT_AT(S, member.font)},      \
        {"font-size", 0, "PT", "size of labels, 5 to 24 (default 7); numbers and notes are 1 pt smaller",              \
         NUMBER_AT(S, member.font_size, 5, 24)},                                                                       \
    {                                                                                                                  \
        "no-notes", 0, NULL, "no sentences under the figure", FLAG_AT(S, member.no_notes)                              \
    }
/* Prints notes on what these figures do not show of a style: a font that is not installed, dots where none is a .png.
 * style: member of the command's struct. */
void figure_style_note(const common_options *options, const figure_style *style, const char *const *paths,
                       size_t count);

/* Notes characters that no installed font has, of one or more saved figures: no sentence of a figure counts them. */
void figure_notes_tell(const common_options *options, size_t missing_glyphs);

/* Refuses the options of these rows where no picture is drawn. style: member of the command's struct; why: the end of
 * the sentence. */
static inline void figure_style_refuse(const common_options *options, const figure_style *style, const char *why)
{
    const void *const members[] = {&style->title, &style->width_mm,  &style->exact_width, &style->dpi,
                                   &style->font,  &style->font_size, &style->no_notes};
    for (size_t k = 0; k < sizeof members / sizeof *members; k++)
        if (option_given(options, members[k])) option_wrong(options, members[k], "%s", why);
}
