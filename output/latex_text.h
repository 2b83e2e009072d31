/* Sets text for LaTeX: what it would read as commands is escaped, symbols of formulas become math, and characters that
 * pdflatex has no letter for are named.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* Prints the text on one line: control characters become spaces, and the space at the end is left out. A word that is
 * a formula, such as "αᵢⱼ", "H[L−1]" or "1/√(3d)", is set in math as a whole; in any other word each symbol is set by
 * itself. */
void latex_text_print(const char *text, FILE *out);

/* The scripts of a text that pdflatex with default LaTeX has no letters for: "Cyrillic, emoji". */
enum { LATEX_SCRIPTS_BYTES = 200 };
typedef struct latex_scripts {
    char names[LATEX_SCRIPTS_BYTES]; /* empty: none */
} latex_scripts;

/* Adds the scripts of the text that are not listed yet. */
void latex_scripts_add(latex_scripts *scripts, const char *text);
