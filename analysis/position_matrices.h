/* Relative positions as matrices [n][n], query first: distances, table rows, and terms gathered from their strips. Of a
 * model by its description.
 *
 * SPDX-License-Identifier: MIT */
#ifndef ANALYSIS_POSITION_MATRICES_H
#define ANALYSIS_POSITION_MATRICES_H

#include "include/deberta.h"

/* out[i][j] = i - j: positive for a key to the left. */
void position_distances(float *out, size_t tokens);
/* out[i][j] = row(i - j), the delta(i,j) of the paper as the implementations compute it: one row for both terms. */
void position_rows(float *out, const deberta_model_info *info, deberta_reference reference, size_t tokens);

typedef enum position_strip {
    POSITION_STRIP_QUERY, /* [n][rows] by query: c2p, out[i][j] = strip[i][row(i - j)] */
    POSITION_STRIP_KEY,   /* [n][rows] by key: p2c, out[i][j] = strip[j][row(i - j)] */
    POSITION_STRIP_NONE,  /* [rows], of neither: p2p, out[i][j] = strip[row(i - j)] */
} position_strip;

/* rows: relative_rows of the model. */
void position_gather(float *out, const double *strip, position_strip by, const deberta_model_info *info,
                     deberta_reference reference, size_t tokens);

#endif
