/* What stays while a run lasts: a model whose weights come from a parameter_set, a session that records its forward
 * passes, transposed weights, and shapes. What one step is stands in step_state.h, what steps write to in
 * step_memory.h; docs/design.md has a map.
 *
 * Letters as in core/encode/session.h. "Parts" are the shards of a step: its sequences lie in the order of their
 * shards, and every sum over tokens is cut at their borders (docs/training.md).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "train/state/bindings.h"
#include "train/state/parameters.h"
#include "train/state/shard_groups.h"
#include "train/state/stage_clock.h"
#include "train/state/step_memory.h"

enum { DEFAULT_SHARDS = 16 };

/* Transposed packed weights, for gradients of inputs: of what is no layer's. */
typedef struct transposed_weights {
    packed_matrix convolution, projection, mlm_dense, rtd_dense, rtd_classifier, pooler, classifier, answer;
} transposed_weights;

typedef struct learner_options {
    size_t threads;
    size_t max_tokens, longest; /* of a step; of a sequence, 0: not known, which neither micro_tokens nor ranks bear */
    size_t parts;
    size_t micro_tokens; /* that are in memory at once, whole shards of them; 0: all of a step */
    deberta_isa isa;
    deberta_reference reference;
    size_t memory_limit_bytes; /* 0: none */
    bool moments;              /* an optimiser will hold two more numbers a weight */
    bool decodes;              /* the loss reads the Enhanced Mask Decoder, and nothing reads H[L] */
    bool predicts_words;       /* the loss is that of a masked language model */
    bool drops;                /* a step may have dropout */
    bool recomputes;           /* of the layers only inputs are kept; each runs again before its way back */
    bool pairs_up; /* half of a step's rows go forward before the others (SiFT). Not where memory is saved */
    bool differs;  /* has differences from the tables that a generator shares: added as zeros where there are none */
    const struct new_head *head; /* in place of the model's own; NULL: as it is. Read while opening */
    const char *const *drop;     /* [drop_count]: patterns of tensors that it leaves out; each fits one at least */
    size_t drop_count;
    bool begins;                /* the folder has a configuration and no weights: all are new */
    uint32_t seed;              /* of new weights */
    const deberta_ranks *ranks; /* that share the shards; NULL: none */
} learner_options;

/* The floats that the gradient of any matrix or norm of the model needs: for its weights, for a vector. */
typedef struct gradient_room {
    size_t weight_floats, vector_floats;
} gradient_room;

typedef struct learner {
    parameter_set set;
    char *config; /* the text of config.json, as it is saved: with a new head's labels */
    deberta_model *model;
    deberta_session *session;
    binding_list bindings;
    learner_options options;
    transposed_weights transposed;
    stage_clock *clock; /* NULL: nobody asks */

    /* Shapes, from model and session. */
    shard_plan plan;
    size_t tokens_capacity; /* T of a group of shards */
    size_t heads_width;     /* A dp */
    size_t qkv_stride;      /* of rows that hold dq, dk and dv of all heads */
    size_t scores_stride;   /* of rows of P and dS: some floats behind the keys of a chunk */
    size_t fold_stride;     /* of strips of dS */
    bool norms_again; /* layers keep no rows that a norm makes of others: they are made again where they are read */
    size_t exponentials_stride, kept_layers; /* layers, from the first on, keep exponentials of their softmax */
    gradient_room largest;                   /* what weight and vector of the memory have room for */

    step_memory memory;
} learner;

static inline const kernels *learner_kernels(const learner *l) { return &l->session->kernels; }
