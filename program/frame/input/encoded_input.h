/* Presents an encoded input as tensors: their names, their shapes, and their values row by row. `encode` writes them,
 * `verify --expected` compares them with those of a file.
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
    size_t layer; /* of hidden states, 0 to L, and of attention */
    size_t which; /* deberta_component or deberta_task; of inputs: ids, mask, types, positions */
} encoded_meaning;

typedef struct encoded_input {
    /* The caller's, but encoded_free frees what is owned: */
    const common_options *options;
    deberta_model *model;           /* owned */
    deberta_model_info info;        /* of the model */
    input_batch input;              /* owned */
    capture capture;                /* owned: which hidden states and attention there are; see encoded_prepare */
    bool tasks[DEBERTA_TASK_COUNT]; /* whose logits */

    deberta_session *session;
    const float *last_hidden; /* the session's, [tokens][last_stride] */
    size_t last_stride;
    export_tensor *tensors; /* [count], in the options' memory */
    encoded_meaning *meanings;
    size_t count;
} encoded_input;

/* Model, info and input are set: makes the capture, for the caller to choose layers, components and tasks. */
void encoded_prepare(encoded_input *e);
/* Encodes within the limit of the whole and lists the tensors; max_tokens and features are set here. */
deberta_status encoded_run(encoded_input *e, deberta_session_options *options, deberta_error *err);
/* Session and capture, to begin again with encoded_prepare; and everything. */
void encoded_release(encoded_input *e);
void encoded_free(encoded_input *e);

/* Is a tensor of that name a part of the input? */
bool encoded_is_input(const char *name);

/* Neighbouring values of a tensor: of a real token, or of a row where the tensor has none. */
typedef struct encoded_piece {
    size_t first;       /* of all elements of the tensor */
    const void *values; /* [count] of its type */
    size_t count;
    size_t token, column; /* token of the batch, or row; place of values[0] in its row */
} encoded_piece;
typedef deberta_status (*encoded_visit)(void *context, const encoded_piece *piece, deberta_error *err);
/* All values that stand for something, in order; what is padding or a hole in the input is not visited. */
deberta_status encoded_walk(encoded_input *e, size_t tensor, encoded_visit visit, void *context, deberta_error *err);
