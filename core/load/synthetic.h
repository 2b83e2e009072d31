/* The weights of made-up models, which synthetic_name.h describes.
 *
 * Every weight is a function of the seed, the tensor's name and the element's index, so that any row of any tensor can
 * be made when it is asked for, by any thread, and nothing is stored: the word table of 128,100 rows costs no memory.
 * Scales are such that each component of the attention logits has a standard deviation of about 1.2, as in trained
 * models; attention that is nearly uniform would hide mistakes.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/model/config.h"
#include "core/load/weight_loader.h"

typedef struct synthetic_weights {
    model_config config; /* a shallow copy: the model owns what it points to */
    uint64_t seed;
    unsigned heads;     /* bits 1 << deberta_task; that of MLM gives the Enhanced Mask Decoder too */
    uint16_t outliers;  /* channels; 0: none */
    float outlier_size; /* how many times as large */
} synthetic_weights;

enum { SYNTHETIC_MOST_OUTLIERS = 64 };

/* Whether a channel of the hidden states is one: channels (2 k + 1) h / (2 outliers). */
bool synthetic_is_outlier(const synthetic_weights *weights, size_t channel);

/* `weights` must outlive the source. */
weight_source weight_source_of_synthetic(const synthetic_weights *weights, const char *name);

/* Calls visit for every tensor that a model of weights->config has. */
void synthetic_visit(const synthetic_weights *weights,
                     void (*visit)(void *context, const char *name, const weight_tensor *tensor), void *context);
