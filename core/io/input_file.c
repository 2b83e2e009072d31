/* Reads prepared token ids, attention masks, token types and positions from safetensors and JSON.
 *
 * SPDX-License-Identifier: MIT */
#include "core/io/input_file.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/io/json_file.h"
#include "core/io/mapped_file.h"
#include "core/io/record_keys.h"
#include "core/io/safetensors.h"

/* Limits of an input: four arrays of 16 Mi integers in all; a batch of 64 inputs of 4,096 tokens has 1 Mi. */
static const json_limits input_limits = {.bytes = 256 << 20, .depth = 8, .values = 16 << 20};

enum { IDS, MASK, TYPES, POSITIONS, ARRAYS };
static const char *const array_names[ARRAYS] = {"input_ids", "attention_mask", "token_type_ids", "position_ids"};

/* Returns the member for an array, so that one loop can process all four. */
static int64_t **array_of(input_file *input, int which)
{
    int64_t **arrays[ARRAYS] = {&input->ids, &input->mask, &input->types, &input->positions};
    return arrays[which];
}

/* Allocates an array. The first one sets the shape, which the others must have. */
static deberta_status take_shape(input_file *input, int which, size_t rows, size_t columns, const char *where,
                                 deberta_error *err)
{
    size_t elements;
    if (rows == 0 || columns == 0)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %s has shape [%zu, %zu], expected at least one row and one column",
                     where, array_names[which], rows, columns);
    if (which != IDS && (rows != input->rows || columns != input->columns))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %s has shape [%zu, %zu], but input_ids has [%zu, %zu]", where,
                     array_names[which], rows, columns, input->rows, input->columns);
    input->rows = rows;
    input->columns = columns;
    int64_t *values = size_multiply(rows, columns, &elements) ? calloc(elements, sizeof *values) : NULL;
    if (!values) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for %s", where, array_names[which]);
    *array_of(input, which) = values;
    return DEBERTA_OK;
}

/* ----------------------------------------------------------------------------------------------------- safetensors */

/* Only integers are accepted: a float tensor of ids comes from a mistake that rounding would hide. */
static deberta_status read_tensor(input_file *input, int which, const stored_tensor *stored, const mapped_file *file,
                                  deberta_error *err)
{
    const tensor *t = &stored->tensor;
    if (t->dtype != DTYPE_I64 && t->dtype != DTYPE_I32)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %s has dtype %s, expected I64 or I32", file->name.text, t->name,
                     dtype_name(t->dtype));
    if (t->rank != 2)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %s has shape %s, expected [inputs, tokens]", file->name.text, t->name,
                     shape_describe(t->shape, t->rank).text);
    DEBERTA_TRY(take_shape(input, which, t->shape[0], t->shape[1], file->name.text, err));
    tensor_convert_i64(*array_of(input, which), stored, file->bytes, 0, t->elements);
    return DEBERTA_OK;
}

/* A mask under another name would be ignored, and every result would be wrong. */
static deberta_status check_name(const char *name, const char *where, deberta_error *err)
{
    char problem[KEY_SENTENCE_BYTES];
    if (!batch_key_is_wrong(name, problem)) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %s", where, problem);
}

static deberta_status read_safetensors(input_file *input, const mapped_file *file, bool others, deberta_error *err)
{
    tensor_list list;
    DEBERTA_TRY(safetensors_list(&list, file->bytes, file->size_bytes, file->name.text, err));
    deberta_status status = DEBERTA_OK;
    for (int which = 0; which < ARRAYS && status == DEBERTA_OK; which++) {
        size_t i = 0;
        while (i < list.count && strcmp(list.items[i].tensor.name, array_names[which]) != 0) i++;
        if (i < list.count)
            status = read_tensor(input, which, &list.items[i], file, err);
        else if (which == IDS)
            status = status_fail(err, DEBERTA_E_FORMAT, "%s: input_ids is missing", file->name.text);
    }
    for (size_t i = 0; i < list.count && !others && status == DEBERTA_OK; i++)
        status = check_name(list.items[i].tensor.name, file->name.text, err);
    tensor_list_free(&list);
    return status;
}

/* ------------------------------------------------------------------------------------------------------------ JSON */

/* Refuses rows of different lengths instead of padding them: the file does not say how to pad. */
static deberta_status input_file_read_row(int64_t *values, size_t columns, int which, size_t row, const json_t *list,
                                          const char *where, deberta_error *err)
{
    if (!json_is_array(list))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: row %zu of %s is %s, expected a list of integers", where, row,
                     array_names[which], json_describe(list).text);
    if (json_array_size(list) != columns)
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: row %zu of %s has %zu values, but row 0 has %zu", where, row,
                     array_names[which], json_array_size(list), columns);
    for (size_t i = 0; i < columns; i++) {
        const json_t *value = json_array_get(list, i);
        if (!json_is_integer(value))
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: row %zu, column %zu of %s is %s, expected an integer", where, row,
                         i, array_names[which], json_describe(value).text);
        values[i] = json_integer_value(value);
    }
    return DEBERTA_OK;
}

static deberta_status read_lists(input_file *input, int which, const json_t *lists, const char *where,
                                 deberta_error *err)
{
    if (!json_is_array(lists) || !json_is_array(json_array_get(lists, 0)))
        DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: %s is not a list of lists of integers", where, array_names[which]);
    size_t rows = json_array_size(lists), columns = json_array_size(json_array_get(lists, 0));
    DEBERTA_TRY(take_shape(input, which, rows, columns, where, err));
    for (size_t row = 0; row < rows; row++)
        DEBERTA_TRY(input_file_read_row(*array_of(input, which) + row * columns, columns, which, row,
                                        json_array_get(lists, row), where, err));
    return DEBERTA_OK;
}

static deberta_status read_json(input_file *input, const mapped_file *file, bool others, deberta_error *err)
{
    json_t *root;
    const char *where = file->name.text;
    DEBERTA_TRY(json_file_parse(&root, (const char *)file->bytes, file->size_bytes, &input_limits, where, err));
    deberta_status status = DEBERTA_OK;
    const char *name;
    json_t *value;
    for (int which = 0; which < ARRAYS && status == DEBERTA_OK; which++) {
        const json_t *lists = json_object_get(root, array_names[which]);
        if (lists && !json_is_null(lists))
            status = read_lists(input, which, lists, where, err);
        else if (which == IDS)
            status = status_fail(err, DEBERTA_E_FORMAT, "%s: input_ids is missing", where);
    }
    json_object_foreach(root, name, value)
    {
        if (status == DEBERTA_OK && !others && !json_is_null(value)) status = check_name(name, where, err);
    }
    json_decref(root);
    return status;
}

/* ------------------------------------------------------------------------------------------------------- interface */

/* Other programs use additive masks (0 and -10000), which would mean the opposite if read as 0 and 1. */
static deberta_status check_mask(const input_file *input, const char *where, deberta_error *err)
{
    for (size_t i = 0; input->mask && i < input->rows * input->columns; i++)
        if (input->mask[i] != 0 && input->mask[i] != 1)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: attention_mask is %lld in row %zu, column %zu, expected 0 or 1",
                         where, (long long)input->mask[i], i / input->columns, i % input->columns);
    return DEBERTA_OK;
}

static deberta_status read_content(input_file *input, const mapped_file *file, bool json, bool others,
                                   deberta_error *err)
{
    deberta_status status = json ? read_json(input, file, others, err) : read_safetensors(input, file, others, err);
    if (status == DEBERTA_OK) status = check_mask(input, file->name.text, err);
    if (status != DEBERTA_OK) input_file_free(input);
    return status;
}

deberta_status input_file_read_stream(input_file *input, FILE *stream, const char *name, deberta_error *err)
{
    enum { LEAST_READ_BYTES = 1 << 16 };
    *input = (input_file){0};
    uint8_t *bytes = NULL;
    size_t size_bytes = 0, capacity = 0, got;
    do {
        uint8_t *larger = grown(bytes, &capacity, size_bytes + LEAST_READ_BYTES, 1);
        if (!larger) {
            free(bytes);
            DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for more than %zu bytes", name, size_bytes);
        }
        bytes = larger;
        got = fread(bytes + size_bytes, 1, capacity - size_bytes, stream);
        size_bytes += got;
    } while (got > 0);
    const mapped_file content = {.bytes = bytes, .size_bytes = size_bytes, .name = quote_bytes(name, strlen(name))};
    /* safetensors begins with the length of its header; as such a number, eight characters of JSON are astronomic. */
    const bool json = size_bytes < 8 || load_u64(bytes) >= size_bytes;
    deberta_status status;
    if (ferror(stream))
        status = status_fail(err, DEBERTA_E_FILE, "%s: cannot be read", name);
    else if (size_bytes == 0)
        status = status_fail(err, DEBERTA_E_FORMAT, "%s: is empty (0 bytes)", name);
    else
        status = read_content(input, &content, json, false, err);
    free(bytes);
    return status;
}

static deberta_status read_path(input_file *input, const char *path, bool others, deberta_error *err)
{
    *input = (input_file){0};
    bool json = path_has_suffix(path, ".json");
    if (!json && !path_has_suffix(path, ".safetensors"))
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%s: unknown suffix of an input, expected .safetensors or .json",
                     QUOTE(path));
    mapped_file file;
    DEBERTA_TRY(mapped_file_open(&file, path, err));
    deberta_status status = read_content(input, &file, json, others, err);
    return mapped_file_end(&file, status, err);
}

deberta_status input_file_read(input_file *input, const char *path, deberta_error *err)
{
    return read_path(input, path, false, err);
}

deberta_status input_file_read_among_others(input_file *input, const char *path, deberta_error *err)
{
    return read_path(input, path, true, err);
}

void input_file_free(input_file *input)
{
    for (int which = 0; which < ARRAYS; which++) free(*array_of(input, which));
    *input = (input_file){0};
}
