/* Writes the file of --latex: an environment with \includegraphics, caption and label.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/io/atomic_file.h"
#include "output/latex_text.h"
#include "program/frame/options.h"
#include "viz/figure.h"

/* Facts about the file that the author of a paper needs. */
typedef struct figure_latex_facts {
    latex_scripts scripts; /* scripts in the caption that pdflatex has no letters for */
    bool is_too_high;      /* figure and caption exceed a page of LaTeX's article, so the figure is included
                            * smaller */
} figure_latex_facts;

/* Returns the path that LaTeX can include, preferring a PDF over a PNG. Refuses paths without either, and a path with
 * characters that \includegraphics cannot take. */
const char *figure_latex_includes(const common_options *options, const text_list *paths);

/* Writes the file under a temporary name, which becomes final at commit. figure: path that the file includes. style:
 * with note and provenance, whose model, text, layers and heads follow the caption. caption: may be NULL. page: size of
 * the figure's page. */
deberta_status figure_latex_write(const char *path, const char *figure, const figure_style *style, const char *caption,
                                  const figure_notes *page, figure_latex_facts *facts, atomic_file **file,
                                  deberta_error *err);

/* Notes the facts that the author of a paper needs. lower: the options that make the figure lower. */
void figure_latex_tell(const common_options *options, const char *path, const figure_latex_facts *facts,
                       double height_mm, const char *lower);
