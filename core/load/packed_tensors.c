/* Writes, checks and searches a packed file's table of contents. SPDX-License-Identifier: MIT */
#include "core/load/packed_tensors.h"

#include <string.h>

#include "core/io/mapped_file.h"

enum { ENTRY_BYTES = 12, DTYPE_COUNT = DTYPE_F4 + 1 };

/* ---------------------------------------------------------------------------------------------------------- writing */

static size_t entry_bytes(const tensor *of) { return ENTRY_BYTES + of->rank * sizeof(uint64_t) + strlen(of->name); }

size_t packed_tensors_bytes(const checkpoint *files)
{
    size_t bytes = 0;
    for (size_t i = 0; i < checkpoint_count(files); i++) bytes += entry_bytes(checkpoint_at(files, i));
    return bytes;
}

static uint8_t *store_number(uint8_t *to, uint64_t number, size_t count_bytes)
{
    for (size_t k = 0; k < count_bytes; k++) to[k] = (uint8_t)(number >> 8 * k);
    return to + count_bytes;
}

void packed_tensors_write(const checkpoint *files, uint8_t *to)
{
    for (size_t i = 0; i < checkpoint_count(files); i++) {
        const tensor *from = checkpoint_at(files, i);
        const size_t name_bytes = strlen(from->name);
        to = store_number(to, from->dtype, sizeof(uint32_t));
        to = store_number(to, from->rank, sizeof(uint32_t));
        to = store_number(to, name_bytes, sizeof(uint32_t));
        for (size_t k = 0; k < from->rank; k++) to = store_number(to, from->shape[k], sizeof(uint64_t));
        memcpy(to, from->name, name_bytes);
        to += name_bytes;
    }
}

/* ---------------------------------------------------------------------------------------------------------- reading */

typedef struct packed_entry {
    weight_tensor tensor;
    const char *name;
    size_t name_bytes;
} packed_entry;

/* Reads the entry at *at and moves *at past it. Returns the problem of a damaged entry, or NULL. */
static const char *next_entry(const packed_tensors *table, size_t *at, packed_entry *entry)
{
    const uint8_t *from = table->bytes + *at;
    const size_t left = table->size_bytes - *at;
    if (left < ENTRY_BYTES) return "ends within a tensor";
    const uint32_t dtype = load_u32(from), rank = load_u32(from + 4), name_bytes = load_u32(from + 8);
    if (dtype >= DTYPE_COUNT) return "has a tensor of an unknown type";
    if (rank > TENSOR_MAX_RANK) return "has a tensor of too many dimensions";
    if (name_bytes == 0 || name_bytes > TENSOR_MAX_NAME_BYTES) return "has a tensor whose name is too long, or empty";
    const size_t shape_bytes = rank * sizeof(uint64_t), bytes = ENTRY_BYTES + shape_bytes + name_bytes;
    if (left < bytes) return "ends within a tensor";
    *entry = (packed_entry){
        .tensor = {.place = table->place, .rank = rank, .dtype = (tensor_dtype)dtype},
        .name = (const char *)from + ENTRY_BYTES + shape_bytes,
        .name_bytes = name_bytes,
    };
    for (size_t k = 0; k < rank; k++) entry->tensor.shape[k] = load_u64(from + ENTRY_BYTES + k * sizeof(uint64_t));
    *at += bytes;
    return NULL;
}

const char *packed_tensors_problem(const packed_tensors *table)
{
    packed_entry entry;
    size_t elements;
    for (size_t at = 0; at < table->size_bytes;) {
        const char *problem = next_entry(table, &at, &entry);
        if (problem) return problem;
        if (tensor_name_problem(entry.name, entry.name_bytes)) return "has a tensor whose name is no text";
        if (!tensor_count_elements(&elements, entry.tensor.shape, entry.tensor.rank))
            return "has a tensor of more elements than can be counted";
    }
    return NULL;
}

static bool find_packed(const void *context, const char *name, weight_tensor *found)
{
    const packed_tensors *table = context;
    const size_t name_bytes = strlen(name);
    packed_entry entry;
    for (size_t at = 0; at < table->size_bytes && !next_entry(table, &at, &entry);) {
        if (entry.name_bytes != name_bytes || memcmp(entry.name, name, name_bytes) != 0) continue;
        *found = entry.tensor;
        found->name = entry.name;
        return true;
    }
    return false;
}

static const char *next_packed(const void *context, size_t *cursor, size_t *name_bytes, bool *is_outside)
{
    const packed_tensors *table = context;
    packed_entry entry;
    if (*cursor >= table->size_bytes || next_entry(table, cursor, &entry)) return NULL;
    *name_bytes = entry.name_bytes;
    *is_outside = false;
    return entry.name;
}

static deberta_status read_packed(const void *context, const weight_tensor *from, size_t first, size_t count,
                                  float *values, deberta_error *err)
{
    const packed_tensors *table = context;
    (void)from, (void)first, (void)count, (void)values;
    DEBERTA_FAIL(err, DEBERTA_E_UNSUPPORTED, "%s: holds packed weights alone, not the numbers that they were made of",
                 table->place);
}

weight_source weight_source_of_packed(const packed_tensors *table)
{
    return (weight_source){
        .context = table, .name = table->place, .find = find_packed, .read = read_packed, .next = next_packed};
}
