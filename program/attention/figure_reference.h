/* Gives figures values beyond those of a session: the float64 reference of the source's model, hidden states as
 * doubles.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "analysis/reference/reference.h"
#include "program/attention/figure_source.h"

/* The model in float64, with its --reference. Free with reference_free. */
reference_model *figure_reference_open(const figure_source *source);
/* The text of the view as its input. */
reference_input figure_reference_input(const figure_source *source);
/* H[layer] of the captured text as doubles, [n][h]. The kind must capture hidden states. */
double *figure_hidden(const figure_source *source, size_t layer);
/* rows [n][columns] of the whole text in the shape of the view, [count][columns]: the mean over the pieces of a word.
 */
const float *figure_view_rows(const figure_source *source, const double *rows, size_t columns);
