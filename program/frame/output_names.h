/* Declares what the suffix of an output's name means, one rule for all commands. SPDX-License-Identifier: MIT */
#pragma once

#include "output/result.h"
#include "program/frame/options.h"

/* The name of a picture that this program draws: .png, .svg, .pdf. */
bool name_is_figure(const char *path);
/* Or of a kind that is not drawn here. Text under such a name opens nowhere. */
bool name_is_picture(const char *path);
/* The form of a table that the last --out with such a suffix names; others say nothing. */
result_format format_of_names(const common_options *options);

/* Every --out ends like a figure; for before anything is computed. */
void check_figure_paths(const common_options *options);
/* Refuses an --out that does not end like text, for what is text whatever the command else writes. */
void check_text_path(const common_options *options);
/* Refuses a path, of another option than --out, whose suffix is known and none of these between blanks. path NULL: not
 * given. */
void check_output_name(const common_options *options, const void *member, const char *path, const char *suffixes);
