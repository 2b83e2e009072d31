/* Packs the attention of one head into the few bytes that a page can hold.
 *
 * Three grades, by the length of the text and the number of heads that share a page:
 *   exact    short texts: float32 as they are
 *   bytes    up to PLAIN_CELLS tokens: one byte a value, scaled by the matrix' largest magnitude
 *   pooled   longer ones: each cell stands for pool x pool values; mean, least and greatest as bytes
 *
 * The signed terms are kept without their row mean, because a softmax ignores it and eight bits are better spent on the
 * rest; the row means follow in float32, so that a page can show either.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "core/base/status.h"

enum { PLAIN_CELLS = 220 };

typedef struct cell_layout {
    size_t n, pool, cells; /* cells = n / pool, rounded up */
    bool exact;
    bool has[DEBERTA_COMPONENT_COUNT]; /* true for terms of the model, and always for the sum and the probabilities */
} cell_layout;

/* Returns the finest grade with which `heads` heads fit into budget_bytes; the coarsest if none does. */
cell_layout cell_layout_choose(size_t n, bool has_c2p, bool has_p2c, size_t heads, size_t budget_bytes);
/* Returns the bytes of one head; a chosen layout has at most PLAIN_CELLS on a side. */
size_t cell_layout_bytes(const cell_layout *layout);
/* Computes the bytes of all heads of all layers; returns false on overflow. */
bool cell_layout_all_bytes(const cell_layout *layout, size_t layers, size_t heads, size_t *bytes);

/* Scales with which a page decodes the bytes. */
typedef struct cell_scales {
    double scale[DEBERTA_COMPONENT_COUNT]; /* largest stored magnitude; for the sum: the largest that a page shows */
    double range[DEBERTA_COMPONENT_COUNT]; /* pooled: largest magnitude of the least and greatest values */
    double largest_centred, largest_plain; /* over all signed cells, without and with their row means */
    size_t not_finite;
} cell_scales;

/* Packs one head. matrices: [n][n] each, NULL for a term the model lacks; row means are subtracted in place. bytes:
 * [cell_layout_bytes], little-endian:
 *   row means, float32 [cells], of c2c, c2p, p2c as far as present
 *   values [cells][cells] of the same, then of the probabilities: float32, or a byte
 *   pooled only: least [cells][cells] and greatest [cells][cells] of the terms, the sum and the probabilities
 * A byte q of a term means q / 127 of the scale (q as int8), of a probability (q / 254) squared: small probabilities
 * keep their first digits. -128 and 255 mark values that are not finite. */
void cells_pack(const cell_layout *layout, float *const matrices[DEBERTA_COMPONENT_COUNT], uint8_t *bytes,
                cell_scales *scales);

/* Computes a page's numbers of one head and adds them to the object `about`: its shares, Shapley values, entropy,
 * habits and the scales of its cells. matrices: as for cells_pack, which then packs them into bytes; special: [n],
 * not 0 for tokens such as [CLS] and [SEP]. */
void explorer_head_pack(const cell_layout *layout, float *const matrices[DEBERTA_COMPONENT_COUNT],
                        const unsigned char *special, uint8_t *bytes, json_t *about);
