/* Defines the options that every command with a figure shares: its size, its resolution, its title and its type.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/options.h"
#include "viz/figure.h"

/* Rows that fill a figure_style. */
#define FIGURE_STYLE_ROWS(S, member)                                                                                   \
    {"title", 0, "TEXT", "above the figure", TEXT_AT(S, member.title)},                                                \
        {"width-mm", 0, "MM", "width on paper: 85 a column, 174 a page (default)",                                     \
         NUMBER_AT(S, member.width_mm, 30, 1000)},                                                                     \
        {"dpi", 0, "N", "resolution of a PNG (default 300)", NUMBER_AT(S, member.dpi, 36, 2400)},                      \
        {"font", 0, "FAMILY", "type of labels; serif: Times, or what stands in for it", TEXT_AT(S, member.font)},      \
        {"font-size", 0, "PT", "size of labels, 5 to 24 (default 7); numbers and notes are 1 pt smaller",              \
         NUMBER_AT(S, member.font_size, 5, 24)},                                                                       \
    {                                                                                                                  \
        "no-notes", 0, NULL, "no sentences under the figure", FLAG_AT(S, member.no_notes)                              \
    }
/* Notes that the font is not installed, if it is not. */
void figure_style_note_font(const common_options *options, const figure_style *style);
