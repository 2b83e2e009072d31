/* Presents tensors in the caller's memory as a checkpoint without files, with the names, dtypes, strides and
 * conversions of files.
 *
 * SPDX-License-Identifier: MIT */
#include "core/io/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "core/io/checkpoint_parts.h"

static const tensor_dtype dtypes[DEBERTA_DTYPE_COUNT] = {
    [DEBERTA_FLOAT32] = DTYPE_F32,
    [DEBERTA_FLOAT16] = DTYPE_F16,
    [DEBERTA_BFLOAT16] = DTYPE_BF16,
    [DEBERTA_FLOAT64] = DTYPE_F64,
};

static deberta_status check_name(const deberta_tensor *given, size_t index, deberta_error *err)
{
    if (!given->name) DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "tensor %zu has no name", index);
    const char *problem = tensor_name_problem(given->name, strlen(given->name));
    if (problem)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "tensor %zu: the name '%s' %s", index, QUOTE(given->name), problem);
    return DEBERTA_OK;
}

/* Checks and describes a tensor, except for the existence of its values. */
static deberta_status checkpoint_memory_describe(stored_tensor *stored, const deberta_tensor *given, size_t index,
                                                 deberta_error *err)
{
    DEBERTA_TRY(check_name(given, index, err));
    if ((unsigned)given->dtype >= DEBERTA_DTYPE_COUNT)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "tensor '%s' has dtype %d, which does not exist", QUOTE(given->name),
                     (int)given->dtype);
    if (given->rank > TENSOR_MAX_RANK || (given->rank > 0 && !given->shape))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "tensor '%s' has rank %zu, expected a shape of at most %d sizes",
                     QUOTE(given->name), given->rank, TENSOR_MAX_RANK);
    *stored = (stored_tensor){.tensor = {.dtype = dtypes[given->dtype], .rank = given->rank}, .storage = index};
    if (given->rank > 0) memcpy(stored->tensor.shape, given->shape, given->rank * sizeof *given->shape);
    size_t bytes;
    if (!tensor_count_elements(&stored->tensor.elements, stored->tensor.shape, given->rank) ||
        !size_multiply(stored->tensor.elements, dtype_bytes(stored->tensor.dtype), &bytes))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "tensor '%s' has shape %s, which is more than any memory",
                     QUOTE(given->name), shape_describe(stored->tensor.shape, given->rank).text);
    if (bytes > 0 && !given->values)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "tensor '%s' has no values", QUOTE(given->name));
    tensor_set_contiguous(stored);
    if (given->strides) memcpy(stored->strides, given->strides, given->rank * sizeof *given->strides);
    return DEBERTA_OK;
}

/* Allocates the lists, and room for all names one after the other. */
static deberta_status checkpoint_memory_allocate(weight_file *file, const deberta_tensor *tensors, size_t count,
                                                 deberta_error *err)
{
    size_t name_bytes = 1;
    for (size_t i = 0; i < count; i++) {
        DEBERTA_TRY(check_name(&tensors[i], i, err));
        name_bytes += strlen(tensors[i].name) + 1;
    }
    file->contents.items = calloc(count + 1, sizeof *file->contents.items);
    file->contents.names = malloc(name_bytes);
    file->memory = calloc(count + 1, sizeof *file->memory);
    if (!file->contents.items || !file->contents.names || !file->memory)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a list of %zu tensors", count);
    return DEBERTA_OK;
}

static deberta_status list_tensors(weight_file *file, const deberta_tensor *tensors, size_t count, deberta_error *err)
{
    if (count > TENSOR_MAX_COUNT)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%zu tensors are more than %d", count, TENSOR_MAX_COUNT);
    DEBERTA_TRY(checkpoint_memory_allocate(file, tensors, count, err));
    char *names = file->contents.names;
    for (size_t i = 0; i < count; i++) {
        stored_tensor *stored = &file->contents.items[i];
        DEBERTA_TRY(checkpoint_memory_describe(stored, &tensors[i], i, err));
        stored->tensor.name = strcpy(names, tensors[i].name);
        names += strlen(names) + 1;
        file->memory[i] = tensors[i].values;
    }
    file->contents.count = count;
    return DEBERTA_OK;
}

static deberta_status open_all(checkpoint *c, const char *name, const deberta_tensor *tensors, size_t count,
                               deberta_error *err)
{
    c->folder = strdup(name);
    c->files = calloc(1, sizeof *c->files);
    if (c->files) c->files[0].name = strdup("memory");
    if (!c->folder || !c->files || !c->files[0].name)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for reading it", QUOTE(name));
    c->file_count = 1;
    c->files[0].map.name = quote_bytes(name, strlen(name));
    DEBERTA_TRY(list_tensors(&c->files[0], tensors, count, err));
    DEBERTA_TRY(checkpoint_list_entries(c, NULL, err));
    return checkpoint_name_entries(c, err);
}

deberta_status checkpoint_open_memory(checkpoint **result, const char *name, const deberta_tensor *tensors,
                                      size_t count, deberta_error *err)
{
    *result = NULL;
    checkpoint *c = calloc(1, sizeof *c);
    if (!c) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for reading it", QUOTE(name));
    const deberta_status status = open_all(c, name, tensors, count, err);
    if (status != DEBERTA_OK)
        checkpoint_close(&c);
    else
        *result = c;
    return status;
}

bool checkpoint_is_memory(const checkpoint *c) { return c->file_count == 1 && c->files[0].memory; }
