/* The values of a model's config.json, read and checked once; the rest of the program relies on them without further
 * checks.
 *
 * Both dialects are read, transformers' and Microsoft's (SPEC 1). Every value here is in range: sizes are positive,
 * heads divide the hidden size, products of sizes that the program forms do not overflow.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "core/activation_list.h"
#include "core/base/status.h"
#include "core/base/text.h"

typedef struct model_config {
    int version;  /* 1: v1's parameterisation, 2: v2's and v3's, 0: the config does not say (Microsoft): the tensors
                     decide */
    bool of_pair; /* whether the file also has a generator's config; this is the discriminator's */
    size_t vocabulary_size, hidden_size, embedding_size, layers, heads, head_size, intermediate_size;
    size_t max_positions, token_types;
    /* c2p and p2c are false without relative_attention. talking_heads only in v1; share_att_key, norm_relative, buckets
     * and the convolution never in v1. Where version is 0, Microsoft's encoder honours them whatever the tensors are,
     * except talking_heads and share_att_key, which belong to one kind of projection. */
    bool relative_attention, position_biased_input, c2p, p2c, share_att_key, norm_relative, talking_heads;
    size_t position_terms;         /* number of terms in the scale sqrt(d (1 + position_terms)), SPEC 1.2; set without
                                      relative_attention too */
    size_t max_relative_positions; /* M, after the -1 rule */
    size_t position_buckets;       /* B; 0: none */
    size_t relative_span;          /* K: the table has 2K rows */
    float layer_norm_eps;
    activation hidden_activation, pooler_activation, convolution_activation;
    size_t convolution_width, convolution_groups; /* width 0: no convolution */
    size_t labels;                                /* num_labels or entries of id2label */
    char **label_names;                           /* [labels], entries may be NULL; owned */
    char *architecture;                           /* architectures[0] or NULL; owned */
    deberta_problem problem;                      /* interpretation of a sequence head's outputs */
    deberta_reference reference;                  /* the library that wrote the config, whose rules apply; never AUTO */
    kept_notes notes;                             /* notes on keys that are not followed; owned */
    int pad_token_id;
    /* Dropout probabilities, which only training uses; -1 where the file's value is not a probability below 1. */
    double hidden_dropout, attention_dropout, pooler_dropout, classifier_dropout;
} model_config;

/* Reads folder/config.json. On failure *config is empty and nothing needs to be freed. */
deberta_status config_read(model_config *config, const char *folder, deberta_error *err);
/* Reads a configuration from text; messages call it `where`. */
deberta_status config_parse(model_config *config, const char *text, size_t length_bytes, const char *where,
                            deberta_error *err);
void config_free(model_config *config);
