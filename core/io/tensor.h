/* Describes a tensor of a file, and converts its values to float32 or int64.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "core/base/status.h"

typedef enum tensor_dtype {
    DTYPE_F64,
    DTYPE_F32,
    DTYPE_F16,
    DTYPE_BF16,
    DTYPE_I64,
    DTYPE_I32,
    DTYPE_I16,
    DTYPE_I8,
    DTYPE_U8,
    DTYPE_BOOL,
    /* Listed, but not readable: */
    DTYPE_U16,
    DTYPE_U32,
    DTYPE_U64,
    DTYPE_C64,
    DTYPE_F8_E4M3,
    DTYPE_F8_E5M2,
    DTYPE_F8_E8M0,
    DTYPE_F6_E2M3,
    DTYPE_F6_E3M2,
    DTYPE_F4,
} tensor_dtype;

const char *dtype_name(tensor_dtype dtype);
size_t dtype_bytes(tensor_dtype dtype); /* Returns the bytes of an element; 0 for a type that is not read. */
bool dtype_is_floating(tensor_dtype dtype);

enum {
    TENSOR_MAX_RANK = 8,
    TENSOR_MAX_NAME_BYTES = 500, /* limit of a name's bytes; the longest names of DeBERTa files have about 70 */
    TENSOR_MAX_COUNT = 65536,    /* limit of tensors in a file; 48 layers have about 800 */
};

typedef struct tensor {
    const char *name; /* canonical name */
    const char *file; /* base name of its file, for messages */
    tensor_dtype dtype;
    size_t rank, shape[TENSOR_MAX_RANK], elements;
} tensor;

/* Locates a stored tensor: element (i0, i1, ...) is at offset_bytes + dtype_bytes * (i0 strides[0] + i1 strides[1] +
 * ...) of its storage. The code that fills this in has checked that all of it is inside the storage. */
typedef struct stored_tensor {
    tensor tensor; /* its name is the one in the file */
    size_t strides[TENSOR_MAX_RANK];
    size_t offset_bytes, storage;
    size_t size_bytes; /* bytes of the values in a safetensors file */
} stored_tensor;

typedef struct tensor_list {
    stored_tensor *items;
    size_t count;
    char *names; /* memory of the items' names */
} tensor_list;

/* Frees a list. Accepts an empty one. */
void tensor_list_free(tensor_list *list);

/* Sets row-major strides for the tensor's shape. */
void tensor_set_contiguous(stored_tensor *stored);
/* Computes the number of elements of a shape; false when it overflows. */
bool tensor_count_elements(size_t *elements, const size_t *shape, size_t rank);
/* Checks that a name is fit for messages, figures and files: NULL if so, else the reason ("is not UTF-8"). */
const char *tensor_name_problem(const char *name, size_t name_bytes);
/* A shape as text: "[2, 3]". */
typedef struct shape_text {
    char text[TENSOR_MAX_RANK * 22 + 3];
} shape_text;
shape_text shape_describe(const size_t *shape, size_t rank);

/* Rounds values to IEEE halves, ties to even. Returns false if a value is too large for a half, or NaN. */
bool tensor_round_f16(uint16_t *halves, const float *values, size_t count);

/* Returns the values in place, if they are aligned float32 in row-major order; else NULL, and they need conversion. */
const float *tensor_view_f32(const stored_tensor *stored, const uint8_t *storage);
/* Returns whether all magnitudes are at most `most`; false if one is no number. */
bool magnitudes_within(const float *values, size_t count, float most);
/* Converts elements [first, first + count) in row-major order of the shape. The caller has checked the range and that
 * the dtype is floating, or an integer or bool. `storage`: the first byte of the tensor's storage, at any alignment. */
void tensor_convert_f32(float *values, const stored_tensor *stored, const uint8_t *storage, size_t first, size_t count);
void tensor_convert_i64(int64_t *values, const stored_tensor *stored, const uint8_t *storage, size_t first,
                        size_t count);
