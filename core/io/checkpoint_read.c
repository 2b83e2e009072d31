/* Finds tensors of an open checkpoint by name, and reads their values from its files as float32, whatever the format:
 * safetensors, torch, or memory.
 *
 * SPDX-License-Identifier: MIT */
#include "core/io/checkpoint.h"

#include <string.h>

#include "core/io/checkpoint_parts.h"

/* ----------------------------------------------------------------------------------------------------------- lookup */

size_t checkpoint_count(const checkpoint *c) { return c->count; }
const tensor *checkpoint_at(const checkpoint *c, size_t index) { return &c->entries[index].public; }

const tensor *checkpoint_find(const checkpoint *c, const char *name)
{
    size_t low = 0, high = c->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(c->entries[middle].public.name, name);
        if (order == 0) return &c->entries[middle].public;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Callers only get tensors that are the first member of an entry. */
static const entry *entry_of(const tensor *t) { return (const entry *)t; }
const char *checkpoint_stored_name(const tensor *t) { return entry_of(t)->stored->tensor.name; }

bool checkpoint_is_outside(const checkpoint *c, const tensor *t)
{
    return strncmp(checkpoint_stored_name(t), c->prefix.text, c->prefix.length_bytes) != 0;
}

const char *checkpoint_place_of(const tensor *t) { return entry_of(t)->file->map.name.text; }

static deberta_status require_floating(const tensor *t, deberta_error *err)
{
    if (dtype_is_floating(t->dtype)) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: tensor '%s' has dtype %s, expected weights in F32, F16, BF16 or F64",
                 checkpoint_place_of(t), QUOTE(t->name), dtype_name(t->dtype));
}

const char *checkpoint_place(const checkpoint *c) { return c->file_count == 1 ? c->files[0].map.name.text : c->folder; }

/* ---------------------------------------------------------------------------------------------------------- reading */

/* A range outside the tensor is an error of the caller, not of the file. */
static deberta_status check_range(const tensor *t, size_t first, size_t count, deberta_error *err)
{
    if (range_is_inside(first, count, t->elements)) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "tensor '%s': elements %zu to %zu + %zu, but it has %zu", QUOTE(t->name),
                 first, first, count, t->elements);
}

/* Returns the storage of a tensor that is not in a torch file. */
static const uint8_t *bytes_of(const entry *one)
{
    return one->file->memory ? one->file->memory[one->stored->storage] : one->file->map.bytes;
}

/* Sets *storage to the storage of the tensor, valid until `release`. */
static deberta_status acquire(const tensor *t, const uint8_t **storage, deberta_error *err)
{
    const entry *one = entry_of(t);
    if (one->file->torch) return torch_file_acquire(one->file->torch, one->stored->storage, storage, err);
    *storage = bytes_of(one);
    return DEBERTA_OK;
}

/* Ends what acquire began. */
static void release(const tensor *t)
{
    const entry *one = entry_of(t);
    if (one->file->torch) torch_file_release(one->file->torch, one->stored->storage);
}

deberta_status checkpoint_read_f32(const checkpoint *c, const tensor *t, size_t first, size_t count, float *values,
                                   deberta_error *err)
{
    (void)c;
    const uint8_t *storage;
    DEBERTA_TRY(check_range(t, first, count, err));
    DEBERTA_TRY(require_floating(t, err));
    DEBERTA_TRY(acquire(t, &storage, err));
    tensor_convert_f32(values, entry_of(t)->stored, storage, first, count);
    release(t);
    return DEBERTA_OK;
}

const float *checkpoint_view_f32(const checkpoint *c, const tensor *t)
{
    (void)c;
    const entry *one = entry_of(t);
    return one->file->torch ? NULL : tensor_view_f32(one->stored, bytes_of(one));
}

void checkpoint_forget(const checkpoint *c, const tensor *t)
{
    (void)c;
    const entry *one = entry_of(t);
    if (one->file->torch)
        torch_file_forget(one->file->torch, one->stored->storage);
    else if (!one->file->memory)
        mapped_file_forget(&one->file->map, one->stored->offset_bytes, one->stored->size_bytes);
}
