/* Writes safetensors files: the header, then pieces of values at their offsets. SPDX-License-Identifier: MIT */
#include "core/io/export.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "core/io/atomic_file.h"
#include "core/io/quote.h"

struct export_file {
    atomic_file *file;
    char *path;
    tensor_place *places; /* [count]: place of each declared tensor */
    size_t count;
};

/* Places the tensors, the widest values first, so that everything is aligned when the file is mapped. */
static deberta_status place_tensors(export_file *file, const export_tensor *tensors, uint64_t *end, deberta_error *err)
{
    *end = 0;
    for (size_t bytes = 8; bytes > 0; bytes /= 2)
        for (size_t i = 0; i < file->count; i++)
            if (dtype_bytes(tensors[i].dtype) == bytes || (bytes == 8 && dtype_bytes(tensors[i].dtype) == 0))
                DEBERTA_TRY(tensor_place_values(&file->places[i], &tensors[i], end, file->path, err));
    return DEBERTA_OK;
}

/* Opens the file, writes the header and moves the values after it. */
static deberta_status export_begin(export_file *file, const tensor_header *header, uint64_t values_bytes,
                                   deberta_error *err)
{
    DEBERTA_TRY(atomic_file_open(&file->file, file->path, err));
    DEBERTA_TRY(atomic_file_set_size(file->file, header->size_bytes + values_bytes, err));
    for (size_t i = 0; i < file->count; i++) file->places[i].offset_bytes += header->size_bytes;
    return atomic_file_write(file->file, 0, header->bytes, header->size_bytes, err);
}

/* ------------------------------------------------------------------------------------------------------- interface */

/* Begins an export; *result is NULL on failure. */
static deberta_status new_file(export_file **result, const char *path, size_t count, deberta_error *err)
{
    export_file *file = *result = calloc(1, sizeof *file);
    if (file) {
        file->path = strdup(path);
        file->places = calloc(count + 1, sizeof *file->places);
        file->count = count;
    }
    if (file && file->path && file->places) return DEBERTA_OK;
    export_discard(result);
    DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for writing it", QUOTE(path));
}

deberta_status export_safetensors(export_file **file, const char *path, const export_tensor *tensors, size_t count,
                                  const export_note *notes, size_t note_count, deberta_error *err)
{
    uint64_t values_bytes;
    tensor_header header = {0};
    DEBERTA_TRY(new_file(file, path, count, err));
    const tensor_contents contents = {
        .tensors = tensors, .places = (*file)->places, .count = count, .notes = notes, .note_count = note_count};
    deberta_status status = place_tensors(*file, tensors, &values_bytes, err);
    if (status == DEBERTA_OK) status = tensor_header_safetensors(&header, &contents, 0, path, err);
    if (status == DEBERTA_OK) status = export_begin(*file, &header, values_bytes, err);
    free(header.bytes);
    if (status != DEBERTA_OK) export_discard(file);
    return status;
}

deberta_status export_write(export_file *file, size_t index, size_t first, const void *values, size_t count,
                            deberta_error *err)
{
    size_t elements = index < file->count ? file->places[index].elements : 0;
    if (index >= file->count || first > elements || count > elements - first)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: elements %zu to %zu + %zu of tensor %zu, which has %zu",
                     QUOTE(file->path), first, first, count, index, elements);
    const tensor_place *where = &file->places[index];
    return atomic_file_write(file->file, where->offset_bytes + (uint64_t)first * where->element_bytes, values,
                             count * where->element_bytes, err);
}

deberta_status export_finish(export_file **file, deberta_error *err)
{
    deberta_status status = atomic_file_commit(&(*file)->file, err);
    export_discard(file);
    return status;
}

void export_discard(export_file **file)
{
    if (!*file) return;
    atomic_file_discard(&(*file)->file);
    free((*file)->places);
    free((*file)->path);
    free(*file);
    *file = NULL;
}

const char *export_temporary(const export_file *file) { return atomic_file_temporary(file->file); }
