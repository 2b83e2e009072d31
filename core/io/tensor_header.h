/* Headers of tensor files: safetensors of many tensors, npy of one matrix.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/io/tensor.h"

typedef struct export_tensor {
    const char *name;   /* unique */
    tensor_dtype dtype; /* DTYPE_F32, DTYPE_F64 or DTYPE_I64 */
    size_t rank, shape[TENSOR_MAX_RANK];
} export_tensor;

/* An entry of __metadata__. Keys are unique. */
typedef struct export_note {
    const char *key, *value;
} export_note;

/* Locates the values of a tensor, counted from the end of the header. */
typedef struct tensor_place {
    uint64_t offset_bytes;
    size_t elements, element_bytes;
} tensor_place;

/* Assigns the values the offset *end and moves it past them. `path` is for messages, here and below. */
deberta_status tensor_place_values(tensor_place *place, const export_tensor *declared, uint64_t *end, const char *path,
                                   deberta_error *err);

typedef struct tensor_contents {
    const export_tensor *tensors;
    const tensor_place *places; /* one for each tensor */
    size_t count;
    const export_note *notes;
    size_t note_count;
} tensor_contents;

typedef struct tensor_header {
    char *bytes; /* memory of the header, which the caller frees */
    size_t size_bytes;
} tensor_header;

/* Composes metadata first and then the tensors in the order of their declaration. The size is a multiple of 8 and at
 * least least_bytes: a caller that does not know the shapes yet can reserve space. On failure *header is empty. */
deberta_status tensor_header_safetensors(tensor_header *header, const tensor_contents *contents, size_t least_bytes,
                                         const char *path, deberta_error *err);

/* Composes the header of a float32 matrix, which has the same length for every shape. */
enum { TENSOR_HEADER_NPY_BYTES = 128 };
void tensor_header_npy(char header[TENSOR_HEADER_NPY_BYTES], size_t rows, size_t columns);
