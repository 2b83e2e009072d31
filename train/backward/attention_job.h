/* Describes the inputs of the backward attention of a layer, and the destinations of its gradients.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/state/step_state.h"

typedef struct attention_backward {
    const step_state *step;
    size_t layer;
    const layer_record *record; /* record of the queries */
    const query_run *runs;      /* in the order of their rows */
    const size_t *run_bounds;   /* [parts + 1] */
    const float *d_context;     /* [rows][context_stride] */
    float *d_queries;           /* [rows][ld_queries] */
    size_t ld_queries;
    bool continues; /* whether to add to the gradients of keys, values and tables instead of overwriting them */
} attention_backward;
