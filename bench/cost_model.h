/* Counts the least work that an encode must do, by stage: the divisor of every "GFLOP/s" and "% of peak" of the bench.
 *
 * Useful FLOPs count matrix products only, with the position projections folded at load. Per layer and sequence of n
 * tokens:
 *
 *     2 n (4 h^2 + 2 h f)       projections of Q, K, V, the output, and the feed-forward
 *     4 n^2 h                   q k and P V
 *     2 n S h  each             c2p and p2c; S = rows of the table in use: at most 2K, at most 2n - 1
 *
 * A query reaches only the rows of its own distances, n of the 2n - 1 for an end of the sequence: an engine that
 * computes no more than those can exceed 100 % by the first measure, so the FLOPs over *reachable* rows are given as
 * well.
 *
 * Bytes are the least that a stage must move if its inputs come from memory and its outputs go there, and nothing in
 * between does: weights once a batch, activations once. Numbers count in the format in which the engine reads them:
 *
 *     weights of Q, K, V, the output, the feed-forward   float32; int16, int8: 2 or 1 bytes, and what scales them: a
 *                                                        scale and the sum of each digit for every output and block of
 *                                                        inputs, a factor for every input
 *     keys, values, position tables in attention         float32; int8: a byte, and a scale and a sum for each key and
 *                                                        table row of a head, and for each column of 512 values
 *     word rows                                          float32; of a packed file in low precision: its integers
 *     everything else                                    float32
 *
 * Integers of a block of inputs fill whole tiles. Biases, gains of norms and other padding are left out.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/encode/session_internal_options.h"

typedef struct cost_point {
    const size_t *lengths; /* [sequences] tokens of each sequence */
    size_t sequences;
    size_t layers;
    term_selection terms;
    bool recompute_positions;
} cost_point;

typedef struct cost_stage {
    double flops, reachable_flops, bytes;
} cost_stage;

typedef struct cost {
    cost_stage stage[PROFILE_STAGES], total;
    double part_flops[PROFILE_PARTS];  /* of attention, over reachable rows: a part has a rate below the peak */
    double table_rows, reachable_rows; /* S, and its mean over the queries; for a batch weighted by tokens */
} cost;

/* Computes the cost. reference: the rule for distances beyond max_relative_positions. */
void cost_model_compute(cost *result, const deberta_model_info *model, deberta_reference reference,
                        const cost_point *point);

/* Returns the name of a stage in tables and files: "embed", "qkv" ... */
const char *cost_stage_name(profile_stage stage);
const char *cost_part_name(profile_part part);
/* Returns true if the stage multiplies integers: in low precision the linear layers of the encoder, in int8 attention
 * as well; other stages are in float32. */
bool cost_stage_is_of_integers(profile_stage stage, deberta_precision precision);
