/* Headers of safetensors and npy, and pieces of values at their places.
 *
 * SPDX-License-Identifier: MIT */
#include "core/io/export.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"
#include "core/io/atomic_file.h"
#include "core/io/quote.h"

typedef struct place {
    uint64_t offset_bytes;
    size_t elements, element_bytes;
} place;

struct export_file {
    atomic_file *file;
    char *path;
    place *places; /* one for each declared tensor */
    size_t count;
};

/* ------------------------------------------------------------------------------------------------------ the layout */

/* Places the values of one tensor at *at and moves it behind them. */
static deberta_status place_tensor(export_file *file, size_t index, const export_tensor *declared, uint64_t *at,
                                   deberta_error *err)
{
    place *where = &file->places[index];
    const char *name = declared->name ? declared->name : "values";
    if ((declared->dtype != DTYPE_F32 && declared->dtype != DTYPE_I64) || declared->rank > TENSOR_MAX_RANK)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: tensor '%s': expected F32 or I64 and at most %d dimensions",
                     QUOTE(file->path), QUOTE(name), TENSOR_MAX_RANK);
    uint64_t size_bytes;
    where->element_bytes = dtype_bytes(declared->dtype);
    where->offset_bytes = *at;
    if (!tensor_count_elements(&where->elements, declared->shape, declared->rank) ||
        __builtin_mul_overflow(where->elements, where->element_bytes, &size_bytes) ||
        __builtin_add_overflow(*at, size_bytes, at) || *at > INT64_MAX / 2)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: tensor '%s' of shape %s is too large for a file", QUOTE(file->path),
                     QUOTE(name), shape_describe(declared->shape, declared->rank).text);
    return DEBERTA_OK;
}

/* 64-bit values first: then everything is aligned when the file is mapped. */
static deberta_status place_tensors(export_file *file, const export_tensor *tensors, uint64_t *end, deberta_error *err)
{
    *end = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < file->count; i++)
            if ((tensors[i].dtype == DTYPE_I64) == (pass == 0))
                DEBERTA_TRY(place_tensor(file, i, &tensors[i], end, err));
    return DEBERTA_OK;
}

/* {"dtype": ..., "shape": [...], "data_offsets": [begin, end]}; NULL without memory. */
static json_t *describe(const export_tensor *declared, const place *where)
{
    uint64_t end = where->offset_bytes + where->elements * where->element_bytes;
    json_t *shape = json_array();
    for (size_t d = 0; shape && d < declared->rank; d++)
        if (json_array_append_new(shape, json_integer((json_int_t)declared->shape[d])) != 0) {
            json_decref(shape);
            shape = NULL;
        }
    /* "o" takes shape over, also when it fails; without shape the result is NULL. */
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype_name(declared->dtype), "shape", shape, "data_offsets",
                     (json_int_t)where->offset_bytes, (json_int_t)end);
}

/* Adds name: value. A text that is not UTF-8 or a name that is there already is the caller's fault. */
static deberta_status add(json_t *object, const export_file *file, const char *name, json_t *value, deberta_error *err)
{
    if (!utf8_is_valid(name, strlen(name)) || json_object_get(object, name)) {
        json_decref(value);
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: the name '%s' occurs twice or is not UTF-8", QUOTE(file->path),
                     QUOTE(name));
    }
    if (json_object_set_new(object, name, value) != 0)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for its header", QUOTE(file->path));
    return DEBERTA_OK;
}

/* Metadata first and then the tensors in the order of their declaration: jansson keeps the order of insertion. */
static deberta_status describe_all(json_t *header, const export_file *file, const export_tensor *tensors,
                                   const export_note *notes, size_t note_count, deberta_error *err)
{
    json_t *metadata = json_object();
    DEBERTA_TRY(add(header, file, "__metadata__", metadata, err));
    for (size_t i = 0; i < note_count; i++) {
        if (!utf8_is_valid(notes[i].value, strlen(notes[i].value)))
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: the metadata '%s' is not UTF-8: '%s'", QUOTE(file->path),
                         QUOTE(notes[i].key), QUOTE(notes[i].value));
        DEBERTA_TRY(add(metadata, file, notes[i].key, json_string(notes[i].value), err));
    }
    for (size_t i = 0; i < file->count; i++)
        DEBERTA_TRY(add(header, file, tensors[i].name, describe(&tensors[i], &file->places[i]), err));
    return DEBERTA_OK;
}

/* ----------------------------------------------------------------------------------------------------- the headers */

/* Opens the file, writes the head and moves the values behind it. */
static deberta_status begin(export_file *file, const char *head, size_t head_bytes, uint64_t values_bytes,
                            deberta_error *err)
{
    DEBERTA_TRY(atomic_file_open(&file->file, file->path, err));
    DEBERTA_TRY(atomic_file_set_size(file->file, head_bytes + values_bytes, err));
    for (size_t i = 0; i < file->count; i++) file->places[i].offset_bytes += head_bytes;
    return atomic_file_write(file->file, 0, head, head_bytes, err);
}

/* u64 length, JSON padded with blanks to a multiple of 8. */
static deberta_status begin_safetensors(export_file *file, const json_t *header, uint64_t values_bytes,
                                        deberta_error *err)
{
    char *text = json_dumps(header, JSON_COMPACT | JSON_PRESERVE_ORDER);
    size_t text_bytes = text ? strlen(text) : 0, padded_bytes = (text_bytes + 7) / 8 * 8;
    char *head = text ? malloc(8 + padded_bytes) : NULL;
    deberta_status status;
    if (head) {
        for (int i = 0; i < 8; i++) head[i] = (char)((uint64_t)padded_bytes >> 8 * i);
        memset(head + 8, ' ', padded_bytes);
        memcpy(head + 8, text, text_bytes);
        status = begin(file, head, 8 + padded_bytes, values_bytes, err);
    } else {
        status = status_fail(err, DEBERTA_E_MEMORY, "%s: no memory for its header", QUOTE(file->path));
    }
    free(head);
    free(text);
    return status;
}

/* Magic, version 1.0, u16 length, a Python dict padded with blanks and a newline to a multiple of 64. */
static deberta_status begin_npy(export_file *file, const export_tensor *declared, uint64_t values_bytes,
                                deberta_error *err)
{
    enum { PREFIX_BYTES = 10, ALIGNMENT = 64, ROOM = 5 * ALIGNMENT };
    char head[ROOM + 1], shape[TENSOR_MAX_RANK * 22 + 3] = "";
    size_t used = 0;
    for (size_t d = 0; d < declared->rank; d++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%zu%s", d ? " " : "", declared->shape[d],
                                 d + 1 < declared->rank || d == 0 ? "," : "");
    memcpy(head, "\x93NUMPY\x01\x00", 8);
    int text_bytes = snprintf(head + PREFIX_BYTES, sizeof head - PREFIX_BYTES,
                              "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                              declared->dtype == DTYPE_F32 ? "<f4" : "<i8", shape);
    size_t head_bytes = ((size_t)text_bytes + PREFIX_BYTES + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    memset(head + PREFIX_BYTES + text_bytes, ' ', head_bytes - PREFIX_BYTES - (size_t)text_bytes);
    head[head_bytes - 1] = '\n';
    head[8] = (char)((head_bytes - PREFIX_BYTES) & 0xff);
    head[9] = (char)((head_bytes - PREFIX_BYTES) >> 8);
    return begin(file, head, head_bytes, values_bytes, err);
}

/* ------------------------------------------------------------------------------------------------------- interface */

/* On failure *result is NULL. */
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
    json_t *header = NULL;
    DEBERTA_TRY(new_file(file, path, count, err));
    deberta_status status = place_tensors(*file, tensors, &values_bytes, err);
    if (status == DEBERTA_OK && !(header = json_object()))
        status = status_fail(err, DEBERTA_E_MEMORY, "%s: no memory for its header", QUOTE(path));
    if (status == DEBERTA_OK) status = describe_all(header, *file, tensors, notes, note_count, err);
    if (status == DEBERTA_OK) status = begin_safetensors(*file, header, values_bytes, err);
    json_decref(header);
    if (status != DEBERTA_OK) export_discard(file);
    return status;
}

deberta_status export_npy(export_file **file, const char *path, const export_tensor *declared, deberta_error *err)
{
    uint64_t values_bytes = 0;
    DEBERTA_TRY(new_file(file, path, 1, err));
    deberta_status status = place_tensors(*file, declared, &values_bytes, err);
    if (status == DEBERTA_OK) status = begin_npy(*file, declared, values_bytes, err);
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
    const place *where = &file->places[index];
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
