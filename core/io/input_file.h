/* Reads prepared token ids: .safetensors or .json with input_ids and its companions.
 *
 * This file checks shapes and types; the encoder checks values against the model, such as ids outside its vocabulary.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "core/base/status.h"

typedef struct input_file {
    size_t rows, columns; /* number of sequences B and length N, each at least 1 */
    int64_t *ids;         /* [rows][columns] */
    int64_t *mask;        /* 0 or 1 in the same shape; NULL if the file has none, like the others */
    int64_t *types;
    int64_t *positions;
} input_file;

/* Reads input_ids and, where present, attention_mask, token_type_ids, position_ids: all of one shape [B, N], I64 or I32
 * in safetensors, lists of B lists of N integers in JSON. It refuses names that are no part of a batch
 * (core/io/record_keys.h). DEBERTA_E_ARGUMENT for another suffix. On failure *input is empty. */
deberta_status input_file_read(input_file *input, const char *path, deberta_error *err);
/* Reads the same, but leaves the other members of the file to the caller. */
deberta_status input_file_read_among_others(input_file *input, const char *path, deberta_error *err);
/* Reads a stream up to its end. It may hold either format: a safetensors file begins with the length of its header, and
 * no text does. name: for messages. */
deberta_status input_file_read_stream(input_file *input, FILE *stream, const char *name, deberta_error *err);
void input_file_free(input_file *input);
