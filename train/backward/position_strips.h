/* Gradients of logits by places of a table of positions. A strip belongs to each query or key: `fold_runs_f32` sums in
 * it all gradients of the same place. Products of strips with the table and with the vectors follow. Where each key of
 * a query reads a distinct place, no sums are needed: the strips are the gradients, shifted by one place per row.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/state/learner.h"

/* Rows are of one side, queries or keys; those of the other side read places for each of them. */
typedef struct position_strips {
    const learner *learner;
    float *strips; /* [rows][ld], the first `shift` before it */
    size_t ld, shift;
    size_t rows, reach;      /* reach: how far the last of the other side is from its first, in the sequence */
    const size_t *tokens;    /* of the rows; NULL: they follow each other in the sequence */
    size_t first, places;    /* of the table: that of column 0, and how many columns there are */
    const int32_t *place_of; /* place_of[x - row]: the place that one of the other side reads, x behind its first */
} position_strips;

/* Rows and columns of a part of the products. */
enum { STRIPS_AT_ONCE = 12 };

/* Strips begin as zeros. */
void position_strips_clear(const position_strips *strips);
/* The strips of c2p are the scores [rows][ld] of `keys` keys themselves: position_strips_skew makes them so, if each
 * distance has a place. Scores have STRIPS_AT_ONCE - 1 floats between the keys of neighbouring rows, and as many before
 * the first row and behind the last: these become zeros. */
bool position_strips_skew(position_strips *strips, float *scores, size_t ld, size_t keys);

/* d_rows += strips `table`;  d_table += strips' `vectors`: a chain for each number, over places and over rows. */
typedef struct strip_products {
    const float *table; /* [dp / 16][2K][16], at the first place */
    float *d_rows;
    size_t ld_rows;
    const float *vectors; /* [rows][dp] */
    float *d_table;       /* [places][dp], at the first place */
} strip_products;

void position_strips_multiply(const position_strips *strips, const strip_products *products);
