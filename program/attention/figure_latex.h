/* Writes the file of --latex: an environment with \includegraphics, caption and label.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/io/atomic_file.h"
#include "output/latex_text.h"
#include "program/attention/figure_source.h"

/* What the writer of a paper must know of the file. */
typedef struct figure_latex_facts {
    latex_scripts scripts; /* in the caption; pdflatex has no letters of them */
    bool is_too_high;      /* with its caption, for a page of LaTeX's article: it is included smaller */
} figure_latex_facts;

/* The path that LaTeX can include: a PDF, else a PNG; NULL for none. */
const char *figure_latex_includes(const text_list *paths);

/* Opens and writes the file, which has its name when it is committed. style: with note and provenance. caption: may be
 * NULL; what else is known of the source follows it. page: of the figure. */
deberta_status figure_latex_write(const figure_source *source, const figure_style *style, const char *caption,
                                  const figure_notes *page, figure_latex_facts *facts, atomic_file **file,
                                  deberta_error *err);
