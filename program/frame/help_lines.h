/* Declares how --help folds its lines. SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { HELP_WIDEST = 112, HELP_NARROWEST = 40 };

/* Folds at COLUMNS or, without it, at the width of the terminal that `out` is; within the bounds above. Elsewhere, as
 * in a file, only rows are folded, at HELP_WIDEST. */
typedef struct help_lines {
    FILE *out;
    size_t width;
    bool folds; /* all there is, not rows alone */
} help_lines;
help_lines help_lines_to(FILE *out);

/* `left`, and beside it, or below where there is no room, the text from column `indent` on. */
void help_row(const help_lines *lines, const char *left, size_t indent, const char *text);
/* A paragraph whose later lines begin at column `indent`; where nothing folds, its lines are those of the text. */
void help_paragraph(const help_lines *lines, size_t indent, const char *text);
/* The lines of a command's examples, and of what stands below them: a command that is folded goes on behind a
 * backslash, as a shell takes it, and its comment gets a line of its own. */
void help_examples(const help_lines *lines, const char *text);
