/* Presents an encoded input as tensors (hidden states, attention maps, logits of heads), with their names, shapes, and
 * values row by row. `encode` writes them; `verify --expected` compares them with those of a file.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "analysis/capture.h"
#include "core/io/export.h"
#include "program/frame/input/input.h"

typedef enum encoded_kind { ENCODED_INPUT, ENCODED_HIDDEN, ENCODED_ATTENTION, ENCODED_LOGITS } encoded_kind;

/* Meaning of a tensor, besides its name and shape. */
typedef struct encoded_meaning {
    encoded_kind kind;
    size_t layer; /* layer of hidden states, 0 to L, or of attention */
    size_t which; /* deberta_component or deberta_task; for inputs: ids, mask, types, positions */
} encoded_meaning;

typedef struct encoded_input {
    /* Set by the caller; encoded_free frees what is marked as owned */
    const common_options *options;
    deberta_model *model;           /* owned */
    deberta_model_info info;        /* info of the model */
    input_batch input;              /* owned */
    capture capture;                /* owned; chosen hidden states and attention, see encoded_prepare */
    bool tasks[DEBERTA_TASK_COUNT]; /* tasks whose logits are computed */

    deberta_session *session;
    const float *last_hidden; /* [tokens][last_stride]; owned by the session */
    size_t last_stride;
    export_tensor *tensors; /* [count], in the memory of the options */
    encoded_meaning *meanings;
    size_t count;
} encoded_input;

/* Makes the capture of a model, info and input that are set; the caller then chooses layers, components and tasks. */
void encoded_prepare(encoded_input *e);
/* Encodes within the memory limit of the command, and lists the tensors; it sets max_tokens and features itself. */
deberta_status encoded_run(encoded_input *e, deberta_session_options *options, deberta_error *err);
/* encoded_release frees session and capture, so that encoded_prepare can begin again; encoded_free frees
 * everything. */
void encoded_release(encoded_input *e);
void encoded_free(encoded_input *e);

/* Returns true if a tensor of that name is part of the input. */
bool encoded_is_input(const char *name);

/* Neighbouring values of a tensor that belong to one real token, or to one row if the tensor has no tokens. */
typedef struct encoded_piece {
    size_t first;       /* index among all elements of the tensor */
    const void *values; /* [count], of the tensor's type */
    size_t count;
    size_t token, column; /* token of the batch, or row; column of values[0] in that row */
} encoded_piece;
typedef deberta_status (*encoded_visit)(void *context, const encoded_piece *piece, deberta_error *err);
/* Visits all values in order, except padding and holes of the input. */
deberta_status encoded_walk(encoded_input *e, size_t tensor, encoded_visit visit, void *context, deberta_error *err);
