/* The options that every command with a figure shares: its size, its resolution, its title and its type.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CLI_FIGURES_FIGURE_STYLE_H
#define CLI_FIGURES_FIGURE_STYLE_H

#include "command/options.h"
#include "viz/figure.h"

/* --width-mm, --dpi, --title, --font. False after a message about a wrong command line. */
bool figure_style_read(const parsed_options *options, figure_style *style);

#endif
