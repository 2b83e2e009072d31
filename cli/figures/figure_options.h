/* The options that attention figures share, into a job. SPDX-License-Identifier: MIT */
#ifndef CLI_FIGURES_FIGURE_OPTIONS_H
#define CLI_FIGURES_FIGURE_OPTIONS_H

#include "cli/figures/figure_job.h"

/* What needs no model: paths, style, look, the choice of tokens. False after saying what is wrong. */
bool figure_options_read(figure_job *job);
/* --mark, once the view is there. */
int figure_options_marks(figure_job *job);
/* The row of the view that --query names; 0 without the option. */
int figure_options_query(const figure_job *job, size_t *query);
/* What is written into every file. */
int figure_options_provenance(figure_job *job);

#endif
