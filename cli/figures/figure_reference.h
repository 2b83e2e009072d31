/* What figures need beyond what a session shows: the float64 reference of the job's model, the rule of its relative
 * positions, hidden states as doubles.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CLI_FIGURES_FIGURE_REFERENCE_H
#define CLI_FIGURES_FIGURE_REFERENCE_H

#include "cli/figures/figure_job.h"
#include "analysis/position_matrices.h"
#include "reference/reference.h"

/* The model of the job in float64, with its --reference. Free with reference_free. */
int figure_reference_open(figure_job *job, reference_model **reference);
/* The text of the view as its input; ids are memory of the job. */
int figure_reference_input(figure_job *job, reference_input *input);

/* Says so, and returns EXIT_USAGE, where the model has no relative positions. */
int figure_position_rule(figure_job *job, position_rule *rule);

/* H[layer] of the captured text as doubles, [n][h]; memory of the job. The kind must capture hidden states. */
int figure_hidden(figure_job *job, size_t layer, double **hidden);

/* rows [n][columns] of the whole text in the shape of the view, [count][columns]: the mean over the pieces of a word.
 */
int figure_view_rows(figure_job *job, const double *rows, size_t columns, const float **shown);

#endif
