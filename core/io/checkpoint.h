/* The tensors of a model folder, whatever file format they are in.
 *
 * Opening reads the tables of contents only: names, types, shapes, places. Nothing in a file is trusted; what is listed here
 * has been checked to lie inside its file. Names are canonical: the prefix before `embeddings.word_embeddings.weight`
 * ("deberta.", "bert." or none) is stripped from encoder tensors, heads keep theirs (SPEC 9).
 *
 * Looked for, in this order: model.safetensors, model.safetensors.index.json, pytorch_model.bin, pytorch_model.bin.index.json.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CORE_IO_CHECKPOINT_H
#define CORE_IO_CHECKPOINT_H

#include "core/base/status.h"

typedef enum tensor_dtype {
    DTYPE_F64, DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_I64, DTYPE_I32, DTYPE_I16, DTYPE_I8, DTYPE_U8, DTYPE_BOOL,
    DTYPE_OTHER, /* listed, cannot be read */
} tensor_dtype;

const char *dtype_name(tensor_dtype dtype);
size_t dtype_bytes(tensor_dtype dtype); /* 0 for DTYPE_OTHER */

enum { TENSOR_MAX_RANK = 8 };

typedef struct tensor {
    const char *name;  /* canonical */
    const char *file;  /* base name of the file it is in, for messages */
    tensor_dtype dtype;
    size_t rank, shape[TENSOR_MAX_RANK], elements;
} tensor;

typedef struct checkpoint checkpoint;

deberta_status checkpoint_open(checkpoint **checkpoint, const char *folder, deberta_error *err);
void checkpoint_close(checkpoint **checkpoint);

size_t checkpoint_count(const checkpoint *checkpoint);
const tensor *checkpoint_at(const checkpoint *checkpoint, size_t index);
const tensor *checkpoint_find(const checkpoint *checkpoint, const char *name); /* NULL if absent */

/* Elements [first, first + count) of the tensor in row-major order of its shape (strides are honoured), as float32: exact for
 * F32, F16, BF16, rounded for F64. Thread-safe. DEBERTA_E_FORMAT for a dtype that holds no floating-point weights. */
deberta_status checkpoint_read_f32(const checkpoint *checkpoint, const tensor *tensor, size_t first, size_t count, float *values,
                                   deberta_error *err);
/* The same for integer and boolean tensors. */
deberta_status checkpoint_read_i64(const checkpoint *checkpoint, const tensor *tensor, size_t first, size_t count, int64_t *values,
                                   deberta_error *err);
/* Drops what reading of this tensor cached (a member of a zip lives on the heap, a mapped file does not). */
void checkpoint_forget(const checkpoint *checkpoint, const tensor *tensor);
/* SHA-256 over config.json and the weight files, as 64 hex digits: the identity that figures and results state. */
deberta_status checkpoint_digest(const checkpoint *checkpoint, char digest[65], deberta_error *err);

#endif
