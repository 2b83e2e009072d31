/* Handles shapes, names and conversions of tensors in files.
 *
 * Conversion goes through runs: pieces of the tensor that are contiguous in memory. A tensor with other strides is
 * gathered into a small buffer first, so that every dtype needs one loop only.
 *
 * SPDX-License-Identifier: MIT */
#include "core/io/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/numbers.h"
#include "core/base/text.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "values are read as they lie in files, which are little-endian");

static const struct {
    const char *name;
    size_t bytes;
    bool floating;
} dtypes[] = {
    [DTYPE_F64] = {"F64", 8, true},          [DTYPE_F32] = {"F32", 4, true},
    [DTYPE_F16] = {"F16", 2, true},          [DTYPE_BF16] = {"BF16", 2, true},
    [DTYPE_I64] = {"I64", 8, false},         [DTYPE_I32] = {"I32", 4, false},
    [DTYPE_I16] = {"I16", 2, false},         [DTYPE_I8] = {"I8", 1, false},
    [DTYPE_U8] = {"U8", 1, false},           [DTYPE_BOOL] = {"BOOL", 1, false},
    [DTYPE_U16] = {"U16", 0, false},         [DTYPE_U32] = {"U32", 0, false},
    [DTYPE_U64] = {"U64", 0, false},         [DTYPE_C64] = {"C64", 0, false},
    [DTYPE_F8_E4M3] = {"F8_E4M3", 0, false}, [DTYPE_F8_E5M2] = {"F8_E5M2", 0, false},
    [DTYPE_F8_E8M0] = {"F8_E8M0", 0, false}, [DTYPE_F6_E2M3] = {"F6_E2M3", 0, false},
    [DTYPE_F6_E3M2] = {"F6_E3M2", 0, false}, [DTYPE_F4] = {"F4", 0, false},
};

const char *dtype_name(tensor_dtype dtype) { return dtypes[dtype].name; }
size_t dtype_bytes(tensor_dtype dtype) { return dtypes[dtype].bytes; }
bool dtype_is_floating(tensor_dtype dtype) { return dtypes[dtype].floating; }

void tensor_list_free(tensor_list *list)
{
    free(list->items);
    free(list->names);
    *list = (tensor_list){0};
}

void tensor_set_contiguous(stored_tensor *stored)
{
    size_t stride = 1;
    for (size_t d = stored->tensor.rank; d-- > 0;) {
        stored->strides[d] = stride;
        /* The product of all dimensions was checked; with a zero among them strides are never used. */
        stride *= stored->tensor.shape[d];
    }
}

bool tensor_count_elements(size_t *elements, const size_t *shape, size_t rank)
{
    *elements = 1;
    for (size_t d = 0; d < rank; d++)
        if (!size_multiply(*elements, shape[d], elements)) return false;
    return true;
}

const char *tensor_name_problem(const char *name, size_t name_bytes)
{
    if (name_bytes == 0) return "is empty";
    if (name_bytes > TENSOR_MAX_NAME_BYTES) return "is longer than 500 bytes";
    if (!utf8_is_valid(name, name_bytes)) return "is not UTF-8";
    for (size_t i = 0; i < name_bytes; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f) return "has control characters";
    return NULL;
}

shape_text shape_describe(const size_t *shape, size_t rank)
{
    shape_text out = {"["};
    size_t used = 1;
    for (size_t d = 0; d < rank; d++)
        used += (size_t)snprintf(out.text + used, sizeof out.text - used, "%s%zu", d ? ", " : "", shape[d]);
    out.text[used] = ']';
    return out;
}

/* ----------------------------------------------------------------------------------------------- runs to float32 */

/* The loads use memcpy because files align nothing; compilers vectorize the loops all the same. */

/* Rounds to nearest; beyond the range of float32 it becomes infinite. */
static void f64_to_f32(float *restrict values, const uint8_t *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double value;
        memcpy(&value, from + 8 * i, 8);
        values[i] = (float)value;
    }
}

/* Converts IEEE half to float32 exactly, and keeps NaN payloads. Without branches: a normal half needs its exponent
 * moved from bias 15 to bias 127 (+112), infinity and NaN from 31 to 255 (+112 again), and a subnormal is just its 10
 * bits times 2^-24. */
static void f16_to_f32(float *restrict values, const uint8_t *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, from + 2 * i, 2);
        uint32_t sign = (uint32_t)(half & 0x8000) << 16;
        uint32_t magnitude = half & 0x7fff;
        uint32_t bits = (magnitude << 13) + (112u << 23);
        bits += magnitude >= 0x7c00 ? 112u << 23 : 0;
        float small = (float)(int32_t)magnitude * 0x1p-24f;
        uint32_t small_bits;
        memcpy(&small_bits, &small, 4);
        bits = sign | (magnitude < 0x0400 ? small_bits : bits);
        memcpy(values + i, &bits, 4);
    }
}

/* Rounds to a half. It adds a power of two after which the last place of the float32 is that of the half, so the
 * addition itself rounds to even. */
static uint16_t f16_of(float value)
{
    uint32_t bits, rounded;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    /* below 2^-14 the last place stays the same */
    const uint32_t exponent = magnitude >> 23 < 113 ? 113 : magnitude >> 23;
    float absolute, step;
    memcpy(&absolute, &magnitude, sizeof absolute);
    const uint32_t step_bits = (exponent + 13) << 23;
    memcpy(&step, &step_bits, sizeof step);
    const float sum = absolute + step; /* rounded to the last place of a half: its power of two / 2^10 */
    memcpy(&rounded, &sum, sizeof rounded);
    return (uint16_t)(sign + ((exponent - 113) << 10) + (rounded - step_bits));
}

bool tensor_round_f16(uint16_t *halves, const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!(values[i] < 65520 && values[i] > -65520)) return false;
        halves[i] = f16_of(values[i]);
    }
    return true;
}

/* bfloat16 is the upper half of a float32. */
static void bf16_to_f32(float *restrict values, const uint8_t *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t upper;
        memcpy(&upper, from + 2 * i, 2);
        uint32_t bits = (uint32_t)upper << 16;
        memcpy(values + i, &bits, 4);
    }
}

/* Converts `count` elements that lie one after the other. */
static void run_to_f32(void *values, const uint8_t *from, size_t count, tensor_dtype dtype)
{
    switch (dtype) {
    case DTYPE_F64: f64_to_f32(values, from, count); break;
    case DTYPE_F16: f16_to_f32(values, from, count); break;
    case DTYPE_BF16: bf16_to_f32(values, from, count); break;
    default: memcpy(values, from, 4 * count);
    }
}

/* ------------------------------------------------------------------------------------------------- runs to int64 */

/* Reads one integer of any width. Integer tensors hold ids and positions, which are few, so this loop need not be fast.
 */
static int64_t load_integer(const uint8_t *from, tensor_dtype dtype)
{
    int64_t wide;
    int32_t word;
    int16_t half;
    switch (dtype) {
    case DTYPE_I64: memcpy(&wide, from, 8); return wide;
    case DTYPE_I32: memcpy(&word, from, 4); return word;
    case DTYPE_I16: memcpy(&half, from, 2); return half;
    case DTYPE_I8: return (int8_t)*from;
    case DTYPE_BOOL: return *from != 0;
    default: return *from;
    }
}

static void run_to_i64(void *values, const uint8_t *from, size_t count, tensor_dtype dtype)
{
    int64_t *out = values;
    size_t step = dtype_bytes(dtype);
    for (size_t i = 0; i < count; i++) out[i] = load_integer(from + step * i, dtype);
}

/* ------------------------------------------------------------------------------------------------------- strides */

typedef void run_converter(void *values, const uint8_t *from, size_t count, tensor_dtype dtype);

/* Returns whether a tensor is row-major without gaps. The stride of a dimension of length 1 does not matter; torch may
 * write any value there. */
static bool is_contiguous(const stored_tensor *stored)
{
    size_t expected = 1;
    for (size_t d = stored->tensor.rank; d-- > 0;) {
        size_t length = stored->tensor.shape[d];
        if (length != 1 && stored->strides[d] != expected) return false;
        expected *= length;
    }
    return true;
}

const float *tensor_view_f32(const stored_tensor *stored, const uint8_t *storage)
{
    const uint8_t *values = storage + stored->offset_bytes;
    if (stored->tensor.dtype != DTYPE_F32 || !is_contiguous(stored)) return NULL;
    return (uintptr_t)values % _Alignof(float) == 0 ? (const float *)(const void *)values : NULL;
}

/* Returns the place of the element with this row-major index, in elements. */
static size_t element_place(const stored_tensor *stored, size_t index)
{
    size_t place = 0;
    for (size_t d = stored->tensor.rank; d-- > 0;) {
        place += index % stored->tensor.shape[d] * stored->strides[d];
        index /= stored->tensor.shape[d];
    }
    return place;
}

enum { GATHER_ELEMENTS = 256 };

/* Converts `count` elements, `stride_bytes` apart, through a buffer that stays in the first-level cache. */
static void convert_strided(uint8_t *values, size_t value_bytes, const uint8_t *from, size_t stride_bytes, size_t count,
                            tensor_dtype dtype, run_converter *convert)
{
    uint8_t buffer[GATHER_ELEMENTS * 8];
    size_t element_bytes = dtype_bytes(dtype);
    for (size_t done = 0; done < count; done += GATHER_ELEMENTS) {
        size_t piece = count - done < GATHER_ELEMENTS ? count - done : GATHER_ELEMENTS;
        for (size_t i = 0; i < piece; i++)
            memcpy(buffer + i * element_bytes, from + (done + i) * stride_bytes, element_bytes);
        convert(values + done * value_bytes, buffer, piece, dtype);
    }
}

/* Converts row by row of the last dimension, unless all of it is one run. */
static void convert_tensor(uint8_t *values, size_t value_bytes, const stored_tensor *stored, const uint8_t *storage,
                           size_t first, size_t count, run_converter *convert)
{
    tensor_dtype dtype = stored->tensor.dtype;
    size_t element_bytes = dtype_bytes(dtype), rank = stored->tensor.rank;
    const uint8_t *origin = storage + stored->offset_bytes;
    if (is_contiguous(stored)) {
        convert(values, origin + first * element_bytes, count, dtype);
        return;
    }
    size_t row = stored->tensor.shape[rank - 1], stride_bytes = stored->strides[rank - 1] * element_bytes;
    while (count > 0) {
        size_t piece = row - first % row;
        if (piece > count) piece = count;
        const uint8_t *from = origin + element_place(stored, first) * element_bytes;
        if (stride_bytes == element_bytes)
            convert(values, from, piece, dtype);
        else
            convert_strided(values, value_bytes, from, stride_bytes, piece, dtype, convert);
        values += piece * value_bytes;
        first += piece;
        count -= piece;
    }
}

/* Differences of bits are negative where a magnitude is larger; SSE2 has no maximum of such integers. */
bool magnitudes_within(const float *values, size_t count, float most)
{
    const int32_t limit = magnitude_bits(most);
    int32_t signs = 0;
    for (size_t k = 0; k < count; k++) signs |= limit - magnitude_bits(values[k]);
    return signs >= 0;
}

void tensor_convert_f32(float *values, const stored_tensor *stored, const uint8_t *storage, size_t first, size_t count)
{
    if (count > 0) convert_tensor((uint8_t *)values, sizeof *values, stored, storage, first, count, run_to_f32);
}

void tensor_convert_i64(int64_t *values, const stored_tensor *stored, const uint8_t *storage, size_t first,
                        size_t count)
{
    if (count > 0) convert_tensor((uint8_t *)values, sizeof *values, stored, storage, first, count, run_to_i64);
}
