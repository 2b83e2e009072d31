/* Collects statistics at every distance for each chosen head and component: columns of the data, and panels of curves
 * with ribbons. The kind of figure measures the values, on one text or many.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/attention/figure_sheet.h"

typedef enum distance_statistic {
    DISTANCE_COUNT,
    DISTANCE_MEAN,
    DISTANCE_MEDIAN,
    DISTANCE_LOW,
    DISTANCE_HIGH,
    DISTANCE_STATISTICS
} distance_statistic;

typedef struct distance_curves {
    size_t reach, entries; /* reach: the largest distance; entries: 2 reach + 1 distances of one head */
    /* [heads][entries]; the count is the same for all components */
    double *column[DEBERTA_COMPONENT_COUNT][DISTANCE_STATISTICS];
} distance_curves;

/* Returns true if the curves of a component are taken without the row means, as --numbers says too: nobody could
 * subtract them from a median. */
bool distance_curves_centred(const figure_source *source, deberta_component component);

distance_curves distance_curves_open(const figure_source *source, size_t reach);
/* Adds a line of the data for each head and distance, and panels of the chosen heads: the terms and their sum in one,
 * the probabilities in the next. Notes say what the curves are and over what they were taken; `over` names it, as in
 * "pairs of tokens". with_edges: draws strokes between the buckets of the model. Ends with sheet_finish. */
void distance_curves_draw(figure_sheet *sheet, const distance_curves *curves, bool with_edges, const char *over);
