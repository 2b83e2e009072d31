/* Gradients of logits by places of a table of positions. A strip belongs to each query or key: `fold_runs_f32` sums in
 * it all gradients of the same place. Products of strips with the table and with the vectors follow. Where each key of
 * a query reads a distinct place, no sums are needed: the strips are the gradients, shifted by one place per row.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/state/learner.h"

/* Rows belong to one side, queries or keys; the items of the other side read places for each row. */
typedef struct position_strips {
    const learner *learner;
    float *strips; /* [rows][ld]: row 0 begins `shift` floats before this address */
    size_t ld, shift;
    size_t rows, reach;      /* reach: distance in the sequence from the first to the last item of the other side */
    const size_t *tokens;    /* token of each row; NULL: they are consecutive in the sequence */
    size_t first, places;    /* the table place of column 0, and the number of columns */
    const int32_t *place_of; /* place_of[x - row]: the place that an item of the other side reads, x after its first */
} position_strips;

/* Rows and columns of a part of the products. */
enum { STRIPS_AT_ONCE = 12 };

/* Sets strips to zeros before the sums. */
void position_strips_clear(const position_strips *strips);
/* Uses the scores [rows][ld] of `keys` keys as the strips of c2p, if each distance has a separate place. Scores have
 * STRIPS_AT_ONCE - 1 floats between the keys of neighbouring rows, and as many before the first row and after the last:
 * these become zeros. */
bool position_strips_skew(position_strips *strips, float *scores, size_t ld, size_t keys);

/* Computes d_rows += strips `table` and d_table += strips' `vectors`: a chain for each number, over places and over
 * rows. */
typedef struct strip_products {
    const float *table; /* [dp / 16][2K][16], at the first place */
    float *d_rows;
    size_t ld_rows;
    const float *vectors; /* [rows][dp] */
    float *d_table;       /* [places][dp], at the first place */
} strip_products;

void position_strips_multiply(const position_strips *strips, const strip_products *products);
