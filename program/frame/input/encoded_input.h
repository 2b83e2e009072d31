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

/* Computes head logits of a whole batch, a block of positions at a time.
 *
 * deberta_task_logits reads and packs the whole word table in every call, so asking for one position at a time costs a
 * table a token; asking for all at once would hold tokens x V floats. A block bounds both. */

enum { ENCODE_LOGITS_BLOCK_BYTES = 96 << 20 }; /* of logits: 196 positions of the published vocabulary, 128,100 */

/* Memory that encode_logits will hold. */
size_t encode_logits_bytes(const deberta_model *model, deberta_task task, size_t tokens, size_t block_bytes);
/* Sees the logits of one position, [width]. row: of the tensor [B,N] or [B] to which it belongs. */
typedef deberta_status (*logits_visit)(void *context, size_t row, size_t position, const float *logits,
                                       deberta_error *err);
/* Logits of one head for the batch that the session encoded last, at every token that is no hole (of
 * DEBERTA_TASK_SEQUENCE: for every row). A block has at most block_bytes of logits, but at least one position. */
deberta_status encode_logits(deberta_session *session, const deberta_model *model, deberta_task task,
                             const input_batch *input, size_t block_bytes, logits_visit visit, void *context,
                             deberta_error *err);
