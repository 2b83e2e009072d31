/* Gives figures values that a session does not: the float64 reference of the source's model, and hidden states as
 * doubles.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "analysis/reference/reference.h"
#include "program/attention/figure_source.h"

/* Opens the model in float64, with its --reference. Free it with reference_free. */
reference_model *figure_reference_open(const figure_source *source);
/* Returns the text of the view as input of the reference. */
reference_input figure_reference_input(const figure_source *source);
/* Returns H[layer] of the captured text as doubles, [n][h]. The kind must capture hidden states. */
double *figure_hidden(const figure_source *source, size_t layer);
/* Returns rows [n][columns] of the whole text in the shape of the view, [count][columns]: the mean over the pieces of
 * a word. */
const float *figure_view_rows(const figure_source *source, const double *rows, size_t columns);
