/* Matrices of distances and table rows are filled in; terms are gathered from their strips.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/position_matrices.h"
#include "include/deberta_unstable.h"

void position_distances(float *out, size_t tokens)
{
    for (size_t i = 0; i < tokens; i++)
        for (size_t j = 0; j < tokens; j++) out[i * tokens + j] = (float)((ptrdiff_t)i - (ptrdiff_t)j);
}

void position_rows(float *out, const deberta_model_info *info, deberta_reference reference, size_t tokens)
{
    for (size_t i = 0; i < tokens; i++)
        for (size_t j = 0; j < tokens; j++)
            out[i * tokens + j] = (float)deberta_position_row(info, reference, (ptrdiff_t)i - (ptrdiff_t)j);
}

void position_gather(float *out, const double *strip, position_strip by, const deberta_model_info *info,
                     deberta_reference reference, size_t tokens)
{
    const size_t rows = info->relative_rows;
    for (size_t i = 0; i < tokens; i++) {
        for (size_t j = 0; j < tokens; j++) {
            const size_t row = deberta_position_row(info, reference, (ptrdiff_t)i - (ptrdiff_t)j);
            const size_t owner = by == POSITION_STRIP_QUERY ? i : by == POSITION_STRIP_KEY ? j : 0;
            out[i * tokens + j] = (float)strip[owner * rows + row];
        }
    }
}
