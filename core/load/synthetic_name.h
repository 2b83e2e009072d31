/* Names of made-up models: "synthetic:<shape>[,key=value...]".
 *
 * Shapes: v1-base v1-large v1-xlarge v2-xlarge v2-xxlarge v3-xsmall v3-small v3-base v3-large mdeberta-base. Keys:
 * layers, vocab, seed, buckets, heads, hidden, embedding (width of the word table, 0: that of hidden), intermediate,
 * positions (max_position_embeddings), distance (max_relative_positions), types, convolution (kernel size), biased (1:
 * absolute positions at the input), terms (c2p, p2c, both, none), epsilon (3: layer_norm_eps 1e-3), outliers (6: so
 * many channels of what a layer's LayerNorms give are outlier_size times as large, 20 unless that is given, and what a
 * layer multiplies with them is as much smaller; what low precision must bear).
 *
 * Heads of tasks: lm=1, rtd=1, qa=1, and sequence=N or token=N with N labels. heads=all, which takes nothing from
 * heads=N, the attention heads, gives all that one model can have: these, and sequence=3 where neither is asked for.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/load/synthetic.h"

/* Does the path name a made-up model? */
bool synthetic_names(const char *path);
/* The one name of all spellings of a made-up model: keys in one order, none that says what its shape has anyway. False
 * where the name means no model or the place is too small. */
bool synthetic_canonical(char *name, size_t capacity_bytes, const char *path);
/* Fills config (to be freed by config_free) and weights. */
deberta_status synthetic_parse(model_config *config, synthetic_weights *weights, const char *path, deberta_error *err);
