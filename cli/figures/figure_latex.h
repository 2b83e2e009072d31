/* `--latex FILE.tex`: a figure environment that includes the figure, with caption and label.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CLI_FIGURES_FIGURE_LATEX_H
#define CLI_FIGURES_FIGURE_LATEX_H

#include "cli/figures/figure_job.h"
#include "output/byte_buffer.h"

/* Which of the paths LaTeX can include: a PDF, else a PNG; NULL for none. */
const char *figure_latex_includes(const figure_job *job);
/* Appends the text of the file. */
void figure_latex_write(const figure_job *job, const char *path, byte_buffer *out);

#endif
