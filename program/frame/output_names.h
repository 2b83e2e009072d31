/* Declares the meaning of an output's suffix, the same for all commands. SPDX-License-Identifier: MIT */
#pragma once

#include "output/result.h"
#include "program/frame/options.h"

/* Returns true for the name of a picture that this program draws: .png, .svg, .pdf. */
bool name_is_figure(const char *path);
/* Returns true also for kinds of pictures that it does not draw, since no program opens text under such a name. */
bool name_is_picture(const char *path);
/* Returns the format of the last --out whose suffix is that of a table format, or RESULT_TEXT if none is. */
result_format format_of_names(const common_options *options);

/* Refuses an --out that does not end like a figure, before anything is computed. */
void check_figure_paths(const common_options *options);
/* Refuses an --out with another known suffix than .txt, for an output that is always text. */
void check_text_path(const common_options *options);
/* Refuses a path of another option than --out whose suffix is known but not in `suffixes`, which are separated by
 * blanks. path NULL: not given. */
void check_output_name(const common_options *options, const void *member, const char *path, const char *suffixes);
