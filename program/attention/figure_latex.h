/* `--latex FILE.tex`: a figure environment that includes the figure, with caption and label.
 *
 * SPDX-License-Identifier: MIT */
#ifndef PROGRAM_ATTENTION_FIGURE_LATEX_H
#define PROGRAM_ATTENTION_FIGURE_LATEX_H

#include "program/attention/figure_source.h"
#include "core/io/atomic_file.h"

/* Which of the paths LaTeX can include: a PDF, else a PNG; NULL for none. */
const char *figure_latex_includes(const text_list *paths);
/* Opens and writes the file, which has its name when it is committed. style: with note and provenance. caption: may be
 * NULL; what else is known of the source follows it. width: of the figure, mm. */
deberta_status figure_latex_write(const figure_source *source, const figure_style *style, const char *caption,
                                  double width, atomic_file **file, deberta_error *err);

#endif
