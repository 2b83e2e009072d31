/* Draws matrices as coloured cells: centring, pooling, scales, the panel with its labels, and colour bars.
 *
 * A matrix is first prepared (centred, pooled, its non-finite cells counted); a scale is then chosen from everything
 * that is to be compared; only then is anything drawn.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "viz/palette.h"

typedef struct heatmap_matrix {
    const float *values; /* [rows][stride] */
    size_t rows, columns, stride;
} heatmap_matrix;

typedef enum heatmap_kind {
    HEATMAP_SIGNED,   /* scale -m ... m */
    HEATMAP_POSITIVE, /* scale 0 ... m: probabilities */
    HEATMAP_RANGE,    /* scale minimum ... maximum: any quantity */
    HEATMAP_LOG,      /* the same, logarithmic: latencies; cells that are not positive are hatched */
    HEATMAP_KINDS
} heatmap_kind;

/* ------------------------------------------------------------------------------------------------------ preparing */

typedef struct heatmap_cells {
    float *values; /* [rows][columns], as drawn; NaN where hatched */
    size_t rows, columns;
    size_t row_pool, column_pool; /* rows and columns of the matrix that one drawn cell covers */
    size_t not_a_number, infinite,
        not_positive; /* numbers in the matrix, before pooling; the last on a logarithmic scale only */
    bool whole;       /* true: all finite values are integers */
    double magnitude; /* largest |finite value| of the matrix as given */
} heatmap_cells;

/* Prepares the cells. centre (for the signed kind): subtracts from every row the mean of its finite cells (a part
 * constant over keys does not change a softmax). A drawn cell is the mean of row_pool x column_pool cells, and NaN if
 * one of them is not finite. */
void heatmap_prepare(heatmap_cells *cells, const heatmap_matrix *matrix, heatmap_kind kind, bool centre,
                     size_t row_pool, size_t column_pool);
void heatmap_cells_free(heatmap_cells *cells);
/* Returns how many cells of this size share a drawn one, so that none is finer than a pixel; 10^9 for no size. */
size_t heatmap_pool(double cell, double pixel);

/* ---------------------------------------------------------------------------------------------------------- scale */

typedef enum heatmap_policy {
    HEATMAP_SHARED, /* one scale for all panels of a kind, from their extreme values */
    HEATMAP_PANEL,  /* a scale for each panel */
    HEATMAP_ROW,    /* a scale for each row of panels */
    HEATMAP_FIXED,  /* low ... high as given */
    HEATMAP_ROBUST, /* shared, from percentiles; values outside are clipped and counted */
} heatmap_policy;

typedef struct heatmap_choice {
    heatmap_policy policy;
    double low, high;  /* for HEATMAP_FIXED: low < high */
    double percentile; /* for HEATMAP_ROBUST; 0 = 99 */
    bool symmetric;    /* for HEATMAP_RANGE, unless fixed: equally far to both sides of zero */
} heatmap_choice;

typedef struct heatmap_scale {
    double low, high;
    bool logarithmic;
    size_t below, above; /* number of clipped cells */
} heatmap_scale;

/* Fails with DEBERTA_E_ARGUMENT for limits that are not finite, not in order or not positive where they must be, or a
 * percentile outside 0-100. */
deberta_status heatmap_check_choice(const heatmap_choice *choice, heatmap_kind kind, deberta_error *err);
/* Chooses the scale for the cells of count panels. Equal values (or no finite ones) still give a scale with low <
 * high. */
void heatmap_choose(heatmap_scale *scale, heatmap_kind kind, const heatmap_choice *choice,
                    const heatmap_cells *const *panels, size_t count);

/* Returns true if each panel has a separate colour bar. */
static inline bool heatmap_has_own_bars(heatmap_policy policy)
{
    return policy == HEATMAP_PANEL || policy == HEATMAP_ROW;
}

/* Returns the position in [0, 1] along the map. A diverging map keeps its middle at zero, also on an asymmetric
 * scale. */
double heatmap_position(const heatmap_scale *scale, bool diverging, double value);

/* -------------------------------------------------------------------------------------------------------- drawing */

/* Draws the cells into rect as an image, and hatches cells that are not finite. The last pooled cell may extend
 * beyond rect by less than a cell, and is clipped. matrix_rows and matrix_columns: the size before pooling. */
void heatmap_draw(draw_list *list, draw_rect rect, const heatmap_cells *cells, size_t matrix_rows,
                  size_t matrix_columns, const heatmap_scale *scale, const palette *map);

/* Returns the colour of one value. */
draw_colour heatmap_colour(const heatmap_scale *scale, const palette *map, double value);

/* Writes the meaning of the colours of a kind: unit, or "logit", "probability", "value" for NULL; for signed values
 * also whether the row means were subtracted. It is cut if longer than the buffer. */
enum { HEATMAP_UNIT_BYTES = 256 };
void heatmap_unit_text(const char *unit, heatmap_kind kind, bool keep_row_mean, char text[HEATMAP_UNIT_BYTES]);
