/* Writes the file of --latex: an environment with \includegraphics, caption and label.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/io/atomic_file.h"
#include "output/latex_text.h"
#include "program/frame/options.h"
#include "viz/figure.h"

/* What the writer of a paper must know of the file. */
typedef struct figure_latex_facts {
    latex_scripts scripts; /* in the caption; pdflatex has no letters of them */
    bool is_too_high;      /* with its caption, for a page of LaTeX's article: it is included smaller */
} figure_latex_facts;

/* The path that LaTeX can include: a PDF, else a PNG; NULL for none. */
const char *figure_latex_includes(const text_list *paths);

/* Opens and writes the file, which has its name when it is committed. figure: what it includes. style: with note and
 * provenance, whose model, text, layers and heads follow the caption, which may be NULL. page: of the figure. */
deberta_status figure_latex_write(const char *path, const char *figure, const figure_style *style, const char *caption,
                                  const figure_notes *page, figure_latex_facts *facts, atomic_file **file,
                                  deberta_error *err);

/* Notes what the writer must know. lower: the options that make the figure lower. */
void figure_latex_tell(const common_options *options, const char *path, const figure_latex_facts *facts,
                       double height_mm, const char *lower);
