/* Keeps what a session shows its observer: hidden states and attention matrices of chosen layers, heads and components.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "core/base/status.h"
#include "output/scope.h"

typedef struct capture {
    scope memory; /* memory of all arrays except the caller's */
    const deberta_model_info *model;
    const size_t *sequence_starts; /* [sequences + 1], owned by the caller */
    size_t sequences, tokens;
    bool *heads;           /* [A]: whether the head is selected */
    bool *matrices;        /* [L][components]: whether each is selected, see capture_want */
    size_t matrix_count;   /* number of selected heads */
    bool hidden;           /* whether all hidden states are selected too */
    float **hidden_states; /* [L + 1] of [tokens][h], or NULL */
    float **attention; /* [L][components] of [A][sum over sequences of n n], NULL where unwanted: see capture_matrix */
    size_t *matrix_starts; /* [sequences + 1] */
} capture;

/* Sets all sizes; nothing is selected yet. */
void capture_create(capture *capture, const deberta_model_info *model, const size_t *sequence_starts, size_t sequences);
/* Selects this component of a layer, where the model has it. */
void capture_want(capture *capture, size_t layer, deberta_component component);
/* Selects the component in all layers. */
void capture_want_everywhere(capture *capture, deberta_component component);
/* Returns the memory that the selection will take; SIZE_MAX for more than can be counted. */
size_t capture_bytes(const capture *capture);
/* Allocates the memory; call it after the selection. */
deberta_status capture_allocate(capture *capture, deberta_error *err);
void capture_free(capture *capture);
deberta_observer capture_observer(capture *capture);
/* Returns [n][n], query first, of one sequence; NULL if it was not selected or the model lacks the component. */
float *capture_matrix(const capture *capture, size_t layer, size_t head, deberta_component component, size_t sequence);

/* Returns whether the model has the component; not every one has c2p and p2c. */
bool component_is_in(deberta_component component, const deberta_model_info *model);
