/* Declares how --help folds its lines. SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { HELP_WIDEST = 112, HELP_NARROWEST = 40 };

/* Folding of lines. It uses COLUMNS or else the width of the terminal `out`, within the bounds above. Without
 * either, as for a file, only rows are folded, at HELP_WIDEST. */
typedef struct help_lines {
    FILE *out;
    size_t width;
    bool folds; /* true: everything is folded; false: only rows */
} help_lines;
help_lines help_lines_to(FILE *out);

/* Prints `left` and the text from column `indent` on, beside it, or below it where there is no room. */
void help_row(const help_lines *lines, const char *left, size_t indent, const char *text);
/* Prints a paragraph whose later lines begin at column `indent`; without folding it keeps the lines of the text. */
void help_paragraph(const help_lines *lines, size_t indent, const char *text);
/* Prints the lines of a command's examples and the text below them. A folded command continues after a backslash, as
 * a shell takes it, and its comment gets a line of its own. */
void help_examples(const help_lines *lines, const char *text);
