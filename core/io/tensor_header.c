/* Composes the headers of safetensors and npy files before any value is written. SPDX-License-Identifier: MIT */
#include "core/io/tensor_header.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "core/io/json_file.h"
#include "core/io/quote.h"

deberta_status tensor_place_values(tensor_place *place, const export_tensor *declared, uint64_t *end, const char *path,
                                   deberta_error *err)
{
    const bool known = declared->dtype == DTYPE_F32 || declared->dtype == DTYPE_F64 || declared->dtype == DTYPE_F16 ||
                       declared->dtype == DTYPE_I64;
    if (!known || declared->rank > TENSOR_MAX_RANK)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT,
                     "%s: tensor '%s': expected F16, F32, F64 or I64 and at most %d dimensions", QUOTE(path),
                     QUOTE(declared->name), TENSOR_MAX_RANK);
    uint64_t size_bytes;
    place->element_bytes = dtype_bytes(declared->dtype);
    place->offset_bytes = *end;
    if (!tensor_count_elements(&place->elements, declared->shape, declared->rank) ||
        __builtin_mul_overflow(place->elements, place->element_bytes, &size_bytes) ||
        __builtin_add_overflow(*end, size_bytes, end) || *end > INT64_MAX / 2)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: tensor '%s' of shape %s is too large for a file", QUOTE(path),
                     QUOTE(declared->name), shape_describe(declared->shape, declared->rank).text);
    return DEBERTA_OK;
}

/* ----------------------------------------------------------------------------------------------------- safetensors */

/* Returns {"dtype": ..., "shape": [...], "data_offsets": [begin, end]}; NULL without memory. */
static json_t *tensor_header_describe(const export_tensor *declared, const tensor_place *place)
{
    uint64_t end = place->offset_bytes + place->elements * place->element_bytes;
    json_t *shape = json_array();
    for (size_t d = 0; shape && d < declared->rank; d++)
        if (json_array_append_new(shape, json_integer((json_int_t)declared->shape[d])) != 0) {
            json_decref(shape);
            shape = NULL;
        }
    /* "o" takes ownership of shape, even on failure; without shape the result is NULL. */
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype_name(declared->dtype), "shape", shape, "data_offsets",
                     (json_int_t)place->offset_bytes, (json_int_t)end);
}

/* Adds name: value. A text that is not UTF-8, or an existing name, is an error of the caller. */
static deberta_status tensor_header_add(json_t *object, const char *path, const char *name, json_t *value,
                                        deberta_error *err)
{
    if (!utf8_is_valid(name, strlen(name)) || json_object_get(object, name)) {
        json_decref(value);
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: the name '%s' occurs twice or is not UTF-8", QUOTE(path),
                     QUOTE(name));
    }
    if (json_object_set_new(object, name, value) != 0)
        DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for its header", QUOTE(path));
    return DEBERTA_OK;
}

/* jansson keeps the order of insertion. */
static deberta_status describe_all(json_t *header, const tensor_contents *contents, const char *path,
                                   deberta_error *err)
{
    json_t *metadata = json_object();
    DEBERTA_TRY(tensor_header_add(header, path, "__metadata__", metadata, err));
    for (size_t i = 0; i < contents->note_count; i++) {
        const export_note *note = &contents->notes[i];
        if (!utf8_is_valid(note->value, strlen(note->value)))
            DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: the metadata '%s' is not UTF-8: '%s'", QUOTE(path),
                         QUOTE(note->key), QUOTE(note->value));
        DEBERTA_TRY(tensor_header_add(metadata, path, note->key, json_string(note->value), err));
    }
    for (size_t i = 0; i < contents->count; i++)
        DEBERTA_TRY(tensor_header_add(header, path, contents->tensors[i].name,
                                      tensor_header_describe(&contents->tensors[i], &contents->places[i]), err));
    return DEBERTA_OK;
}

/* Writes the header: u64 length, JSON padded with blanks. */
static bool compose(tensor_header *header, const json_t *object, size_t least_bytes)
{
    char *text = json_print(object, JSON_COMPACT);
    const size_t text_bytes = text ? strlen(text) : 0, needed = 8 + text_bytes;
    header->size_bytes = ((needed > least_bytes ? needed : least_bytes) + 7) / 8 * 8;
    header->bytes = text ? malloc(header->size_bytes) : NULL;
    if (header->bytes) {
        for (int i = 0; i < 8; i++) header->bytes[i] = (char)((uint64_t)(header->size_bytes - 8) >> 8 * i);
        memset(header->bytes + 8, ' ', header->size_bytes - 8);
        memcpy(header->bytes + 8, text, text_bytes);
    }
    free(text);
    return header->bytes != NULL;
}

deberta_status tensor_header_safetensors(tensor_header *header, const tensor_contents *contents, size_t least_bytes,
                                         const char *path, deberta_error *err)
{
    *header = (tensor_header){0};
    json_t *object = json_object();
    deberta_status status = DEBERTA_OK;
    if (object) status = describe_all(object, contents, path, err);
    if (status == DEBERTA_OK && (!object || !compose(header, object, least_bytes)))
        status = status_fail(err, DEBERTA_E_MEMORY, "%s: no memory for its header", QUOTE(path));
    json_decref(object);
    return status;
}

/* ------------------------------------------------------------------------------------------------------------- npy */

/* Writes magic, version 1.0, u16 length, and a Python dict padded with blanks and a newline to a multiple of 64 bytes.
 */
void tensor_header_npy(char header[TENSOR_HEADER_NPY_BYTES], size_t rows, size_t columns)
{
    enum { PREFIX_BYTES = 10, TEXT_BYTES = TENSOR_HEADER_NPY_BYTES - PREFIX_BYTES };
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = TEXT_BYTES;
    header[9] = 0;
    const int used = snprintf(header + PREFIX_BYTES, TEXT_BYTES,
                              "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }", rows, columns);
    memset(header + PREFIX_BYTES + used, ' ', TEXT_BYTES - (size_t)used - 1);
    header[TENSOR_HEADER_NPY_BYTES - 1] = '\n';
}
