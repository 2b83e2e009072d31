/* Reads the part of Python's pickle language that tensors need, and nothing else (SPEC 10.4).
 *
 * A pickle is a program for a stack machine that may name and call any Python function. This reader accepts only the
 * names below; every other name is an error, and nothing is ever executed. Values live in flat pools, so neither deep
 * nesting nor cycles cost stack; sizes, counts and the memo are bounded by the length of the pickle.
 *
 * Accepted names: collections.OrderedDict, torch._utils._rebuild_tensor_v2, torch._utils._rebuild_parameter, and as
 * storage types torch.{Double,Float,Half,BFloat16,Long,Int,Short,Char,Byte,Bool}Storage.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/io/tensor.h"

typedef struct pickle pickle;

typedef enum pickle_kind {
    PICKLE_NOTHING, /* no value */
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_INTEGER,
    PICKLE_REAL,
    PICKLE_TEXT,
    PICKLE_BYTES,
    PICKLE_LONG, /* an integer of more than 64 bits, as its little-endian bytes */
    PICKLE_TUPLE,
    PICKLE_LIST,
    PICKLE_DICT,
    PICKLE_GLOBAL,
    PICKLE_STORAGE,
    PICKLE_TENSOR,
    PICKLE_KIND_COUNT
} pickle_kind;

typedef struct pickle_value {
    uint32_t kind;
    uint32_t length_bytes; /* bytes of a text, bytes or long */
    union {
        int64_t integer;  /* value of a bool or an integer */
        const char *text; /* address in the pickle; not terminated */
        size_t index;     /* index of any other value in its pool */
    } as;
} pickle_value;

/* A persistent id describes a storage: the memory that tensors are views of. */
typedef struct pickle_storage {
    pickle_value key; /* key of the storage, a text */
    tensor_dtype dtype;
    size_t elements;
    size_t view_offset, view_elements; /* the referenced part (all of it except in the oldest files); inside elements */
} pickle_storage;

/* A tensor, checked to lie inside its storage. */
typedef struct pickle_tensor {
    size_t storage, offset, elements; /* offset into the whole storage, in elements, as are the strides */
    size_t rank, shape[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];
} pickle_tensor;

/* Reads one pickle from the beginning of `bytes`, which must stay as long as the result. `where` begins messages. */
deberta_status pickle_read(pickle **result, const uint8_t *bytes, size_t size_bytes, const char *where,
                           deberta_error *err);
void pickle_free(pickle **p);

size_t pickle_length_bytes(const pickle *p); /* Returns the number of bytes of the pickle, including its end. */
pickle_value pickle_root(const pickle *p);
const char *pickle_kind_name(pickle_value value); /* Returns the kind of a value in words: "a tuple". */
bool pickle_text_is(pickle_value value, const char *text);

/* Iterates over the items of a tuple or list, or the keys and values of a dict in turn; any other value has no items.
 * *cursor is 0 at the beginning. */
bool pickle_next(const pickle *p, pickle_value from, size_t *cursor, pickle_value *item);
/* Counts the pairs of text and tensor in a dict. */
size_t pickle_tensor_count(const pickle *p, pickle_value dict);

size_t pickle_storage_count(const pickle *p);
const pickle_storage *pickle_storage_at(const pickle *p, size_t index);
const pickle_tensor *pickle_tensor_of(const pickle *p, pickle_value tensor);
