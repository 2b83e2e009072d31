/* Maps a relative position, the distance r = i - j (query minus key), to a row of the relative table.
 *
 * position_bucket and position_row are the definitions (SPEC 3.3, 4.3), and all code that reasons about positions uses
 * them. A position_map is the same function tabulated for a session's longest input, with the facts that the kernels
 * need about it.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/model/config.h"
#include "core/model/pack.h"

typedef struct position_rule {
    size_t span;         /* K: the table has 2K rows, distance 0 is row K. 0: no relative attention */
    size_t buckets;      /* B; 0: every distance is its own bucket */
    size_t max_distance; /* M */
    bool clamp_distance; /* whether |r| is limited to M - 1 before the logarithm, as Microsoft does and transformers
                            does not */
    /* Functions of other rules; NULL: DeBERTa's rule. They are called while tables are made, never while encoding. */
    size_t (*row)(const struct position_rule *rule, ptrdiff_t distance); /* the result of position_row, below 2K */
    size_t (*p2c_row)(const struct position_rule *rule, size_t row);     /* the row that p2c reads in place of `row` */
} position_rule;

/* Makes the rule. AUTO: the reference of the configuration, or of the description. */
position_rule position_rule_make(const model_config *config, deberta_reference reference);
/* Makes the rule of a model from its description. */
position_rule position_rule_of(const deberta_model_info *info, deberta_reference reference);

/* Computes bucket(r), an odd function; r itself without buckets. */
ptrdiff_t position_bucket(const position_rule *rule, ptrdiff_t distance);
/* Computes row(r) = clamp(bucket(r) + K, 0, 2K - 1): the one row that both c2p and p2c read for this distance. */
size_t position_row(const position_rule *rule, ptrdiff_t distance);

/* Tabulates row(r) for |r| <= reach as two tables for the position_bias kernel, with facts derived from them. */
typedef struct position_map {
    const int32_t *row_of; /* row_of[r] = row(r); points at distance 0 */
    const int32_t
        *position_of; /* position_of[x] = last_row - row(-x): place in the reversed table of a key x to the right */
    ptrdiff_t reach;
    int32_t last_row;        /* 2K - 1 */
    int32_t lowest, highest; /* extremes of all rows in the map */
    bool monotone;           /* whether row_of never decreases */
    bool unit_steps;         /* whether, in addition, it never grows by more than 1 */
    /* first distance from which on, up to reach, every r has the row of reach: keys far to the left */
    ptrdiff_t far_left;
    ptrdiff_t far_right; /* last distance up to which, from -reach on, every r has the row of -reach */
} position_map;

/* Entries of the map beyond the longest sequence, on each side, that are readable: tiles of 16 keys extend up to 15
 * beyond. */
enum { POSITION_SLACK = 64 };

/* Takes the tables of a map for sequences of up to `tokens` (< 2^30) from the arena and fills them if it is a real one.
 * It computes the facts in any case, unless there is no relative attention. */
void position_map_carve(position_map *map, arena *memory, const position_rule *rule, size_t tokens);

/* Finds the lowest and highest row among the distances low ... high. */
static inline void position_map_rows(const position_map *map, ptrdiff_t low, ptrdiff_t high, size_t *first,
                                     size_t *last)
{
    *first = (size_t)(map->monotone ? map->row_of[low] : map->lowest);
    *last = (size_t)(map->monotone ? map->row_of[high] : map->highest);
}

/* Returns whether a sequence of n tokens has pairs whose distance is saturated. */
static inline bool position_map_has_far(const position_map *map, size_t n)
{
    return (ptrdiff_t)n > map->far_left || (ptrdiff_t)n > -map->far_right;
}

/* Declares the precomputation of position projections: PK = R W_k + b and PQ = R W_q + b depend on no input (SPEC 4.1).
 */

/* Describes one layer's projections of the relative table. W_q already includes the softmax scale. */
typedef struct position_fold {
    const kernels *kernels;
    size_t heads, head_size, padded_head, rows; /* rows = 2K */
    const float *table, *reversed;              /* R in natural order, and last row first: [2K][ld] */
    size_t ld;
    packed_matrix key_matrix, query_matrix;
    size_t first_key_panel, first_query_panel;
    float *keys;      /* out: [A][ceil(2K / 16)][d][16], panels of reversed rows; NULL: no c2p */
    float *queries;   /* out: [A][2K][padded_head], natural rows; NULL: no p2c */
    float *workspace; /* [A][2K][padded_head], with c2p */
} position_fold;

void position_fold_run(const position_fold *fold, executor *by);
