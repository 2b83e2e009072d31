/* Made-up models: "synthetic:<shape>[,key=value...]".
 *
 * Every weight is a function of the seed, the tensor's name and the element's index, so that any row of any tensor can
 * be made when it is asked for, by any thread, and nothing is stored: the word table of 128,100 rows costs no memory.
 * Scales are such that each component of the attention logits has a standard deviation of about 1.2, as in trained
 * models; attention that is nearly uniform would hide mistakes.
 *
 * Shapes: v1-base v1-large v2-xlarge v3-xsmall v3-small v3-base v3-large mdeberta-base. Keys: layers, vocab, seed,
 * buckets, heads, hidden, intermediate, positions (max_position_embeddings), distance (max_relative_positions), types,
 * convolution (kernel size), biased (1: absolute positions at the input), terms (c2p, p2c, both, none), lm and rtd (1:
 * with that head), epsilon (3: layer_norm_eps 1e-3), outliers (6: so many channels of what a layer's
 * LayerNorms give are outlier_size times as large, 20 unless that is given, and what is multiplied with them is as much
 * smaller; what low precision must bear).
 *
 * SPDX-License-Identifier: MIT */
#ifndef CORE_MODEL_SYNTHETIC_H
#define CORE_MODEL_SYNTHETIC_H

#include "core/model/config.h"
#include "core/model/weight_loader.h"

typedef struct synthetic_weights {
    model_config config; /* a shallow copy: the model owns what it points to */
    uint64_t seed;
    bool lm_head, rtd_head;
    uint16_t outliers;  /* channels; 0: none */
    float outlier_size; /* how many times as large */
} synthetic_weights;

enum { SYNTHETIC_MOST_OUTLIERS = 64 };

/* Whether a channel of the hidden states is one: channels (2 k + 1) h / (2 outliers). */
bool synthetic_is_outlier(const synthetic_weights *weights, size_t channel);

/* Does the path name a made-up model? */
bool synthetic_names(const char *path);
/* Fills config (to be freed by config_free) and weights. */
deberta_status synthetic_parse(model_config *config, synthetic_weights *weights, const char *path, deberta_error *err);
/* `weights` must outlive the source. */
weight_source weight_source_of_synthetic(const synthetic_weights *weights, const char *name);

/* Calls visit for every tensor that a model of weights->config has. */
void synthetic_visit(const synthetic_weights *weights,
                     void (*visit)(void *context, const char *name, const weight_tensor *tensor), void *context);

#endif
