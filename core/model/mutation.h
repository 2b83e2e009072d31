/* Deliberate mistakes: wrong variants of the engine with which the checks are checked.
 *
 * Each is a mistake that a port of DeBERTa has made or could make. It goes into the engine, when a model is loaded or
 * in the position map, never into a comparison or a tolerance. `verify --mutate` and the tests use the same list.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CORE_MODEL_MUTATION_H
#define CORE_MODEL_MUTATION_H

#include <stdbool.h>

#include "include/deberta.h"

#define MUTATION_LIST(X)                                                                                               \
    X(SIGN, "sign", "distance j - i instead of i - j")                                                                 \
    X(BUCKET_SHIFT, "bucket_shift", "table row off by one")                                                            \
    X(BUCKET_FLOOR, "bucket_floor", "floor instead of ceil in the logarithmic bucket")                                 \
    X(NO_CLAMP, "no_clamp", "rows outside the table wrap around instead of being clamped")                             \
    X(P2C_JI, "p2c_ji", "p2c reads the row of (j, i), as the paper prints it")                                         \
    X(P2C_CONSTANT, "p2c_constant", "p2c without positions: every distance reads the row of distance 0")               \
    X(DROP_C2P, "drop_c2p", "the c2p term is left out")                                                                \
    X(DROP_P2C, "drop_p2c", "the p2c term is left out")                                                                \
    X(SCALE_PLAIN, "scale_plain", "scale sqrt(d) instead of sqrt(d (1 + terms))")                                      \
    X(KEY_BIAS_DROPPED, "key_bias_dropped", "key_proj.bias is ignored, which p2c does see")                            \
    X(POSITION_BIAS_DROPPED, "position_bias_dropped", "biases of the position projections are ignored")                \
    X(INPROJ_BLOCKS, "inproj_blocks", "v1's in_proj read as blocks q, k, v instead of interleaved heads")              \
    X(NO_RELATIVE_NORM, "no_relative_norm", "the relative table is not normalised")                                    \
    X(GELU_TANH, "gelu_tanh", "tanh approximation of gelu")                                                            \
    X(EPSILON, "epsilon", "layer_norm_eps 1e-12 instead of the configured one (1e-7 where that is 1e-12)")             \
    X(NO_TOKEN_TYPES, "no_token_types", "token type embeddings are left out")                                          \
    X(NO_ABSOLUTE_POSITIONS, "no_absolute_positions", "absolute position embeddings are left out")                     \
    X(CONVOLUTION_SOURCE, "convolution_source", "the convolution reads the output of layer 0 instead of its input")

typedef enum model_mutation {
    MUTATION_NONE = 0,
#define X(identifier, name, description) MUTATION_##identifier,
    MUTATION_LIST(X)
#undef X
        MUTATION_COUNT
} model_mutation;

const char *mutation_name(model_mutation mutation);
const char *mutation_description(model_mutation mutation);
/* MUTATION_COUNT for an unknown name. */
model_mutation mutation_from_name(const char *name);

/* Opens a model with a fault in it; MUTATION_NONE is deberta_model_open. A fault that does not apply to a model (a
 * missing convolution has no source) leaves it right. */
deberta_status model_open_mutated(deberta_model **model, const char *path, const deberta_model_options *options,
                                  model_mutation mutation, deberta_error *err);

#endif
