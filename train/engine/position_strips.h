/* Gradients of logits by places of a table of positions: a strip for each query or key, into which `fold_runs_f32` adds
 * up what reads the same place, and the products of strips with the table and with the vectors.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/engine/learner.h"

/* Rows are of one side, queries or keys; those of the other side read places for each of them. */
typedef struct position_strips {
    const learner *learner;
    float *strips;           /* [rows][fold_stride] */
    size_t rows, reach;      /* reach: how far the last of the other side is from its first, in the sequence */
    const size_t *tokens;    /* of the rows; NULL: they follow each other in the sequence */
    size_t first, places;    /* of the table: that of column 0, and how many columns there are */
    const int32_t *place_of; /* place_of[x - row]: the place that one of the other side reads, x behind its first */
} position_strips;

/* Strips begin as zeros. */
void position_strips_clear(const position_strips *strips);

/* d_rows += strips `table`;  d_table += strips' `vectors`: a chain for each number, over places and over rows. */
typedef struct strip_products {
    const float *table; /* [dp / 16][2K][16], at the first place */
    float *d_rows;
    size_t ld_rows;
    const float *vectors; /* [rows][dp] */
    float *d_table;       /* [places][dp], at the first place */
} strip_products;

void position_strips_multiply(const position_strips *strips, const strip_products *products);
