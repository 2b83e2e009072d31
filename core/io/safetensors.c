/* Reads the header of a safetensors file: a u64 length, then JSON with dtype, shape and offsets of each tensor.
 * checkpoint_read.c reads the values.
 *
 * SPDX-License-Identifier: MIT */
#include "core/io/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "core/io/json_file.h"
#include "core/io/mapped_file.h"

enum { LENGTH_BYTES = 8 };

/* Limits of a header: the format's own length, the depth of object, tensor and shape, and about eight values per
 * tensor. */
static const json_limits header_limits = {.bytes = 100 * 1000 * 1000, .depth = 8, .values = 16 * TENSOR_MAX_COUNT};

static const struct {
    const char *name;
    tensor_dtype dtype;
    size_t bytes; /* bytes of an element; 0: elements smaller than a byte */
} stored_dtypes[] = {
    {"F32", DTYPE_F32, 4},         {"F16", DTYPE_F16, 2},         {"BF16", DTYPE_BF16, 2},
    {"F64", DTYPE_F64, 8},         {"I64", DTYPE_I64, 8},         {"I32", DTYPE_I32, 4},
    {"I16", DTYPE_I16, 2},         {"I8", DTYPE_I8, 1},           {"U8", DTYPE_U8, 1},
    {"BOOL", DTYPE_BOOL, 1},       {"U16", DTYPE_U16, 2},         {"U32", DTYPE_U32, 4},
    {"U64", DTYPE_U64, 8},         {"C64", DTYPE_C64, 8},         {"F8_E4M3", DTYPE_F8_E4M3, 1},
    {"F8_E5M2", DTYPE_F8_E5M2, 1}, {"F8_E8M0", DTYPE_F8_E8M0, 1}, {"F6_E2M3", DTYPE_F6_E2M3, 0},
    {"F6_E3M2", DTYPE_F6_E3M2, 0}, {"F4", DTYPE_F4, 0},
};

/* The context of reading a header entry: the place for messages and the bounds. */
typedef struct entry_context {
    const char *where;
    size_t data_offset, data_bytes;
    deberta_error *err;
} entry_context;

/* format must be a literal, and at least one value follows it. */
#define REFUSE_ENTRY(context, stored, format, ...)                                                                     \
    DEBERTA_FAIL((context)->err, DEBERTA_E_FORMAT, "%s: tensor '%s': " format, (context)->where,                       \
                 QUOTE((stored)->tensor.name), __VA_ARGS__)

/* Reads a dtype. It also accepts types that no weight here has, because a leftover tensor must not make a model
 * unreadable. */
static deberta_status read_dtype(stored_tensor *stored, size_t *element_bytes, const json_t *entry,
                                 const entry_context *context)
{
    const json_t *value = json_object_get(entry, "dtype");
    if (!json_is_string(value)) REFUSE_ENTRY(context, stored, "%s", "dtype is missing or not a text");
    for (size_t i = 0; i < sizeof stored_dtypes / sizeof *stored_dtypes; i++) {
        if (strcmp(json_string_value(value), stored_dtypes[i].name) != 0) continue;
        stored->tensor.dtype = stored_dtypes[i].dtype;
        *element_bytes = stored_dtypes[i].bytes;
        return DEBERTA_OK;
    }
    REFUSE_ENTRY(context, stored, "dtype is %s, which safetensors does not know", json_describe(value).text);
}

/* Reads a non-negative integer. */
static bool read_size(size_t *size, const json_t *value)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0) return false;
    *size = size_or_most((uint64_t)json_integer_value(value));
    return true;
}

/* Reads the shape, and computes the product of its dimensions with a check; all other code uses this product. */
static deberta_status read_shape(stored_tensor *stored, const json_t *entry, const entry_context *context)
{
    const json_t *value = json_object_get(entry, "shape");
    if (!json_is_array(value)) REFUSE_ENTRY(context, stored, "%s", "shape is missing or not an array");
    tensor *out = &stored->tensor;
    if (json_array_size(value) > TENSOR_MAX_RANK)
        REFUSE_ENTRY(context, stored, "shape has %zu dimensions, expected at most %d", json_array_size(value),
                     TENSOR_MAX_RANK);
    out->rank = json_array_size(value);
    for (size_t d = 0; d < out->rank; d++)
        if (!read_size(&out->shape[d], json_array_get(value, d)))
            REFUSE_ENTRY(context, stored, "dimension %zu of the shape is %s, expected an integer from 0", d,
                         json_describe(json_array_get(value, d)).text);
    if (!tensor_count_elements(&out->elements, out->shape, out->rank))
        REFUSE_ENTRY(context, stored, "shape %s overflows 64 bits", shape_describe(out->shape, out->rank).text);
    tensor_set_contiguous(stored);
    return DEBERTA_OK;
}

/* Reads the range of bytes, which must lie in the data and be exactly as long as shape and type say. */
static deberta_status read_offsets(stored_tensor *stored, size_t element_bytes, const json_t *entry,
                                   const entry_context *context)
{
    const json_t *value = json_object_get(entry, "data_offsets");
    size_t begin, end, expected_bytes;
    if (!json_is_array(value) || json_array_size(value) != 2 || !read_size(&begin, json_array_get(value, 0)) ||
        !read_size(&end, json_array_get(value, 1)))
        REFUSE_ENTRY(context, stored, "%s", "data_offsets is not an array of two integers from 0");
    if (begin > end || end > context->data_bytes)
        REFUSE_ENTRY(context, stored,
                     "data_offsets are [%zu, %zu], expected an ascending range within %zu bytes of data", begin, end,
                     context->data_bytes);
    const tensor *out = &stored->tensor;
    shape_text shape = shape_describe(out->shape, out->rank);
    if (!size_multiply(out->elements, element_bytes, &expected_bytes))
        REFUSE_ENTRY(context, stored, "shape %s overflows 64 bits", shape.text);
    if (element_bytes > 0 && end - begin != expected_bytes)
        REFUSE_ENTRY(context, stored, "data_offsets span %zu bytes, but shape %s in %s takes %zu", end - begin,
                     shape.text, json_string_value(json_object_get(entry, "dtype")), expected_bytes);
    stored->offset_bytes = context->data_offset + begin;
    stored->size_bytes = end - begin;
    return DEBERTA_OK;
}

static deberta_status read_entry(stored_tensor *stored, const json_t *entry, const entry_context *context)
{
    size_t element_bytes = 0;
    const char *name = stored->tensor.name, *problem = tensor_name_problem(name, strlen(name));
    if (problem)
        DEBERTA_FAIL(context->err, DEBERTA_E_FORMAT, "%s: the tensor name '%s' %s", context->where, QUOTE(name),
                     problem);
    if (!json_is_object(entry))
        REFUSE_ENTRY(context, stored, "its entry in the header is %s, expected an object", json_describe(entry).text);
    DEBERTA_TRY(read_dtype(stored, &element_bytes, entry, context));
    DEBERTA_TRY(read_shape(stored, entry, context));
    return read_offsets(stored, element_bytes, entry, context);
}

/* __metadata__ is not used, but safetensors writes nothing else than a map of texts. */
static deberta_status check_metadata(const json_t *metadata, const entry_context *context)
{
    bool texts = json_is_object(metadata);
    const char *key;
    json_t *value;
    if (texts) json_object_foreach((json_t *)metadata, key, value) texts = texts && json_is_string(value);
    if (!texts)
        DEBERTA_FAIL(context->err, DEBERTA_E_FORMAT, "%s: __metadata__ is not a map from texts to texts",
                     context->where);
    return DEBERTA_OK;
}

/* least: "at least " where the header itself is cut, so that the full length is unknown; else "". */
static deberta_status refuse_cut(const char *least, uint64_t missing_bytes, const char *where, deberta_error *err)
{
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: is cut: %s%llu byte%s missing at its end; fetch or copy it again", where,
                 least, (unsigned long long)missing_bytes, missing_bytes == 1 ? " is" : "s are");
}

/* Detects an incomplete copy: contiguous tensors that extend beyond the end of the file. The reader of an entry finds
 * its other faults. */
static deberta_status check_whole(json_t *header, const entry_context *context)
{
    const char *name;
    json_t *entry;
    size_t sum_bytes = 0, last = 0, begin, end;
    json_object_foreach(header, name, entry)
    {
        const json_t *place = json_object_get(entry, "data_offsets");
        if (strcmp(name, "__metadata__") == 0) continue;
        if (!read_size(&begin, json_array_get(place, 0)) || !read_size(&end, json_array_get(place, 1)) || begin > end ||
            !size_add(sum_bytes, end - begin, &sum_bytes))
            return DEBERTA_OK;
        if (end > last) last = end;
    }
    if (last <= context->data_bytes || sum_bytes != last) return DEBERTA_OK;
    return refuse_cut("", last - context->data_bytes, context->where, context->err);
}

/* Copies everything out of the JSON tree, which the caller then releases. */
static deberta_status read_entries(tensor_list *list, json_t *header, const entry_context *context)
{
    size_t names_bytes = 0, used_bytes = 0;
    const char *name;
    json_t *entry;
    json_object_foreach(header, name, entry) names_bytes += strlen(name) + 1;
    /* The list has one item more than needed, so that a header without tensors is no special case. */
    list->items = calloc(json_object_size(header) + 1, sizeof *list->items);
    list->names = malloc(names_bytes + 1);
    if (!list->items || !list->names)
        DEBERTA_FAIL(context->err, DEBERTA_E_MEMORY, "%s: no memory for the list of its %zu tensors", context->where,
                     json_object_size(header));
    json_object_foreach(header, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0) {
            DEBERTA_TRY(check_metadata(entry, context));
            continue;
        }
        size_t name_bytes = strlen(name) + 1;
        stored_tensor *stored = &list->items[list->count++];
        stored->tensor.name = memcpy(list->names + used_bytes, name, name_bytes);
        used_bytes += name_bytes;
        DEBERTA_TRY(read_entry(stored, entry, context));
    }
    return DEBERTA_OK;
}

static int by_place(const void *a, const void *b)
{
    const stored_tensor *x = a, *y = b;
    if (x->offset_bytes != y->offset_bytes) return x->offset_bytes < y->offset_bytes ? -1 : 1;
    return x->size_bytes < y->size_bytes ? -1 : x->size_bytes > y->size_bytes;
}

/* Refuses overlaps and holes, so that a file has only one reading and no hidden bytes. */
static deberta_status check_tiling(const tensor_list *list, const entry_context *context)
{
    size_t at = context->data_offset;
    for (size_t i = 0; i < list->count; i++) {
        const stored_tensor *stored = &list->items[i];
        if (stored->offset_bytes != at)
            REFUSE_ENTRY(context, stored, "it begins at byte %zu of the data, but the tensor before it ends at %zu",
                         stored->offset_bytes - context->data_offset, at - context->data_offset);
        at += stored->size_bytes;
    }
    size_t end = context->data_offset + context->data_bytes;
    if (at != end)
        DEBERTA_FAIL(context->err, DEBERTA_E_FORMAT, "%s: %zu bytes after the last tensor belong to none",
                     context->where, end - at);
    return DEBERTA_OK;
}

/* Finds the header's text: from byte 8, *length_bytes long, all inside the file. */
static deberta_status find_header(size_t *length_bytes, const uint8_t *bytes, size_t size_bytes, const char *where,
                                  deberta_error *err)
{
    bool braced = size_bytes > LENGTH_BYTES && bytes[LENGTH_BYTES] == '{';
    const char *guess = braced ? NULL : content_guess(bytes, size_bytes);
    if (guess) DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: looks like %s, expected a safetensors file", where, guess);
    if (size_bytes < LENGTH_BYTES)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %zu bytes are too few for a safetensors file", where, size_bytes);
    uint64_t length = load_u64(bytes);
    if (braced && length <= header_limits.bytes && length > size_bytes - LENGTH_BYTES)
        return refuse_cut("at least ", length - (size_bytes - LENGTH_BYTES), where, err);
    if (!range_is_inside(LENGTH_BYTES, length, size_bytes))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: a safetensors header of %llu bytes does not fit the file of %zu bytes",
                     where, (unsigned long long)length, size_bytes);
    if (!braced || length > header_limits.bytes)
        DEBERTA_FAIL(
            err, DEBERTA_E_FORMAT,
            "%s: expected a safetensors header that begins with '{' and has at most %zu bytes, found %llu bytes", where,
            header_limits.bytes, (unsigned long long)length);
    *length_bytes = (size_t)length;
    return DEBERTA_OK;
}

deberta_status safetensors_list(tensor_list *list, const uint8_t *bytes, size_t size_bytes, const char *where,
                                deberta_error *err)
{
    *list = (tensor_list){0};
    size_t header_bytes = 0;
    DEBERTA_TRY(find_header(&header_bytes, bytes, size_bytes, where, err));
    json_t *header;
    DEBERTA_TRY(json_file_parse(&header, (const char *)bytes + LENGTH_BYTES, header_bytes, &header_limits, where, err));

    size_t data_offset = LENGTH_BYTES + header_bytes;
    entry_context context = {where, data_offset, size_bytes - data_offset, err};
    deberta_status status = DEBERTA_OK;
    if (json_object_size(header) > TENSOR_MAX_COUNT)
        status = status_fail(err, DEBERTA_E_FORMAT, "%s: %zu tensors, expected at most %d", where,
                             json_object_size(header), TENSOR_MAX_COUNT);
    if (status == DEBERTA_OK) status = check_whole(header, &context);
    if (status == DEBERTA_OK) status = read_entries(list, header, &context);
    json_decref(header);
    if (status == DEBERTA_OK) {
        qsort(list->items, list->count, sizeof *list->items, by_place);
        status = check_tiling(list, &context);
    }
    if (status != DEBERTA_OK) tensor_list_free(list);
    return status;
}
