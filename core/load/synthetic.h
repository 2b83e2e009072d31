/* Computes the weights of made-up models.
 *
 * Every weight is a function of the seed, the tensor's name and the element's index, so any thread can compute any row
 * of any tensor on demand, and nothing is stored: the word table of 128,100 rows costs no memory. Scales are such that
 * each component of the attention logits has a standard deviation of about 1.2, as in trained models; attention that is
 * nearly uniform would hide mistakes.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/load/weight_loader.h"
#include "core/model/config.h"

typedef struct synthetic_weights {
    model_config config; /* a shallow copy: the model owns the referenced memory */
    uint64_t seed;
    unsigned heads;     /* bits 1 << deberta_task; MLM's adds the Enhanced Mask Decoder too */
    uint16_t outliers;  /* number of outlier channels; 0: none */
    float outlier_size; /* factor of their size */
} synthetic_weights;

enum { SYNTHETIC_MOST_OUTLIERS = 64 };

/* Returns whether a channel of the hidden states is an outlier: channels (2 k + 1) h / (2 outliers). */
bool synthetic_is_outlier(const synthetic_weights *weights, size_t channel);

/* Makes a source; `weights` must outlive it. */
weight_source weight_source_of_synthetic(const synthetic_weights *weights, const char *name);

/* Calls visit for every tensor that a model of weights->config has. */
void synthetic_visit(const synthetic_weights *weights,
                     void (*visit)(void *context, const char *name, const weight_tensor *tensor), void *context);

/* Names of made-up models: "synthetic:<shape>[,key=value...]".
 *
 * Shapes: v1-base v1-large v1-xlarge v2-xlarge v2-xxlarge v3-xsmall v3-small v3-base v3-large mdeberta-base. Keys:
 * layers, vocab, seed, buckets, heads, hidden, embedding (width of the word table, 0: that of hidden), intermediate,
 * positions (max_position_embeddings), distance (max_relative_positions), types, convolution (kernel size), biased (1:
 * absolute positions at the input), terms (c2p, p2c, both, none), epsilon (3: layer_norm_eps 1e-3), outliers (6: so
 * many output channels of a layer's LayerNorms are outlier_size times as large, by default 20, and the weights that a
 * layer multiplies with them are as much smaller; a test for low precision).
 *
 * Heads of tasks: lm=1, rtd=1, qa=1, and sequence=N or token=N with N labels. heads=all, which may be combined with
 * heads=N, the attention heads, gives all heads that one model can have: these, and sequence=3 where neither is
 * given. */

/* Returns whether the path names a made-up model. */
bool synthetic_names(const char *path);
/* Writes the canonical name of a made-up model: keys in one order, without those that equal its shape's values. False
 * where the name means no model or the room is too small. */
bool synthetic_canonical(char *name, size_t capacity_bytes, const char *path);
/* Fills config (freed by config_free) and weights. */
deberta_status synthetic_parse(model_config *config, synthetic_weights *weights, const char *path, deberta_error *err);
